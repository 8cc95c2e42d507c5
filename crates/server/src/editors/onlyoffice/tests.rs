//! The client against a server of a few lines.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::OnlyOffice;
use super::tokens::Tokens;
use crate::config::Config;
use crate::editors::DocumentServer as _;
use crate::instances::Answers;

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"error\":0,\"keys\":[]}\n";

async fn hear(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    assert!(stream.read(&mut bytes).await.unwrap() > 0);
}

#[tokio::test]
async fn a_question_is_asked_again_if_the_open_connection_was_dead() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.unwrap();
        hear(&mut first).await;
        first.write_all(ANSWER.as_bytes()).await.unwrap();
        hear(&mut first).await;
        drop(first);
        let (mut second, _) = listener.accept().await.unwrap();
        hear(&mut second).await;
        second.write_all(ANSWER.as_bytes()).await.unwrap();
    });
    let environment = [
        ("SAVEGUARD_DOCUMENT_SERVER_PUBLIC_URL", url.as_str()),
        ("SAVEGUARD_DOCUMENT_SERVER_SECRET", "a secret of more than thirty-two characters"),
        ("SAVEGUARD_API_SECRET", "another secret of more than thirty-two characters"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let config = Config::load(None, environment).unwrap();
    let tokens = Arc::new(Tokens::new(&config.document_server.secrets));
    let sources = (Arc::new(crate::clock::SystemClock) as _, Arc::new(crate::clock::SystemRandom) as _);
    let answers = Arc::new(Answers::new(Arc::new(ledger::reports::Alone), "test"));
    let hearing = (Arc::new(signals::local::LocalSignals::default()) as _, answers);
    let office = OnlyOffice::new(&config, tokens, hearing, sources).unwrap();

    assert!(office.forgotten_keys().await.is_ok());
    assert!(office.forgotten_keys().await.is_ok(), "the connection was closed without an answer");
    server.await.unwrap();
}
