//! The documents that are held: brought in, opened as the host application opens them, and compared in the end.
//!
//! Guarantees: whatever an answer of 0 promised must be listed as a version or a checkpoint, each save once.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use understudy::load::Invite;

use super::witness::Witness;
use crate::stage::{Service, Template};

/// Requests at the same time.
const SIDE_BY_SIDE: usize = 8;
const PAGE: usize = 1000;

/// Documents of one phase: `<name>-<number>`.
pub(super) struct Documents {
    service: Arc<Service>,
    name: &'static str,
    count: usize,
}

impl Documents {
    /// Brings them in.
    pub(super) async fn bring(
        service: &Arc<Service>,
        name: &'static str,
        (count, template): (usize, &Template),
    ) -> Result<Self> {
        let documents = Self { service: Arc::clone(service), name, count };
        let mut uploads = JoinSet::new();
        for number in 0..count {
            if uploads.len() >= SIDE_BY_SIDE {
                uploads.join_next().await.context("an upload")???;
            }
            let (service, id) = (Arc::clone(service), documents.id(number));
            let bytes = template.copy(u64::try_from(number)?);
            uploads.spawn(async move { service.upload(&id, bytes).await });
        }
        while let Some(done) = uploads.join_next().await {
            done??;
        }
        Ok(documents)
    }

    /// Configurations for the editor, as the host application asks for them.
    pub(super) fn invitations(&self) -> Invite {
        let (service, name) = (Arc::clone(&self.service), self.name);
        Arc::new(move |number, user| {
            let service = Arc::clone(&service);
            let path = format!("/api/v1/documents/{}/editor-config", id_of(name, number));
            Box::pin(async move {
                let answer = service.post(&path, &user, &json!({ "mode": "edit" })).await;
                answer.map(|view| view["config"].clone()).map_err(|error| format!("{error:#}"))
            })
        })
    }

    /// How many of them the server lists as being edited by somebody.
    pub(super) async fn sessions_listed(&self) -> Result<usize> {
        let mut count = 0;
        let mut after = String::new();
        loop {
            let path = format!("/api/v1/operations/sessions?limit={PAGE}{after}");
            let page = self.service.get(&path).await?;
            let sessions = page["sessions"].as_array().context("no list of sessions")?;
            count += sessions.iter().filter(|session| self.is_held(session)).count();
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(count),
            }
        }
    }

    fn is_held(&self, session: &Value) -> bool {
        let is_ours = session["document"].as_str().is_some_and(|id| id.starts_with(self.name));
        let has_people = session["people"].as_array().is_some_and(|people| !people.is_empty());
        is_ours && has_people && session["state"] == "editing"
    }

    /// Holds the contents that are listed against those that were promised.
    pub(super) async fn compare(&self, witness: &mut Witness) -> Result<()> {
        let mut lists = JoinSet::new();
        for number in 0..self.count {
            if lists.len() >= SIDE_BY_SIDE {
                judge(lists.join_next().await.context("a list")???, witness);
            }
            let (service, id) = (Arc::clone(&self.service), self.id(number));
            lists.spawn(async move {
                let list = contents_of(&service, &id).await?;
                anyhow::Ok((id, list))
            });
        }
        while let Some(done) = lists.join_next().await {
            judge(done??, witness);
        }
        Ok(())
    }

    fn id(&self, number: usize) -> String {
        id_of(self.name, number)
    }
}

fn id_of(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

/// Everything that is listed of a document, page by page.
async fn contents_of(service: &Service, id: &str) -> Result<Vec<Value>> {
    let mut contents: Vec<Value> = Vec::new();
    loop {
        let before = contents.last().and_then(|content| content["version"].as_str());
        let after = before.map(|before| format!("&before={before}")).unwrap_or_default();
        let page = service.get(&format!("/api/v1/documents/{id}/versions?limit=1000{after}")).await?;
        let page = page.as_array().with_context(|| format!("{id} has no list of versions"))?;
        if page.is_empty() {
            return Ok(contents);
        }
        contents.extend(page.iter().cloned());
    }
}

fn judge((id, contents): (String, Vec<Value>), witness: &mut Witness) {
    let saved = contents.iter().filter(|content| content["origin"] != "upload");
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    for content in saved {
        *listed.entry(content["sha256"].as_str().unwrap_or_default()).or_default() += 1;
    }
    for (hash, promised) in witness.promised(&id) {
        let found = listed.remove(hash.as_str()).unwrap_or_default();
        if found < promised {
            witness.fail(format!("a save was answered 0 and is not listed (first: {id}, {hash})"));
        } else if found > promised {
            witness.fail(format!("a save is listed more than once (first: {id}, {hash})"));
        }
    }
    if let Some(hash) = listed.keys().next() {
        witness.fail(format!("a content is listed that nobody sent (first: {id}, {hash})"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::tests::witness_of_a_save;
    use super::*;

    fn errors_with(hashes: &[&str]) -> usize {
        let mut witness = witness_of_a_save(r#"{"error":0}"#);
        let mut list = vec![json!({ "origin": "upload", "sha256": "first" })];
        list.extend(hashes.iter().map(|hash| json!({ "origin": "force-save", "sha256": hash })));
        judge(("d".to_owned(), list), &mut witness);
        witness.errors()
    }

    #[test]
    fn what_was_promised_must_be_listed_once_and_nothing_else() {
        assert_eq!(errors_with(&["abc"]), 0);
        assert_eq!(errors_with(&[]), 1);
        assert_eq!(errors_with(&["abc", "abc"]), 1);
        assert_eq!(errors_with(&["abc", "other"]), 1);
    }
}
