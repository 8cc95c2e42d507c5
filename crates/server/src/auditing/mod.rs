//! Auditing: the trail on its way out, as lines that anybody can check.
//!
//! Guarantees: an export is the chains of companies first, then those of documents, each whole and in order, between a first
//! and a last line; one that broke off lacks the last. A page at a time is in memory. It changes nothing, and what is
//! committed meanwhile is either in it or not.
//! Does not do: decide who may read it (the edges do), or check it (`model::trail_file` does).

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::LedgerError;
use model::trail::{chain_of, is_company_chain};
use model::trail_file::{Scope, entry_line, first_line, last_line};
use model::{CompanyId, DocumentId};

use crate::app::App;

/// Entries or chains in memory at once.
const PAGE: u32 = 500;

/// What is wanted.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Everything.
    All,
    /// A company with all its documents.
    Company(CompanyId),
    /// One document by itself.
    Document(DocumentId),
    /// One document, with the anchors of its company.
    Anchored(DocumentId, CompanyId),
}

/// An export that is being written.
pub struct Export {
    app: Arc<App>,
    company: Option<CompanyId>,
    state: State,
    /// Chains to write, and the one that is being written with how far it is.
    chains: VecDeque<String>,
    written: u64,
    entries: u64,
    /// Where the list of chains goes on; `None` if it is complete.
    listed: Option<String>,
}

enum State {
    First(Scope),
    Entries,
    Ended,
}

impl Export {
    /// Begins an export.
    pub fn new(app: Arc<App>, wanted: Wanted) -> Self {
        let (scope, company, chains, listed) = match wanted {
            Wanted::All => (Scope::All, None, Vec::new(), Some(String::new())),
            Wanted::Company(company) => {
                let chains = vec![chain_of(&company)];
                (Scope::company(&company), Some(company), chains, Some(String::new()))
            }
            Wanted::Document(document) => {
                (Scope::document(&document), None, vec![document.to_string()], None)
            }
            Wanted::Anchored(document, company) => {
                let chains = vec![chain_of(&company), document.to_string()];
                (Scope::document(&document), Some(company), chains, None)
            }
        };
        Self {
            app,
            company,
            state: State::First(scope),
            chains: chains.into(),
            written: 0,
            entries: 0,
            listed,
        }
    }

    /// The next lines, each with its line feed; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<String>, LedgerError> {
        match &self.state {
            State::Ended => Ok(None),
            State::First(scope) => {
                let line = first_line(scope, self.app.now()) + "\n";
                if *scope == Scope::All {
                    let companies = self.app.ledger.companies().await?;
                    self.chains = companies.iter().map(|company| chain_of(&company.id)).collect();
                }
                self.state = State::Entries;
                Ok(Some(line))
            }
            State::Entries => match self.entries().await? {
                Some(lines) => Ok(Some(lines)),
                None => {
                    self.state = State::Ended;
                    Ok(Some(last_line(self.entries) + "\n"))
                }
            },
        }
    }

    async fn entries(&mut self) -> Result<Option<String>, LedgerError> {
        while let Some(chain) = self.chain().await? {
            let page = self.app.ledger.audit(&chain, self.written, PAGE).await?;
            let Some((last, _)) = page.last() else {
                self.chains.pop_front();
                self.written = 0;
                continue;
            };
            self.written = last.sequence;
            self.entries += page.len() as u64;
            return Ok(Some(page.iter().map(|(entry, hash)| entry_line(entry, hash) + "\n").collect()));
        }
        Ok(None)
    }

    /// The chain that is being written.
    async fn chain(&mut self) -> Result<Option<String>, LedgerError> {
        while self.chains.is_empty()
            && let Some(after) = self.listed.take()
        {
            let page = self.app.ledger.chains(self.company.as_ref(), &after, PAGE).await?;
            self.listed = page.last().cloned();
            self.chains.extend(page.into_iter().filter(|chain| !is_company_chain(chain)));
        }
        Ok(self.chains.front().cloned())
    }
}
