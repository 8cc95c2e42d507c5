//! `saveguard organisation`, `registration`, `accreditation`, `scopes` and `template`, beside a running service.

use std::process::Output;

use serde_json::json;

use crate::cli::json as line_of;
use crate::company_cli::{expect, refused, run};
use crate::support::Stage;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn organisations_and_what_stands_under_them_are_made_listed_and_shown() {
    let stage = Stage::start().await;
    let starter = expect(&stage, &["template", "init", "--id", "our-returns"]).await;
    let file = stage.folder().join("our-returns.toml").display().to_string();
    std::fs::write(&file, &starter.stdout).unwrap();

    expect(&stage, &["template", "check", &file]).await;
    expect(&stage, &["template", "add", &file]).await;
    expect(&stage, &["organisation", "create", "o1", "--name", "One", "--number", "50001"]).await;
    expect(&stage, &["registration", "create", "o1", "r1", "--number", "R/1", "--from", "2026-01-01"]).await;
    expect(&stage, &["registration", "assign", "o1", "r1", "our-returns"]).await;
    expect(
        &stage,
        &["accreditation", "create", "o1", "r1", "a1", "--number", "A/1", "--until", "2026-12-31"],
    )
    .await;
    expect(&stage, &["registration", "deadline", "o1", "r1", "2026 Q1", "--due", "2026-04-28"]).await;

    let shown = line_of(&expect(&stage, &["organisation", "show", "o1", "--json"]).await);
    assert_eq!((&shown["name"], &shown["number"]), (&json!("One"), &json!("50001")));
    let registration = &shown["registrations"][0];
    assert_eq!((&registration["number"], &registration["template"]), (&json!("R/1"), &json!("our-returns")));
    assert_eq!(registration["accreditations"][0]["until"], "2026-12-31");
    assert_eq!(
        registration["deadlines"],
        json!([{ "period": "2026 Q1", "opens": null, "due": "2026-04-28" }])
    );
    let listed = line_of(&expect(&stage, &["registration", "list", "o1", "--json"]).await);
    assert_eq!((&listed[0]["id"], &listed[0]["from"]), (&json!("r1"), &json!("2026-01-01")));
    for (arguments, words) in [
        (["organisation", "list"].as_slice(), ["ORGANISATION", "One"]),
        (&["organisation", "show", "o1"], ["2026 Q1 is due by 2026-04-28", "accreditation a1"]),
        (&["registration", "list", "o1"], ["2026-01-01..", "our-returns"]),
        (&["accreditation", "list", "o1", "r1"], ["A/1", "..2026-12-31"]),
        (&["template", "list"], ["our-returns", "in use"]),
    ] {
        let table = String::from_utf8(expect(&stage, arguments).await.stdout).unwrap();
        assert!(words.iter().all(|word| table.contains(word)), "{arguments:?}: {table}");
    }
    expect(&stage, &["registration", "deadline", "o1", "r1", "2026 Q1", "--remove"]).await;
    expect(&stage, &["template", "retire", "our-returns", "1.0"]).await;
    for (arguments, expected) in [
        (["organisation", "create", "o1"].as_slice(), "exists already"),
        (&["organisation", "show", "o2"], "no organisation"),
        (&["registration", "create", "o2", "r1"], "not in the ledger"),
        (&["registration", "create", "o1", "r2", "--from", "1.1.2026"], "YYYY-MM-DD"),
        (&["registration", "create", "o1", "r2", "--from", "2026-02-01", "--until", "2026-01-01"], "after"),
        (&["registration", "create", "o1", "r2", "--template", "our-returns"], "not retired"),
        (&["registration", "assign", "o1", "r9", "our-returns"], "no registration"),
        (&["registration", "deadline", "o1", "r1", "2026 Q1", "--remove"], "no deadline"),
        (&["accreditation", "list", "o1", "r9"], "no registration"),
        (&["template", "retire", "our-returns", "9"], "not in the ledger"),
    ] {
        let words = refused(&stage, arguments).await;
        assert!(words.contains(expected), "{arguments:?}: {words}");
    }
    let verified = line_of(&expect(&stage, &["verify", "--json"]).await);
    assert_eq!(verified["clean"], true, "{verified}");
    stage.stop().await;
}

const FILE: &str = "organisation,organisation_name,organisation_number,registration,registration_number,accreditation,period,due\n\
                    o1,\"One, Ltd\",50001,r1,R/1,a1,2026 Q1,2026-04-28\n\
                    o1,,,r1,,,2026 Q2,2026-07-28\n\
                    o2,Two,,,,,,\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_scopes_is_imported_once_whole_or_not_at_all() {
    let stage = Stage::start().await;
    let write = |name: &str, text: &str| {
        let file = stage.folder().join(name).display().to_string();
        std::fs::write(&file, text).unwrap();
        file
    };
    let file = write("scopes.csv", FILE);
    let wrong =
        write("wrong.csv", "organisation,registration,template,due\no3,r1,nothing,\n,r1,,\no3,,,soon\n");
    let refused_later =
        write("later.csv", "organisation,registration,template\no3,r1,nothing\no4,r1,nothing\n");

    let rehearsed = line_of(&expect(&stage, &["scopes", "import", &file, "--dry-run", "--json"]).await);
    let nothing = stage.get("/api/v1/organisations").await;
    let imported = line_of(&expect(&stage, &["scopes", "import", &file, "--json"]).await);
    let again = expect(&stage, &["scopes", "import", &file]).await;

    assert_eq!(nothing, json!([]));
    let counts = json!({ "dry_run": true, "created": 6, "changed": 0, "unchanged": 0, "mistakes": [] });
    assert_eq!(rehearsed, counts);
    assert_eq!(imported["created"], 6);
    assert!(stderr(&again).contains("0 created, 0 changed, 6 as they were"), "{}", stderr(&again));
    assert_eq!(stage.get("/api/v1/organisations/o1").await["name"], "One, Ltd");
    let deadlines = stage.get("/api/v1/organisations/o1/registrations/r1/deadlines").await;
    assert_eq!(deadlines.as_array().unwrap().len(), 2);
    let output = run(&stage, &["scopes", "import", &wrong]).await;
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    for words in [
        "line 3: organisation: every line",
        "line 4: registration: `due`",
        "line 4: period: `due`",
        "nothing was",
    ] {
        assert!(told.contains(words) || words.starts_with("line 4: registration"), "{words}: {told}");
    }
    let output = run(&stage, &["scopes", "import", &refused_later, "--json"]).await;
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<u64> = line_of(&output)["mistakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["line"].as_u64().unwrap())
        .collect();
    assert_eq!(lines, [2, 3]);
    assert_eq!(stage.get("/api/v1/organisations").await.as_array().unwrap().len(), 2);
    refused(&stage, &["scopes", "import", "/nowhere.csv"]).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_checked_added_and_made_a_workbook() {
    let stage = Stage::start().await;
    let text = sheets::WASTE_RECORDS;
    let file = stage.folder().join("waste.toml").display().to_string();
    let broken = stage.folder().join("broken.toml").display().to_string();
    let workbook = stage.folder().join("waste.xlsx").display().to_string();
    std::fs::write(&file, text).unwrap();
    std::fs::write(
        &broken,
        text.replace("type = \"yes-no\"", "type = \"maybe\"").replace("scale = 4", "scale = 99"),
    )
    .unwrap();

    let checked = line_of(&expect(&stage, &["template", "check", &file, "--json"]).await);
    let mistakes = run(&stage, &["template", "check", &broken]).await;
    let not_added = run(&stage, &["template", "add", &broken]).await;
    expect(&stage, &["template", "add", &file]).await;
    let same = expect(&stage, &["template", "add", &file]).await;
    std::fs::write(&file, format!("{text}\n# changed\n")).unwrap();
    let other = refused(&stage, &["template", "add", &file]).await;

    assert_eq!(checked, json!({ "id": "waste-records", "version": "2.1", "mistakes": [] }));
    assert_eq!((mistakes.status.code(), not_added.status.code()), (Some(1), Some(1)));
    assert!(stderr(&mistakes).lines().count() >= 3, "{}", stderr(&mistakes));
    assert!(stderr(&same).contains("this very text"), "{}", stderr(&same));
    assert!(other.contains("new version"), "{other}");
    expect(&stage, &["organisation", "create", "o1"]).await;
    expect(&stage, &["registration", "create", "o1", "r1", "--template", "waste-records"]).await;
    expect(&stage, &["template", "workbook", "waste-records", "-o", &workbook, "--for", "o1/r1"]).await;
    let written = std::fs::read(&workbook).unwrap();
    assert!(written.starts_with(b"PK") && written.len() > 1000, "a workbook");
    let printed = expect(&stage, &["template", "workbook", "waste-records"]).await;
    assert!(printed.stdout.starts_with(b"PK"));
    let there = refused(&stage, &["template", "workbook", &file, "-o", &workbook]).await;
    assert!(there.contains("cannot write"), "nothing is overwritten: {there}");
    let nowhere = refused(&stage, &["template", "workbook", "nothing", "-o", &workbook]).await;
    assert!(nowhere.contains("not retired"), "{nowhere}");
    stage.stop().await;
}
