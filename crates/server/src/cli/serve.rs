//! `saveguard serve`: the service, until it is told to stop.

use std::process::ExitCode;

use anyhow::Context as _;
use model::Guards;

use super::{tell, told_to_stop};
use crate::config::{Config, StoreKind};
use crate::service::Service;
use crate::traces;

pub(super) async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let guards = torture::prepare()?;
    let data = config.server.data.display().to_string();
    let kept = match config.stores.vault {
        StoreKind::Local => String::new(),
        _ => format!(" and the bytes of documents in {}", config.stores.place()),
    };
    let ledger = if config.ledger.is_shared() {
        format!(", its ledger in {}", config.ledger.place())
    } else {
        String::new()
    };
    let service = Service::start(config, guards).await.context("the service cannot start")?;
    tell(&format!(
        "Saveguard listens on http://{} and keeps its data in {data}{ledger}{kept}.",
        service.address()
    ));
    told_to_stop().await?;
    service.stop().await;
    traces::flush().await;
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "torture"))]
mod torture {
    //! A normal build cannot be tampered with.

    use super::Guards;

    pub(super) fn prepare() -> anyhow::Result<Guards> {
        Ok(Guards::ALL)
    }
}

#[cfg(feature = "torture")]
mod torture {
    //! The torture build: the harness says in the environment where to crash, which guard to remove, and
    //! where it says by how much the clock is wrong.

    use super::Guards;
    use anyhow::Context as _;

    pub(super) fn prepare() -> anyhow::Result<Guards> {
        let variable = |name: &str| {
            let full = format!("SAVEGUARD_TORTURE_{name}");
            std::env::vars().find(|(each, _)| *each == full).map(|(_, value)| value)
        };
        let hit_of = |name: &str| {
            let read = |text: String| {
                let (step, hit) = text.rsplit_once(':').context("a hit is step:number")?;
                anyhow::Ok((step.to_owned(), hit.parse().context("the hit is a number")?))
            };
            variable(name).map(read).transpose()
        };
        steps::install(steps::Plan {
            crash_at: hit_of("CRASH_AT")?,
            hold_at: hit_of("HOLD_AT")?.zip(variable("HOLD_FILE").map(Into::into)),
            list_in: variable("LIST_STEPS").map(Into::into),
            clock_in: variable("CLOCK_IN").map(Into::into),
        });
        match variable("MUTANT") {
            None => Ok(Guards::ALL),
            Some(mutant) => {
                Guards::without(&mutant).with_context(|| format!("there is no mutant `{mutant}`"))
            }
        }
    }
}
