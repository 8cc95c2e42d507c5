//! From a span of `tracing` to one of a trace: ids, times, a parent here or at the caller.

use std::fmt;
use std::time::Instant;

use tokio::sync::mpsc;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::{Ended, Message};
use crate::clock::{Clock as _, Random as _, SystemClock, SystemRandom};
use crate::telemetry;

/// Kinds of spans, as OpenTelemetry numbers them.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
const NANOSECONDS_PER_MILLISECOND: i128 = 1_000_000;

/// Collects spans and hands them over when they end.
pub(super) struct Collecting {
    pub(super) line: mpsc::Sender<Message>,
}

/// A span that is open.
struct Open {
    span: Ended,
    began: Instant,
}

impl<S> Layer<S> for Collecting
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let here = span.parent().and_then(|parent| {
            parent.extensions().get::<Open>().map(|open| (open.span.trace, open.span.span))
        });
        let parent = here.or(fields.caller);
        let trace = parent.map_or_else(new_trace, |(trace, _)| trace);
        let began_ns = i128::from(SystemClock.now().as_millisecond()) * NANOSECONDS_PER_MILLISECOND;
        let ended = Ended {
            trace,
            span: new_span(),
            parent: parent.map(|(_, parent)| parent),
            name: fields.name.unwrap_or_else(|| span.name().to_owned()),
            kind: fields.kind.unwrap_or(INTERNAL),
            began_ns,
            ended_ns: began_ns,
            attributes: fields.attributes,
        };
        span.extensions_mut().insert(Open { span: ended, began: Instant::now() });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            open.span.attributes.extend(fields.attributes);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(open) = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>()) else {
            return;
        };
        let took = i128::try_from(open.began.elapsed().as_nanos()).unwrap_or(i128::MAX);
        let ended = Ended { ended_ns: open.span.began_ns.saturating_add(took), ..open.span };
        if self.line.try_send(Message::Ended(ended)).is_err() {
            telemetry::span_dropped();
        }
    }
}

fn new_trace() -> u128 {
    (u128::from(new_span()) << 64) | u128::from(SystemRandom.bits())
}

/// Zero means that there is none.
fn new_span() -> u64 {
    SystemRandom.bits().max(1)
}

/// What a span says of itself.
#[derive(Default)]
struct Fields {
    name: Option<String>,
    kind: Option<u8>,
    caller: Option<(u128, u64)>,
    attributes: Vec<(&'static str, String)>,
}

impl Fields {
    fn take(&mut self, field: &Field, text: String) {
        match field.name() {
            "otel.name" => self.name = Some(text),
            "otel.kind" if text == "server" => self.kind = Some(SERVER),
            "otel.kind" if text == "client" => self.kind = Some(CLIENT),
            "traceparent" => self.caller = caller_of(&text),
            name => self.attributes.push((name, text)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }
}

/// `00-{trace}-{span}-{flags}`, as the W3C describes it; anything else is as if it were not there.
fn caller_of(text: &str) -> Option<(u128, u64)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_whole = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    let is_known = is_whole && version != "ff" && (version != "00" || parts.next().is_none());
    let ids = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
    (is_known && ids.0 != 0 && ids.1 != 0).then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_trace_is_read_or_ignored() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(caller_of(good), Some((0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)));
        for bad in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert_eq!(caller_of(bad), None, "{bad}");
        }
    }
}
