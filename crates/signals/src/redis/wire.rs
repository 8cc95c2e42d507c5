//! Signals as text, between instances that may differ in version.
//!
//! Guarantees: what was written is read back; what cannot be read is taken as something that was missed.
//! Does not do: carry anything that is not also in the ledger.

use model::{DocumentId, EditorKey};

use crate::Signal;

/// What one instance tells the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// A signal.
    Signal(Signal),
    /// Some signals could not be told: look for yourselves.
    Missed,
    /// The way through Redis is open.
    Beat,
}

/// One line each: who, what, and the rest.
pub(super) fn write(instance: &str, message: &Message) -> String {
    let (what, rest) = match message {
        Message::Signal(Signal::Settled(document)) => ("settled", document.to_string()),
        Message::Signal(Signal::Presence(document)) => ("presence", document.to_string()),
        Message::Signal(Signal::FinishWanted(key)) => ("finish-wanted", key.to_string()),
        Message::Signal(Signal::GuestsLeave) => ("guests-leave", String::new()),
        Message::Signal(Signal::Answered { nonce, status }) => ("answered", format!("{status}\n{nonce}")),
        Message::Missed => ("missed", String::new()),
        Message::Beat => ("beat", String::new()),
    };
    format!("{instance}\n{what}\n{rest}")
}

/// Who said it, and what. A word of a later version, or no words at all, may have been anything: look for yourself.
pub(super) fn read(text: &str) -> (&str, Message) {
    let mut lines = text.splitn(3, '\n');
    let instance = lines.next().unwrap_or_default();
    let what = lines.next().unwrap_or_default();
    let rest = lines.next().unwrap_or_default();
    let signal = match what {
        "beat" => return (instance, Message::Beat),
        "settled" => DocumentId::parse(rest).ok().map(Signal::Settled),
        "presence" => DocumentId::parse(rest).ok().map(Signal::Presence),
        "finish-wanted" => EditorKey::parse(rest).map(Signal::FinishWanted),
        "guests-leave" => Some(Signal::GuestsLeave),
        "answered" => answered(rest),
        _ => None,
    };
    (instance, signal.map_or(Message::Missed, Message::Signal))
}

fn answered(rest: &str) -> Option<Signal> {
    let (status, nonce) = rest.split_once('\n')?;
    Some(Signal::Answered { nonce: nonce.to_owned(), status: status.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_back() {
        let document = DocumentId::parse("report-7").unwrap();
        let messages = [
            Message::Signal(Signal::Settled(document.clone())),
            Message::Signal(Signal::Presence(document)),
            Message::Signal(Signal::FinishWanted(EditorKey::parse("prod_report-7_edit_3").unwrap())),
            Message::Signal(Signal::GuestsLeave),
            Message::Signal(Signal::Answered { nonce: "a\nb".to_owned(), status: 4 }),
            Message::Missed,
            Message::Beat,
        ];

        for message in messages {
            assert_eq!(read(&write("one", &message)), ("one", message));
        }
    }

    #[test]
    fn what_cannot_be_read_was_missed() {
        for text in
            ["", "one", "one\nlater\nword", "one\nsettled\n../x", "one\nanswered\n900\nx", "one\nanswered\n"]
        {
            assert_eq!(read(text).1, Message::Missed, "{text:?}");
        }
    }
}
