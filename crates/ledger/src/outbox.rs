//! The part of the port about telling other programs: what is due, in order, and what came of it.
//!
//! A delivery is written in the transaction of the act it tells of, one for each target that wants such events. Per target and
//! document they are told in order: a later one is not due before the earlier one is delivered or given up.
//!
//! Does not do: sending. A delivery that was sent while its end could not be written down is due again, with the same id.

use async_trait::async_trait;
use jiff::Timestamp;
use model::webhooks::Event;

use crate::Result;
use crate::documents::Author;

/// Telling others.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// From now on these targets are told of these events. What waits for any other target is given up.
    async fn set_webhooks(&self, targets: &[Subscription], at: Timestamp) -> Result<()>;
    /// Deliveries to a target whose time has come, the longest waiting first.
    async fn due_deliveries(&self, target: &str, at: Timestamp, limit: u32) -> Result<Vec<Delivery>>;
    /// When the next delivery to a target is due; `None` if none waits.
    async fn next_delivery_at(&self, target: &str) -> Result<Option<Timestamp>>;
    /// An attempt ended. If it was the last one, the next delivery about its document is due.
    async fn delivery_ended(&self, number: u64, end: &DeliveryEnd, at: Timestamp) -> Result<()>;
    /// How each target stands.
    async fn webhooks(&self) -> Result<Vec<WebhookStanding>>;
    /// Deliveries that were given up, the newest first, from the one before `before`.
    async fn dead_deliveries(&self, before: Option<u64>, limit: u32) -> Result<Vec<Delivery>>;
    /// Tries a delivery again that was given up. `false` if there is no such one.
    async fn retry_delivery(&self, number: u64, who: &Author, at: Timestamp) -> Result<bool>;
    /// Forgets deliveries that ended before these times: delivered ones, and those given up.
    async fn forget_deliveries(&self, delivered: Timestamp, dead: Timestamp) -> Result<u64>;
}

/// What a target wants to hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The target's name.
    pub target: String,
    /// The events.
    pub events: Vec<Event>,
}

/// Something to be told to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its place in the order.
    pub number: u64,
    /// Its id: the same for every attempt, and for every target.
    pub id: String,
    /// To whom.
    pub target: String,
    /// About which document.
    pub document: String,
    /// What happened.
    pub event: String,
    /// What is sent, as JSON.
    pub payload: String,
    /// When it happened.
    pub created_at: Timestamp,
    /// Since when it is tried.
    pub waiting_since: Timestamp,
    /// Attempts so far.
    pub attempts: u32,
    /// What was the matter last time.
    pub last_error: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The target has it.
    Delivered,
    /// It is tried again.
    Failed {
        /// When.
        next_at: Timestamp,
        /// What was the matter.
        why: String,
    },
    /// It is not tried any more.
    GivenUp {
        /// What was the matter.
        why: String,
    },
}

/// How a target stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookStanding {
    /// Its name.
    pub target: String,
    /// What it wants to hear of.
    pub events: Vec<String>,
    /// Deliveries that wait.
    pub waiting: u64,
    /// When the oldest of them happened.
    pub oldest_at: Option<Timestamp>,
    /// Deliveries that were given up.
    pub dead: u64,
    /// Deliveries of the last day that arrived.
    pub delivered: u64,
}
