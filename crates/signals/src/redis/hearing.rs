//! Hears the other instances, for as long as the service runs.
//!
//! Guarantees: what this instance announced is not heard twice; a connection that died silently is noticed, because
//! this instance must hear its own beat; after each new connection listeners look for themselves.
//! Does not do: ask what was missed. Whoever listens knows where to look.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSubStream;
use tokio::time::timeout;

use super::wire::{self, Message};
use super::{Pause, Shared, Standing};

/// Three beats unheard: the connection leads nowhere.
const SILENCE_MAX: Duration = Duration::from_secs(4);

pub(super) async fn hear(shared: Arc<Shared>) {
    let channel = shared.keys.channel();
    let mut pause = Pause::new();
    loop {
        if let Ok(messages) = shared.place.subscribe(&channel).await {
            shared.local.tell_missed();
            shared.stand(Standing::Heard);
            follow(&shared, messages, &mut pause).await;
            shared.stand(Standing::Away);
        }
        pause.wait().await;
    }
}

/// Until the connection ends or falls silent.
async fn follow(shared: &Shared, mut messages: PubSubStream, pause: &mut Pause) {
    while let Ok(Some(message)) = timeout(SILENCE_MAX, messages.next()).await {
        pause.reset();
        let text: String = message.get_payload().unwrap_or_default();
        match wire::read(&text) {
            (instance, _) if instance == shared.instance => {}
            (_, Message::Signal(signal)) => shared.local.tell_of_elsewhere(signal),
            (_, Message::Missed) => shared.local.tell_missed(),
            (_, Message::Beat) => {}
        }
    }
}
