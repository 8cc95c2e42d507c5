//! Documents of three companies with their versions, a bin, kept copies and share links.

use std::sync::Arc;

use anyhow::{Result, bail};
use jiff::SignedDuration;
use ledger::Ledger;
use ledger::changes::{ChangeOutcome, ChangeRequest, ChangeSource, EditorsInside, HeadChange};
use ledger::documents::{Company, NewDocument, Project, UnnamedBlob};
use ledger::shares::NewShare;
use model::names::FileName;
use model::sharing::{Allows, DownloadSwitch};
use model::{CompanyId, Digest, DocumentId, Label, ProjectId};

use super::{blob, each, moment, person};

const COMPANIES: [&str; 3] = ["acme", "borealis", "cedar"];
const PROJECTS: u32 = 20;
/// Contents that documents share, so that there are not as many blobs as versions.
const BLOBS: u32 = 40_000;
const LONG_VERSIONS: u32 = 500;
const LONG: &str = "d0000000";
const WORKBOOK: &str = "d0000003";
const KEPT: u32 = 1_000;
const LINKS: u32 = 300;
const KINDS: [&str; 4] = ["docx", "docx", "pptx", "xlsx"];
const WHAT: [&str; 8] = ["report", "plan", "Budget", "minutes", "Contract", "letter", "offer", "Summary"];
const WHERE: [&str; 7] = ["Hamburg", "Berlin", "Łódź", "Lyon", "Porto", "Graz", "Kyiv"];

/// Where pages find what.
pub(super) struct Documents {
    pub(super) long_document: String,
    pub(super) workbook: String,
    pub(super) kept: u64,
}

pub(super) async fn fill(ledger: &Arc<dyn Ledger>, count: u32) -> Result<Documents> {
    companies(ledger.as_ref()).await?;
    let of = Arc::clone(ledger);
    each(count, move |number| {
        let ledger = Arc::clone(&of);
        async move { document(ledger.as_ref(), number).await }
    })
    .await?;
    for number in 2..=LONG_VERSIONS {
        put(ledger.as_ref(), &DocumentId::parse(LONG)?, number).await?;
    }
    settle(ledger.as_ref(), &DocumentId::parse(LONG)?, LONG_VERSIONS).await?;
    let kept = kept(ledger.as_ref(), count).await?;
    links(ledger.as_ref(), count).await?;
    Ok(Documents { long_document: LONG.to_owned(), workbook: WORKBOOK.to_owned(), kept })
}

async fn companies(ledger: &dyn Ledger) -> Result<()> {
    for name in COMPANIES {
        let (company, by, created_at) = (CompanyId::parse(name)?, person(0), moment(0)?);
        ledger.create_company(&Company::new(company.clone(), name.to_owned(), created_at), &by).await?;
        for project in 0..PROJECTS {
            let (company, id) = (company.clone(), ProjectId::parse(&format!("p{project:02}"))?);
            let project = Project { company, id, name: format!("Project {project:02}"), created_at };
            ledger.create_project(&project, &by).await?;
        }
    }
    Ok(())
}

/// Six of ten belong to the first company, and one to the last.
fn company_of(number: u32) -> &'static str {
    match number % 10 {
        0..6 => COMPANIES[0],
        6..9 => COMPANIES[1],
        _ => COMPANIES[2],
    }
}

fn id(number: u32) -> Result<DocumentId> {
    Ok(DocumentId::parse(&format!("d{number:07}"))?)
}

async fn document(ledger: &dyn Ledger, number: u32) -> Result<()> {
    let at = |of: &[&'static str], number: u32| of[number as usize % of.len()];
    let kind = at(&KINDS, number);
    let name = format!("{} {} {number:07}.{kind}", at(&WHAT, number / 3), at(&WHERE, number / 5));
    let new = NewDocument {
        id: id(number)?,
        company: CompanyId::parse(company_of(number))?,
        project: ProjectId::parse(&format!("p{:02}", number / 10 % PROJECTS))?,
        name: FileName::parse(&name)?,
        blob: blob(number % BLOBS, kind),
        author: person(number),
        at: moment(number)?,
    };
    ledger.create_document(&new).await?;
    let mut versions = 1;
    if number % 2 == 1 {
        put(ledger, &new.id, 2).await?;
        versions = 2;
    }
    settle(ledger, &new.id, versions).await?;
    if number % 50 == 45 {
        ledger.delete_document(&request(&new.id, number)?).await?;
    }
    Ok(())
}

fn request(document: &DocumentId, number: u32) -> Result<ChangeRequest> {
    Ok(ChangeRequest {
        document: document.clone(),
        who: person(number),
        knowledge: None,
        quiet_after: SignedDuration::from_secs(10),
        at: moment(200_000 + number)?,
    })
}

async fn put(ledger: &dyn Ledger, document: &DocumentId, version: u32) -> Result<()> {
    let change = HeadChange {
        request: request(document, version)?,
        blob: blob(BLOBS + version, "docx"),
        from: ChangeSource::Upload,
        expected_head: None,
        editors: EditorsInside::Refuse,
    };
    match ledger.put_version(&change).await? {
        ChangeOutcome::Done(_) => Ok(()),
        other => bail!("version {version} of {document}: {other:?}"),
    }
}

/// Neither owed to the published tree nor in it.
async fn settle(ledger: &dyn Ledger, document: &DocumentId, version: u32) -> Result<()> {
    ledger.published(document, Label::version(version), moment(0)?).await?;
    Ok(ledger.withdrawn(document, moment(0)?).await?)
}

/// Conflict copies and orphans; every second one was dismissed. Returns the number of one in the middle.
async fn kept(ledger: &dyn Ledger, documents: u32) -> Result<u64> {
    let mut middle = 0;
    for number in 0..KEPT {
        let document = if number % 4 == 0 { None } else { Some(id(number * 7 % documents)?) };
        let found = UnnamedBlob {
            blob: blob(1_000_000 + number, "docx"),
            document,
            key: None,
            is_record_of_changes: false,
            at: moment(100_000 + number)?,
        };
        let Some(kept) = ledger.keep_unnamed(&found).await? else { bail!("a copy was not kept") };
        if number % 2 == 0 {
            ledger.dismiss_kept(kept, &person(number), found.at).await?;
        }
        if number == KEPT / 2 {
            middle = kept;
        }
    }
    Ok(middle)
}

/// Most of them open the document with many versions.
async fn links(ledger: &dyn Ledger, documents: u32) -> Result<()> {
    for number in 0..LINKS {
        let new = NewShare {
            hash: Digest::of(format!("link {number}").as_bytes()),
            document: if number % 3 == 0 { id(number * 2 % documents)? } else { DocumentId::parse(LONG)? },
            label: format!("For guest {number}"),
            allows: Allows::Edit,
            download: DownloadSwitch::On,
            password: None,
            expires_at: None,
            by: person(number),
            at: moment(number)?,
        };
        ledger.create_share(&new).await?;
    }
    Ok(())
}
