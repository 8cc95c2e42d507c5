//! The command service.
//!
//! Guarantees: the replies and error numbers of PROTOCOL 5; `info` answers only after the host answered the
//! callback it causes, `forcesave` likewise when it sends a cached file again.
//!
//! Does not check tokens or shard keys: `crate::http` did.

use serde_json::json;

use super::event::{Command, RequestId, command_error};
use super::forcing::Wish;
use super::state::ForceKind;
use super::telling::Ask;
use super::{CommandReply, ConnId, Machine};
use crate::links::Link;

impl Machine {
    pub(super) fn command(&mut self, request: RequestId, command: Command, base_url: &str) {
        match command {
            Command::Info { key, userdata, callback } => {
                if self.durable.row(&key).is_none() {
                    return self.reply_error(request, &key, command_error::KEY);
                }
                let ask = Ask::about(&key, None, None);
                self.tell(Ask { url: callback, userdata, request: Some(request), ..ask });
            }
            Command::ForceSave { key, userdata } => {
                let wish = Wish::about(&key, ForceKind::Command);
                self.force_save(Wish { userdata, request: Some(request), ..wish });
            }
            Command::Drop { key, users } => {
                self.drop_users(&key, users.as_deref());
                self.reply_ok(request, &key);
            }
            Command::Meta { key, meta: None } => {
                self.reply_error(request, &key, command_error::UNKNOWN_COMMAND)
            }
            Command::Meta { key, meta: Some(meta) } => {
                self.broadcast(&key, None, &json!({"type": "meta", "messages": meta}));
                self.reply_ok(request, &key);
            }
            Command::Saved { key, status } => {
                self.live_mut(&key).veto = status != "1";
                self.reply_ok(request, &key);
            }
            Command::GetForgotten { key } => self.get_forgotten(request, &key, base_url),
            Command::GetForgottenList => {
                let records = self.durable.records.iter();
                let keys = records.filter(|(_, record)| record.forgotten.is_some());
                let keys = Some(keys.map(|(key, _)| key.clone()).collect());
                self.reply(request, CommandReply { keys, ..CommandReply::default() });
            }
            Command::DeleteForgotten { key } => {
                if self.durable.forgotten(&key).is_none() {
                    return self.reply_error(request, &key, command_error::KEY);
                }
                self.delete_forgotten(&key, "command");
                self.reply_ok(request, &key);
            }
            Command::Version { key } => {
                let version = Some(format!("{}.1", self.rules.version));
                self.reply(request, CommandReply { key, version, ..CommandReply::default() });
            }
            Command::License { key } => self.license(request, key),
            Command::Unknown { key } => {
                let error = command_error::UNKNOWN_COMMAND;
                self.reply(request, CommandReply { key, error, ..CommandReply::default() });
            }
        }
    }

    /// Asks browsers to become viewers; a client that ignores it stays.
    fn drop_users(&mut self, key: &str, users: Option<&[String]>) {
        let named = |id: &String| users.is_none_or(|users| users.contains(id));
        let to: Vec<ConnId> = self
            .conns_of(key)
            .filter(|(_, conn)| !conn.closed && named(&conn.user.id))
            .map(|(id, _)| id)
            .collect();
        for conn in to {
            self.send(conn, json!({"type": "drop", "code": "", "description": null}));
        }
    }

    fn get_forgotten(&mut self, request: RequestId, key: &str, base_url: &str) {
        let Some(ext) = self.durable.forgotten(key).map(|file| file.ext.clone()) else {
            return self.reply_error(request, key, command_error::KEY);
        };
        let expires_s = self.now_ms.div_ceil(1000) + self.rules.timings.link_life_s;
        let link = Link { base_url, folder: key, name: &format!("output.{ext}"), shard_key: key };
        let url = Some(self.rules.links.sign_forgotten(&link, expires_s));
        self.reply(request, CommandReply { key: Some(key.to_owned()), url, ..CommandReply::default() });
    }

    fn license(&mut self, request: RequestId, key: Option<String>) {
        let license = Some(json!({"end_date": null, "trial": false, "developer": false, "connections": 20}));
        let server = Some(
            json!({"resultType": 3, "packageType": 0, "buildVersion": self.rules.version, "buildNumber": 1}),
        );
        let quota = Some(json!({"users": [], "users_view": []}));
        self.reply(request, CommandReply { key, license, server, quota, ..CommandReply::default() });
    }

    fn reply_ok(&mut self, request: RequestId, key: &str) {
        self.reply(request, CommandReply { key: Some(key.to_owned()), ..CommandReply::default() });
    }

    pub(super) fn reply_error(&mut self, request: RequestId, key: &str, error: u8) {
        self.reply(request, CommandReply { key: Some(key.to_owned()), error, ..CommandReply::default() });
    }
}
