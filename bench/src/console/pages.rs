//! Every page with every way to look at it, and what its scripts ask for when it opens.
//!
//! The calls are those of `crates/server/assets`: whoever changes what a script asks for at first changes it here.

use super::filling::Filled;

/// A page as somebody opens it.
pub(super) struct PageAsked {
    pub(super) name: &'static str,
    pub(super) path: String,
    /// What its scripts ask for.
    pub(super) calls: Vec<String>,
}

fn page(name: &'static str, path: impl Into<String>, calls: &[String]) -> PageAsked {
    PageAsked { name, path: path.into(), calls: calls.to_vec() }
}

pub(super) fn all(filled: &Filled) -> Vec<PageAsked> {
    let mut pages = documents();
    pages.extend(document(filled));
    pages.extend(submissions(filled));
    pages.extend(records(filled));
    pages.extend(operations(filled));
    pages
}

fn documents() -> Vec<PageAsked> {
    vec![
        page("documents", "/", &[]),
        page("documents by name", "/?company=acme&sort=name", &[]),
        page("documents by name, last first", "/?company=acme&sort=name&order=down", &[]),
        page("documents by size", "/?company=acme&sort=size", &[]),
        page("documents by size, smallest first", "/?company=acme&sort=size&order=up", &[]),
        page("documents, oldest change first", "/?company=acme&sort=changed&order=up", &[]),
        page("documents of a project", "/?company=acme&project=p07", &[]),
        page("documents of a project by size", "/?company=acme&project=p07&sort=size", &[]),
        page("documents of a small company", "/?company=cedar&sort=name", &[]),
        page("documents, page 1000", "/?company=acme&page=1000", &[]),
        page("documents by name, page 1000", "/?company=acme&sort=name&page=1000", &[]),
        page("documents by size, page 1000", "/?company=acme&sort=size&page=1000", &[]),
        page("documents, nothing found", "/?company=acme&words=nothinglikethis", &[]),
        page("documents, few found", "/?company=acme&words=0001234", &[]),
        page("documents, many found", "/?company=acme&words=report", &[]),
        page("documents, two words by size", "/?company=acme&words=report+hamburg&sort=size", &[]),
        page("documents, many found, page 100", "/?company=acme&words=report&sort=name&page=100", &[]),
        page("bin", "/?company=acme&bin=yes", &[]),
        page("bin by name, searched", "/?company=acme&bin=yes&words=plan&sort=name", &[]),
    ]
}

fn document(filled: &Filled) -> Vec<PageAsked> {
    let Filled { long_document, workbook, .. } = filled;
    let here = format!("/api/v1/documents/{long_document}");
    vec![
        page("a document with many versions", format!("/document/{long_document}"), &[]),
        page("its older versions", format!("/document/{long_document}?before=200"), &[]),
        page(
            "its audit trail",
            format!("/document/{long_document}"),
            &[format!("{here}/audit?newest=true&limit=200")],
        ),
        page("its share links", format!("/document/{long_document}"), &[format!("{here}/shares?limit=100")]),
        page("a receipt", format!("/document/{long_document}"), &[format!("{here}/versions/1/receipt")]),
        page(
            "a workbook",
            format!("/document/{workbook}"),
            &[format!("/api/v1/documents/{workbook}/summary-logs")],
        ),
    ]
}

fn submissions(filled: &Filled) -> Vec<PageAsked> {
    let (here, api) = ("/submissions/o1/r1", "/api/v1/organisations/o1/registrations/r1");
    let (log, first) =
        (format!("{api}/summary-logs/{}", filled.preview), format!("{api}/summary-logs/{}", filled.first));
    vec![
        page("submissions", "/submissions", &[]),
        page(
            "a registration",
            here,
            &[format!("{api}/summary-logs?limit=50"), format!("{api}/submissions?limit=50")],
        ),
        page(
            "a preview of many changes",
            format!("{here}/logs/{}", filled.preview),
            &[log.clone(), format!("{log}/changes?limit=100")],
        ),
        page(
            "what was updated, in a preview",
            format!("{here}/logs/{}", filled.preview),
            &[log.clone(), format!("{log}/changes?limit=100&change=updated")],
        ),
        page(
            "a submission of many rows",
            format!("{here}/logs/{}", filled.first),
            &[first.clone(), format!("{first}/changes?limit=100"), format!("{first}/receipt")],
        ),
    ]
}

fn records(filled: &Filled) -> Vec<PageAsked> {
    let (here, api) = ("/submissions/o1/r1/records", "/api/v1/organisations/o1/registrations/r1/records");
    let list = |name, query: &str| page(name, here, &[format!("{api}?limit=100{query}")]);
    let one = format!("/load-in/{}", filled.record);
    vec![
        list("records", ""),
        list("records as of the first submission", "&as_of=1"),
        list("records as of a time", "&as_of=2026-01-02T00:00:00Z"),
        list("records, deep in the list", &format!("&after_kind=load-in&after_key={}", filled.record)),
        list("records with those that ended", "&ended=true"),
        list("records of a kind", "&kind=load-out"),
        list("records of no kind", "&kind=nothing"),
        list("records by key", "&key_prefix=0012"),
        list("records by the last keys", "&key_prefix=9"),
        list("records by a key that is not there", "&key_prefix=nothing"),
        list("records that do not count", "&outcome=excluded"),
        list("records that count in no way", "&outcome=nothing"),
        list("records by a common value", "&column=MATERIAL&value=Plastic"),
        list("records by a rare value", "&column=SUPPLIER&value=Rare+Bins"),
        list("records by a value that is not there", "&column=SUPPLIER&value=nothing"),
        page("a record", format!("{here}{one}"), &[format!("{api}{one}?limit=500")]),
        page(
            "a record with many versions",
            "/submissions/o1/long/records/load-in/0000001",
            &["/api/v1/organisations/o1/registrations/long/records/load-in/0000001?limit=100".to_owned()],
        ),
    ]
}

fn operations(filled: &Filled) -> Vec<PageAsked> {
    let below = |name: &str| format!("/api/v1/operations/{name}");
    let looked = [
        "status",
        "lanes",
        "sessions?limit=200",
        "drain",
        "webhooks",
        "submissions?limit=50",
        "pulse",
        "examination",
    ];
    let audit = |name, query: &str| {
        page(name, "/audit", &[format!("/api/v1/companies/acme/audit?newest=true&limit=200{query}")])
    };
    vec![
        page("operations", "/operations", &looked.map(below)),
        page("operations, older kept copies", format!("/operations?before={}", filled.kept), &[]),
        audit("audit", ""),
        audit("audit of a person", "&user=user07"),
        audit("audit of nobody", "&user=nobody"),
        audit("audit of an act", "&action=document-deleted"),
        audit("audit of no act", "&action=nothing"),
        audit("audit of a day long ago", "&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z"),
        page(
            "audit of an organisation",
            "/audit",
            &["/api/v1/organisations/o1/audit?newest=true&limit=200".to_owned()],
        ),
        page("sign in", "/sign-in", &[]),
    ]
}
