//! The part of the port about API tokens: who made them, what they open, until when.
//!
//! Guarantees: the token itself is never here, only its hash; a revoked one stays listed and revoked for ever; making and
//! revoking are in the audit trail of every company the token opens, in the same step.
//! Does not do: say whether a token counts now. [`ApiToken::counts_at`] does, with the caller's clock.

use async_trait::async_trait;
use jiff::Timestamp;
use model::Digest;
use model::access::{Caller, Companies, Organisations, Role};

use crate::Result;
use crate::documents::Author;

/// API tokens.
#[async_trait]
pub trait Callers: Send + Sync {
    /// Adds a token. Every company it names must exist.
    async fn create_api_token(&self, new: &NewApiToken) -> Result<ApiToken>;
    /// The token with this hash, whether it counts or not.
    async fn api_token_by_hash(&self, hash: &Digest) -> Result<Option<ApiToken>>;
    /// One token.
    async fn api_token(&self, number: u64) -> Result<Option<ApiToken>>;
    /// A page of all tokens, oldest first, from the one after `after`.
    async fn api_tokens(&self, after: u64, limit: u32) -> Result<Vec<ApiToken>>;
    /// Notes that a token was used. Time never goes back.
    async fn note_api_token_used(&self, number: u64, at: Timestamp) -> Result<()>;
    /// Revokes a token; `false` if it was revoked before.
    async fn revoke_api_token(&self, revocation: &Revocation) -> Result<bool>;
}

/// A token to be added.
#[derive(Debug, Clone)]
pub struct NewApiToken {
    /// The SHA-256 of the token.
    pub hash: Digest,
    /// What people call it.
    pub name: String,
    /// What its bearer is.
    pub role: Role,
    /// Whose data its bearer may touch.
    pub companies: Companies,
    /// For which organisations its bearer acts.
    pub organisations: Organisations,
    /// Until when it counts; for ever if not set.
    pub expires_at: Option<Timestamp>,
    /// Who made it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}

/// A token as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// Its number.
    pub number: u64,
    /// What people call it.
    pub name: String,
    /// What its bearer is.
    pub role: Role,
    /// Whose data its bearer may touch.
    pub companies: Companies,
    /// For which organisations its bearer acts.
    pub organisations: Organisations,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Until when it counts; for ever if not set.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the hour or so.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiToken {
    /// Whether it opens anything at this time.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Its bearer.
    pub fn bearer(&self) -> Caller {
        Caller {
            id: format!("token:{}", self.number),
            name: self.name.clone(),
            role: self.role,
            companies: self.companies.clone(),
            organisations: self.organisations.clone(),
        }
    }
}

/// A token to be revoked.
#[derive(Debug, Clone)]
pub struct Revocation {
    /// Which one.
    pub number: u64,
    /// Who wants it.
    pub by: Author,
    /// When.
    pub at: Timestamp,
}
