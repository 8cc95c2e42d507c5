//! Records as a workbook, written while it is sent.
//!
//! Guarantees: a few pages of records are in memory, however many there are; an export that breaks off has no end, and no
//! spreadsheet program takes it for a whole one.

use std::io;

use bytes::Bytes;
use futures_util::Stream;
use sheets::export_xlsx;
use tokio::sync::mpsc;

use super::exporting::{Sheet, Walk};
use super::piping::{pipe, stream};

/// Rows between the ledger and the writer.
const ROWS_AHEAD: usize = 500;
/// What the only sheet is called.
const NAME: &str = "Records";

/// A row, or why there is none.
type Cells = io::Result<Vec<String>>;

/// Writes what a walk gives as a workbook.
pub fn workbook(walk: Walk, sheet: Sheet) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (sender, receiver) = mpsc::channel(ROWS_AHEAD);
    let (mut out, sent) = pipe();
    let columns = sheet.columns.clone();
    tokio::spawn(feed(walk, sheet, sender));
    tokio::task::spawn_blocking(move || {
        let written = export_xlsx((NAME, &columns), Rows(receiver), &mut out);
        out.end(written.map_err(io::Error::other));
    });
    stream(sent)
}

async fn feed(mut walk: Walk, sheet: Sheet, rows: mpsc::Sender<Cells>) {
    loop {
        match walk.next().await {
            Ok(None) => return,
            Ok(Some((scope, page))) => {
                for version in &page {
                    if rows.send(Ok(sheet.row(&scope, version))).await.is_err() {
                        return;
                    }
                }
            }
            Err(cause) => {
                let _ = rows.send(Err(io::Error::other(cause))).await;
                return;
            }
        }
    }
}

/// Rows, for a thread that may block.
struct Rows(mpsc::Receiver<Cells>);

impl Iterator for Rows {
    type Item = Cells;

    fn next(&mut self) -> Option<Cells> {
        self.0.blocking_recv()
    }
}
