//! API tokens, on PostgreSQL.
//!
//! Guarantees: a token is found by the hash of all its bits through an index. How long that takes may depend on the hash,
//! which tells nothing: whoever guesses tokens cannot choose what they hash to.

use async_trait::async_trait;
use jiff::Timestamp;
use model::access::{Companies, Role};
use model::{CompanyId, Digest};
use serde_json::json;
use tokio_postgres::Row;

use super::PostgresLedger;
use super::audit::{Actor, CompanyAct, append_company_act};
use super::rows::{Stored, all, asked, get, get_optional, ms, optional_ms, text};
use super::step::Step;
use crate::adapting::tokens::{companies, companies_text, organisations, organisations_text};
use crate::callers::{ApiToken, NewApiToken, Revocation};
use crate::documents::Author;
use crate::{Callers, LedgerError, Result};

const COLUMNS: &str = "number, name, role, companies, organisations, created_by, created_ms, expires_ms, last_used_ms, revoked_ms
    FROM api_tokens";

#[async_trait]
impl Callers for PostgresLedger {
    async fn create_api_token(&self, new: &NewApiToken) -> Result<ApiToken> {
        let step = self.write().await?;
        let done = create(&step, new).await;
        step.end(done).await
    }

    async fn api_token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>> {
        let query = format!("SELECT {COLUMNS} WHERE hash = $1");
        let step = self.glance().await?;
        let found = step.query_optional(&query, &[&Stored(*hash)]).await;
        step.end(found).await?.as_ref().map(token).transpose()
    }

    async fn api_token(&self, number: u64) -> Result<Option<ApiToken>> {
        let step = self.read().await?;
        let done = find(&step, number).await;
        step.end(done).await
    }

    async fn api_tokens(&self, after: u64, limit: u32) -> Result<Vec<ApiToken>> {
        let query = format!("SELECT {COLUMNS} WHERE number > $1 ORDER BY number LIMIT $2");
        let step = self.glance().await?;
        let found = step.query(&query, &[&asked(after), &i64::from(limit)]).await;
        step.end(found).await.and_then(|rows| all(&rows, token))
    }

    async fn note_api_token_used(&self, number: u64, at: Timestamp) -> Result<()> {
        let update = "UPDATE api_tokens SET last_used_ms = greatest(last_used_ms, $2) WHERE number = $1";
        let step = self.write().await?;
        let done = step.execute(update, &[&asked(number), &ms(at)]).await.map(drop);
        step.end(done).await
    }

    async fn revoke_api_token(&self, revocation: &Revocation) -> Result<bool> {
        let step = self.write().await?;
        let done = revoke(&step, revocation).await;
        step.end(done).await
    }
}

async fn create(step: &Step, new: &NewApiToken) -> Result<ApiToken> {
    if let Companies::Only(companies) = &new.companies {
        let ids: Vec<&str> = companies.iter().map(CompanyId::as_str).collect();
        let query = "SELECT n.id FROM UNNEST($1::text[]) WITH ORDINALITY AS n (id, place)
                     WHERE NOT EXISTS (SELECT 1 FROM companies c WHERE c.id = n.id) ORDER BY n.place LIMIT 1";
        if let Some(missing) = step.query_optional(query, &[&ids]).await? {
            return Err(LedgerError::not_found(format!("company `{}`", get::<String>(&missing, "id")?)));
        }
    }
    let insert = format!(
        "INSERT INTO api_tokens (hash, name, role, companies, organisations, created_by, created_ms, expires_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING {}",
        COLUMNS.trim_end_matches("FROM api_tokens")
    );
    let row = step
        .query_one(
            &insert,
            &[
                &Stored(new.hash),
                &text(&new.name),
                &new.role.as_str(),
                &companies_text(&new.companies).to_string(),
                &organisations_text(&new.organisations).to_string(),
                &text(&new.by.id),
                &ms(new.at),
                &optional_ms(new.expires_at),
            ],
        )
        .await?;
    let token = token(&row)?;
    note(step, &token, (&new.by, new.at), "token-created").await?;
    Ok(token)
}

async fn revoke(step: &Step, revocation: &Revocation) -> Result<bool> {
    let update = "UPDATE api_tokens SET revoked_ms = $2 WHERE number = $1 AND revoked_ms IS NULL";
    let revoked = step.execute(update, &[&asked(revocation.number), &ms(revocation.at)]).await?;
    let token = find(step, revocation.number)
        .await?
        .ok_or_else(|| LedgerError::not_found(format!("token {}", revocation.number)))?;
    if revoked == 0 {
        return Ok(false);
    }
    note(step, &token, (&revocation.by, revocation.at), "token-revoked").await?;
    Ok(true)
}

async fn find(step: &Step, number: u64) -> Result<Option<ApiToken>> {
    let query = format!("SELECT {COLUMNS} WHERE number = $1");
    step.query_optional(&query, &[&asked(number)]).await?.as_ref().map(token).transpose()
}

/// Writes an act down in the chain of every company the token opens, or of the installation if it opens all or none.
async fn note(step: &Step, token: &ApiToken, (by, at): (&Author, Timestamp), action: &str) -> Result<()> {
    let companies = match &token.companies {
        Companies::Only(companies) if !companies.is_empty() => in_order_of_locks(companies),
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
        append_company_act(step, &CompanyAct { company, at, actor, action, details }).await?;
    }
    Ok(())
}

fn in_order_of_locks(companies: &[CompanyId]) -> Vec<Option<&CompanyId>> {
    let mut companies: Vec<_> = companies.iter().map(Some).collect();
    companies.sort();
    companies
}

fn token(row: &Row) -> Result<ApiToken> {
    Ok(ApiToken {
        number: get(row, "number")?,
        name: get(row, "name")?,
        role: read(row, "role", Role::parse)?,
        companies: read(row, "companies", companies)?,
        organisations: read(row, "organisations", organisations)?,
        created_by: get(row, "created_by")?,
        created_at: get(row, "created_ms")?,
        expires_at: get_optional(row, "expires_ms")?,
        last_used_at: get_optional(row, "last_used_ms")?,
        revoked_at: get_optional(row, "revoked_ms")?,
    })
}

fn read<T>(row: &Row, column: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text: String = get(row, column)?;
    parse(&text).ok_or_else(|| LedgerError::damaged(format!("column `{column}` of an API token")))
}
