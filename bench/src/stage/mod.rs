//! A stage for benches of the running server: the release binary as its own process on a real disk, a Document Server
//! of a few lines beside it, and callbacks signed as the real one signs them. Whoever has a Document Server of its own
//! takes the [`Service`] alone.
//!
//! Does not do: anything clever on our side of the wire. What the driver costs is the machine's, not the server's.

mod callbacks;
mod document_server;
mod documents;

mod service;

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub(crate) use callbacks::{Callback, Wire};
pub(crate) use document_server::DocumentServer;
pub(crate) use documents::Template;
pub(crate) use service::{SECRET, Service, build, free_address, target_folder};

/// The running server and what it talks to.
pub(crate) struct Stage {
    pub(crate) service: Service,
    pub(crate) documents: DocumentServer,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        Self::start_program(None).await
    }

    /// With a program of somebody's choice, instead of a release build.
    pub(crate) async fn start_program(program: Option<&Path>) -> Result<Self> {
        Self::start_with(program, &[]).await
    }

    /// With more settings.
    pub(crate) async fn start_with(program: Option<&Path>, settings: &[(&str, String)]) -> Result<Self> {
        let documents = DocumentServer::start().await?;
        let service = Service::start_with(&documents.url(), program, settings).await?;
        Ok(Self { service, documents })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.service.get(path).await
    }

    /// Brings a document in and opens it; returns its editor key.
    pub(crate) async fn open_document(&self, id: &str, template: &Template) -> Result<String> {
        open_document(&self.service, id, template).await
    }
}

/// Brings a document in and opens it; returns its editor key.
pub(crate) async fn open_document(service: &Service, id: &str, template: &Template) -> Result<String> {
    service.upload(id, template.copy(u64::MAX)).await?;
    let path = format!("/api/v1/documents/{id}/editor-config");
    let view = service.post(&path, "bench", &json!({ "mode": "edit" })).await?;
    Ok(view["key"].as_str().context("no key")?.to_owned())
}
