//! API tokens, on SQLite.
//!
//! Guarantees: a token is found by the hash of all its bits through an index. How long that takes may depend on the hash,
//! which tells nothing: whoever guesses tokens cannot choose what they hash to.

use async_trait::async_trait;
use jiff::Timestamp;
use model::Digest;
use model::access::{Companies, Role};
use rusqlite::{Connection, Row, params};
use serde_json::json;

use super::SqliteLedger;
use super::audit::{Actor, CompanyAct, append_company_act};
use super::facts::exists;
use super::rows::{Stored, asked, get, get_optional, ms, optional, optional_ms};
use crate::adapting::tokens::{companies, companies_text, organisations, organisations_text};
use crate::callers::{ApiToken, NewApiToken, Revocation};
use crate::documents::Author;
use crate::{Callers, LedgerError, Result};

#[async_trait]
impl Callers for SqliteLedger {
    async fn create_api_token(&self, new: &NewApiToken) -> Result<ApiToken> {
        let new = new.clone();
        self.write(move |connection, _| create(connection, &new)).await
    }

    async fn api_token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>> {
        let hash = *hash;
        self.read(move |connection| {
            let mut query = connection.prepare_cached("SELECT * FROM api_tokens WHERE hash = ?1")?;
            optional(query.query_row([Stored(hash)], token))
        })
        .await
    }

    async fn api_token(&self, number: u64) -> Result<Option<ApiToken>> {
        self.read(move |connection| find(connection, number)).await
    }

    async fn api_tokens(&self, after: u64, limit: u32) -> Result<Vec<ApiToken>> {
        self.read(move |connection| {
            let mut query = connection
                .prepare_cached("SELECT * FROM api_tokens WHERE number > ?1 ORDER BY number LIMIT ?2")?;
            Ok(query.query_map(params![asked(after), limit], token)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn note_api_token_used(&self, number: u64, at: Timestamp) -> Result<()> {
        self.write(move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE api_tokens SET last_used_ms = max(coalesce(last_used_ms, ?2), ?2) WHERE number = ?1",
                )?
                .execute(params![number, ms(at)])?;
            Ok(())
        })
        .await
    }

    async fn revoke_api_token(&self, revocation: &Revocation) -> Result<bool> {
        let revocation = revocation.clone();
        self.write(move |connection, _| revoke(connection, &revocation)).await
    }
}

fn create(connection: &Connection, new: &NewApiToken) -> Result<ApiToken> {
    if let Companies::Only(companies) = &new.companies {
        for company in companies {
            if !exists(connection, "SELECT 1 FROM companies WHERE id = ?1", params![company.as_str()])? {
                return Err(LedgerError::not_found(format!("company `{company}`")));
            }
        }
    }
    connection.execute(
        "INSERT INTO api_tokens (hash, name, role, companies, organisations, created_by, created_ms, expires_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            Stored(new.hash),
            new.name,
            new.role.as_str(),
            companies_text(&new.companies).to_string(),
            organisations_text(&new.organisations).to_string(),
            new.by.id,
            ms(new.at),
            optional_ms(new.expires_at),
        ],
    )?;
    let number = u64::try_from(connection.last_insert_rowid()).map_err(LedgerError::damaged)?;
    let token = find(connection, number)?
        .ok_or_else(|| LedgerError::damaged("a token that was just written is gone"))?;
    note(connection, &token, (&new.by, new.at), "token-created")?;
    Ok(token)
}

fn revoke(connection: &Connection, revocation: &Revocation) -> Result<bool> {
    let token = find(connection, revocation.number)?
        .ok_or_else(|| LedgerError::not_found(format!("token {}", revocation.number)))?;
    if token.revoked_at.is_some() {
        return Ok(false);
    }
    connection.execute(
        "UPDATE api_tokens SET revoked_ms = ?2 WHERE number = ?1",
        params![revocation.number, ms(revocation.at)],
    )?;
    note(connection, &token, (&revocation.by, revocation.at), "token-revoked")?;
    Ok(true)
}

fn find(connection: &Connection, number: u64) -> Result<Option<ApiToken>> {
    let mut query = connection.prepare_cached("SELECT * FROM api_tokens WHERE number = ?1")?;
    optional(query.query_row([asked(number)], token))
}

/// Writes an act down in the chain of every company the token opens, or of the installation if it opens all or none.
fn note(
    connection: &Connection,
    token: &ApiToken,
    (by, at): (&Author, Timestamp),
    action: &str,
) -> Result<()> {
    let companies = match &token.companies {
        Companies::Only(companies) if !companies.is_empty() => companies.iter().map(Some).collect(),
        Companies::All | Companies::Only(_) => vec![None],
    };
    for company in companies {
        let details = json!({
            "token": token.number,
            "name": token.name,
            "role": token.role.as_str(),
            "organisations": organisations_text(&token.organisations),
            "expiresMs": optional_ms(token.expires_at),
        });
        let actor = Actor::person(by);
        append_company_act(connection, &CompanyAct { company, at, actor, action, details })?;
    }
    Ok(())
}

fn token(row: &Row<'_>) -> rusqlite::Result<ApiToken> {
    Ok(ApiToken {
        number: row.get("number")?,
        name: row.get("name")?,
        role: read(row, "role", Role::parse)?,
        companies: read(row, "companies", companies)?,
        organisations: read(row, "organisations", organisations)?,
        created_by: row.get("created_by")?,
        created_at: get(row, "created_ms")?,
        expires_at: get_optional(row, "expires_ms")?,
        last_used_at: get_optional(row, "last_used_ms")?,
        revoked_at: get_optional(row, "revoked_ms")?,
    })
}

fn read<T>(row: &Row<'_>, column: &str, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| rusqlite::Error::InvalidColumnName(column.to_owned()))
}
