//! What an operator reads in the log.
//!
//! This test is not with the others because `tracing` remembers for each line of code whether anybody listens, for
//! all threads at once: here no other test comes by those lines.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::{Lanes, Settings};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

#[tokio::test]
async fn the_log_tells_of_new_lanes_and_of_tasks_queued_and_done_under_the_name_of_the_lane() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let lanes = Lanes::new(Settings::default()).unwrap();

    let said =
        lanes.submit_pipelined("doc1.docx", async { tracing::info!("said while preparing") }, |()| async {
            tokio::task::yield_now().await;
            tracing::info!("said while finishing");
        });
    said.unwrap().wait().await.unwrap();

    assert_eq!(
        log.lines(),
        [
            "INFO lane{otel.name=callback-doc1.docx}: lane opened",
            "DEBUG lane{otel.name=callback-doc1.docx}: task queued",
            "INFO lane{otel.name=callback-doc1.docx}: said while preparing",
            "INFO lane{otel.name=callback-doc1.docx}: said while finishing",
            "DEBUG lane{otel.name=callback-doc1.docx}: task done",
        ]
    );
}
