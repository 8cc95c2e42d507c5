//! Somebody with a browser: signed in by the cookie, asking for compressed answers, loading what a page names.
//!
//! Guarantees: an answer that is no success ends the bench. Does not do: run scripts; `pages` says what they ask for.

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use super::pages::PageAsked;
use crate::stage::Service;

/// One request, asked several times.
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) rounds_ms: Vec<f64>,
    /// Of the head and the body of an answer.
    pub(super) bytes: usize,
}

pub(super) struct Visitor {
    http: reqwest::Client,
    base: String,
    cookie: String,
}

impl Visitor {
    pub(super) async fn sign_in(service: &Service) -> Result<Self> {
        let base = format!("http://{}", service.address);
        let http =
            reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build()?;
        let link = format!("{base}/sign-in?token={}", service.token()?);
        let response = http.get(link).send().await?;
        let cookie = response.headers().get("set-cookie").context("nobody was signed in")?;
        let cookie = cookie.to_str()?.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { http, base, cookie })
    }

    /// The page, its styles and scripts, the scripts those import, and what they ask for.
    pub(super) async fn paths_of(&self, page: &PageAsked) -> Result<Vec<String>> {
        let mut paths = vec![page.path.clone()];
        let mut found = self.names_in(&page.path).await?;
        while let Some(name) = found.pop() {
            if !paths.contains(&name) {
                found.extend(self.names_in(&name).await?);
                paths.push(name);
            }
        }
        ensure!(paths.len() > 2, "{} loads no scripts", page.path);
        // The words of the page, whose name a script puts together.
        paths.push("/assets/texts-en.js".to_owned());
        paths.extend(page.calls.iter().cloned());
        Ok(paths)
    }

    async fn names_in(&self, path: &str) -> Result<Vec<String>> {
        let text = self.get(path, "identity").await?.text().await?;
        let quoted = text.split('"').filter(|part| part.starts_with("/assets/"));
        Ok(quoted.map(str::to_owned).collect())
    }

    pub(super) async fn ask(&self, path: &str, rounds: usize) -> Result<Asked> {
        let mut asked = Asked { path: path.to_owned(), rounds_ms: Vec::new(), bytes: 0 };
        for _ in 0..rounds {
            let began = Instant::now();
            let response = self.get(path, "gzip").await?;
            let head: usize =
                response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
            let body = response.bytes().await?;
            asked.rounds_ms.push(began.elapsed().as_secs_f64() * 1000.0);
            asked.bytes = head + body.len();
        }
        Ok(asked)
    }

    async fn get(&self, path: &str, encoding: &str) -> Result<reqwest::Response> {
        let request = self.http.get(format!("{}{path}", self.base)).header("cookie", &self.cookie);
        let response = request.header("accept-encoding", encoding).send().await?;
        if !response.status().is_success() {
            bail!("{path} answered {}: {}", response.status(), response.text().await?);
        }
        Ok(response)
    }
}
