//! What is written into Redis, and the commands that do it.
//!
//! Guarantees: every key ends by itself; every command touches one key, so that a Cluster takes it; moments are by the
//! clock of Redis. Does not do: read anything that decides.

use std::time::Duration;

use model::DocumentId;
use redis::Cmd;

use super::queue::Order;
use super::wire::{self, Message};
use crate::{LEASE_LIFE, Signal};

/// Who is inside is told with every change, and with each round of recovering.
const PRESENCE_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Whoever waits for a save waits for minutes, not for hours.
const SAVE_DONE_LIFE: Duration = Duration::from_secs(60 * 60);

const STAMP: &str = "local now = redis.call('TIME') \
    local at = now[1] .. string.format('%03d', math.floor(now[2] / 1000)) \
    return redis.call('SET', KEYS[1], at, 'PX', ARGV[1])";
const REPLACE: &str = "redis.call('DEL', KEYS[1]) \
    if #ARGV > 1 then \
        redis.call('SADD', KEYS[1], unpack(ARGV, 2)) \
        redis.call('PEXPIRE', KEYS[1], ARGV[1]) \
    end \
    return 1";
const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const COUNT: &str = "local count = redis.call('INCR', KEYS[1]) \
    if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end \
    return count";

const UNCOUNT: &str =
    "if tonumber(redis.call('GET', KEYS[1]) or 0) > 0 then return redis.call('DECR', KEYS[1]) end return 0";

/// A document has a room, not a stadium; more than this is not shown.
const USERS_SHOWN_MAX: usize = 1000;

/// Names, with what stands before all of them.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: String) -> Self {
        Self { prefix }
    }

    /// Where instances talk.
    pub(super) fn channel(&self) -> String {
        format!("{}saveguard:signals", self.prefix)
    }

    /// What an order means for Redis.
    pub(super) fn commands(&self, instance: &str, order: &Order) -> Vec<Cmd> {
        match order {
            Order::Tell(message) => {
                let mut commands = vec![self.publish(instance, message)];
                match message {
                    Message::Signal(Signal::Settled(document)) => {
                        commands.push(self.stamp(&format!("save_done:{document}"), SAVE_DONE_LIFE));
                    }
                    Message::Signal(Signal::Presence(document)) => {
                        commands
                            .push(self.stamp(&format!("session:{document}:last_activity"), PRESENCE_LIFE));
                    }
                    _ => {}
                }
                commands
            }
            Order::Show { document, users } => vec![self.replace(document, users)],
        }
    }

    pub(super) fn publish(&self, instance: &str, message: &Message) -> Cmd {
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.channel()).arg(wire::write(instance, message));
        command
    }

    pub(super) fn take_lease(&self, document: &DocumentId, holder: &str) -> Cmd {
        let mut command = redis::cmd("SET");
        command.arg(self.lease(document)).arg(holder).arg("NX").arg("PX").arg(milliseconds(LEASE_LIFE));
        command
    }

    pub(super) fn renew_lease(&self, document: &DocumentId, holder: &str) -> Cmd {
        let mut command = script(RENEW, &self.lease(document));
        command.arg(holder).arg(milliseconds(LEASE_LIFE));
        command
    }

    pub(super) fn release_lease(&self, document: &DocumentId, holder: &str) -> Cmd {
        let mut command = script(RELEASE, &self.lease(document));
        command.arg(holder);
        command
    }

    pub(super) fn count(&self, what: &str, window: Duration) -> Cmd {
        let mut command = script(COUNT, &format!("{}rate:{what}", self.prefix));
        command.arg(milliseconds(window));
        command
    }

    pub(super) fn uncount(&self, what: &str) -> Cmd {
        script(UNCOUNT, &format!("{}rate:{what}", self.prefix))
    }

    fn lease(&self, document: &DocumentId) -> String {
        format!("{}lock:transition:{document}", self.prefix)
    }

    fn stamp(&self, key: &str, life: Duration) -> Cmd {
        let mut command = script(STAMP, &format!("{}{key}", self.prefix));
        command.arg(milliseconds(life));
        command
    }

    fn replace(&self, document: &DocumentId, users: &[String]) -> Cmd {
        let mut command = script(REPLACE, &format!("{}session:{document}:users", self.prefix));
        command.arg(milliseconds(PRESENCE_LIFE));
        for user in users.iter().take(USERS_SHOWN_MAX) {
            command.arg(user);
        }
        command
    }
}

/// Sent whole each time: a restarted Redis has forgotten every script.
fn script(text: &str, key: &str) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(text).arg(1).arg(key);
    command
}

fn milliseconds(life: Duration) -> u64 {
    u64::try_from(life.as_millis()).unwrap_or(u64::MAX).max(1)
}
