//! What the demo brings to try submissions: an organisation with a registration, the shipped template, and workbooks in its folder.
//!
//! Guarantees: a second start changes nothing; a workbook that somebody filled in is not overwritten.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use ledger::documents::Author;
use ledger::scopes::{How, OrganisationWish, RegistrationWish, Writing};
use model::Scope;
use sheets::{Template, WASTE_RECORDS};

use crate::app::App;
use crate::cli::organisation::scope_of;
use crate::registering::{facts_of, read_template};

/// The number of the registration, which every workbook names.
const NUMBER: &str = "R-1001";
/// To be filled in.
const EMPTY: &str = "loads-to-fill-in.xlsx";
/// Filled in.
const JANUARY: &str = "loads-january.xlsx";
/// The same and more, with a correction.
const FEBRUARY: &str = "loads-february.xlsx";

/// The columns of a load, behind the marker of their table.
const COLUMNS: [&str; 15] = [
    "__SG_TABLE_LOADS_IN",
    "LOAD_ID",
    "RECEIVED_ON",
    "MATERIAL",
    "WASTE_CODE",
    "EVIDENCE_ISSUED",
    "GROSS_T",
    "TARE_T",
    "PACKING_T",
    "NET_T",
    "USABLE_SHARE",
    "COUNTED_T",
    "VEHICLE",
    "SUPPLIER",
    "SUPPLIER_PHONE",
];
const NORTH: [&str; 15] = [
    "",
    "1000",
    "2026-01-09",
    "Plastic",
    "15 01 02",
    "No",
    "26.5",
    "14.02",
    "0.08",
    "12.4",
    "0.875",
    "10.85",
    "AB12CDE",
    "Northern Bins",
    "",
];
const SOUTH: [&str; 15] = [
    "",
    "1001",
    "2026-01-21",
    "Plastic",
    "15 01 02",
    "No",
    "20",
    "14",
    "0",
    "6",
    "0.5",
    "3",
    "CD34EFG",
    "Southern Bins",
    "",
];
/// Its vehicle was heavier than first noted.
const SOUTH_CORRECTED: [&str; 15] = [
    "",
    "1001",
    "2026-01-21",
    "Plastic",
    "15 01 02",
    "No",
    "20",
    "15",
    "0",
    "5",
    "0.5",
    "2.5",
    "CD34EFG",
    "Southern Bins",
    "",
];
const EAST: [&str; 15] = [
    "",
    "1002",
    "2026-02-03",
    "Plastic",
    "15 01 02",
    "No",
    "18",
    "14",
    "0",
    "4",
    "1",
    "4",
    "EF56GHJ",
    "Eastern Bins",
    "",
];

/// Registers a site and writes its workbooks, unless an earlier start did.
pub(super) async fn bring(app: &App, folder: &Path) -> anyhow::Result<()> {
    let (by, at) = (Author::saveguard(), app.now());
    let template = read_template(WASTE_RECORDS.to_owned(), (by.clone(), at))
        .map_err(|mistakes| anyhow::anyhow!("the shipped template has {} mistakes", mistakes.len()))?;
    app.ledger.add_template(&template).await?;
    let (scope, writing) = (scope()?, Writing { how: How::Merge, by, at });
    let organisation = OrganisationWish {
        id: scope.organisation.clone(),
        name: Some("Demo reprocessing site".to_owned()),
        number: None,
    };
    app.ledger.write_organisation(&organisation, &writing).await?;
    let wish = RegistrationWish {
        number: Some(NUMBER.to_owned()),
        title: Some("Plastic".to_owned()),
        template: Some(template.id),
        ..RegistrationWish::new(scope)
    };
    let registration = app.ledger.write_registration(&wish, &writing).await?;
    let facts = facts_of(app, &registration).await?;
    let parsed = Template::parse(WASTE_RECORDS)
        .map_err(|mistakes| anyhow::anyhow!("the shipped template has {} mistakes", mistakes.len()))?;
    let mut empty = Vec::new();
    sheets::write_workbook(&parsed, &facts, &mut empty)?;
    write_once(&folder.join(EMPTY), &empty)?;
    write_once(&folder.join(JANUARY), &filled(&[&NORTH, &SOUTH]))?;
    write_once(&folder.join(FEBRUARY), &filled(&[&NORTH, &SOUTH_CORRECTED, &EAST]))
}

fn scope() -> anyhow::Result<Scope> {
    scope_of("demo-site", "plastic")
}

/// Tables are found by their markers, wherever they stand: here all on one sheet.
fn filled(loads: &[&[&str]]) -> Vec<u8> {
    let mut rows: Vec<&[&str]> = vec![
        &["__SG_META_TEMPLATE", "waste-records"],
        &["__SG_META_VERSION", "2.1"],
        &["__SG_META_REGISTRATION", NUMBER],
        &COLUMNS,
    ];
    rows.extend(loads);
    understudy::office::sample_xlsx(&rows).to_vec()
}

fn write_once(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let what = || format!("cannot write {}", file.display());
    match File::create_new(file) {
        Ok(created) => {
            let mut writer = BufWriter::new(created);
            writer.write_all(bytes).with_context(what)?;
            writer.flush().with_context(what)
        }
        Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(cause).with_context(what),
    }
}

/// How to try it, in another terminal.
pub(super) fn words(app: &App, folder: &Path, token: &str) -> String {
    let (base, folder) = (&app.config.server.public_url, folder.display());
    format!(
        r#"
To hand in a workbook, in another terminal:

  here={base}api/v1/organisations/demo-site/registrations/plastic
  auth='authorization: Bearer {token}'
  curl -H "$auth" --data-binary @{folder}/{JANUARY} "$here/summary-logs?id=january&name={JANUARY}"
  curl -H "$auth" "$here/summary-logs/january"                 # previewStats: what would happen
  curl -H "$auth" -X POST "$here/summary-logs/january/submit"
  curl -H "$auth" "$here/records"

Then {folder}/{FEBRUARY}, with id=february: one load is corrected, one is new. {folder}/{EMPTY} is for your own."#
    )
}
