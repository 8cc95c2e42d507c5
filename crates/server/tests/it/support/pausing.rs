//! A stage whose service is away, while its Document Server, its engines and its folder stay.

use model::Guards;
use saveguard::config::Config;
use saveguard::service::Service;
use understudy::Running;

use super::Stage;
use super::site::Site;

pub(crate) struct Paused {
    /// Of every instance.
    pub(crate) configs: Vec<Config>,
    pub(crate) editor: Running,
    pub(crate) http: reqwest::Client,
    pub(crate) base: String,
    pub(crate) site: Site,
}

impl Stage {
    /// Stops every instance, the last one first; says how many saves were left.
    pub(crate) async fn pause(self) -> (Paused, usize) {
        let Self { service, others, editor, http, base, site } = self;
        let services: Vec<Service> = std::iter::once(service).chain(others).collect();
        let configs = services.iter().map(|service| service.app.config.clone()).collect();
        let mut left = 0;
        for service in services.into_iter().rev() {
            left += service.stop().await;
        }
        (Paused { configs, editor, http, base, site }, left)
    }

    /// The Document Server dies and comes back where it was, with what it had on disk.
    pub(crate) async fn with_crashed_editor(self) -> Self {
        let Self { service, others, editor, http, base, site } = self;
        let editor = editor.crash().await.restart().await.unwrap();
        let public_url = service.app.config.document_server.public_url.as_str();
        assert_eq!(editor.url(), public_url.trim_end_matches('/'), "it came back where it was");
        Self { service, others, editor, http, base, site }
    }
}

impl Paused {
    /// The first instance's.
    pub(crate) fn config(&self) -> &Config {
        &self.configs[0]
    }

    /// Every instance is to start with something else.
    pub(crate) fn change(&mut self, change: impl Fn(&mut Config)) {
        self.configs.iter_mut().for_each(change);
    }

    pub(crate) async fn resume(self) -> Stage {
        let Self { configs, editor, http, base, site } = self;
        let mut services = Vec::new();
        for config in configs {
            services.push(Service::start(config, Guards::ALL).await.unwrap());
        }
        let service = services.remove(0);
        Stage { service, others: services, editor, http, base, site }
    }
}
