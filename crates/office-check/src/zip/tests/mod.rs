//! Archives made by hand, so that each can be wrong in exactly one way.

mod accepted;
mod arbitrary;
mod builder;
mod damaged;
mod end_records;
mod limited;
mod refused;

use std::{io::Cursor, ops::ControlFlow};

use super::*;

/// What a caller sees of an archive: notices of opening it, then the answer for each entry.
#[derive(Debug)]
struct Seen {
    notices: Vec<ZipFaultKind>,
    names: Vec<String>,
    bodies: Vec<Vec<u8>>,
    unclaimed_bytes: u64,
}

fn see(bytes: &[u8]) -> Result<Seen, ZipFault> {
    see_within(bytes, &ZipLimits::default())
}

/// Reads everything, in the order of the file.
fn see_within(bytes: &[u8], limits: &ZipLimits) -> Result<Seen, ZipFault> {
    let mut archive = Archive::open(Cursor::new(bytes), limits)?;
    let mut budget = Budget::of(limits);
    let notices = archive.notices.iter().map(|notice| notice.kind).collect();
    let mut seen = Seen { notices, names: Vec::new(), bodies: Vec::new(), unclaimed_bytes: 0 };
    for at in 0..archive.len() {
        let entry = archive.entry(at).unwrap();
        let mut body = Vec::new();
        let answer = archive.read(&entry, &mut budget, &mut |piece| {
            body.extend_from_slice(piece);
            ControlFlow::Continue(())
        })?;
        let Inflated::Whole { bytes, unclaimed_bytes } = answer else { panic!("nobody stopped it") };
        assert_eq!(bytes, body.len() as u64);
        seen.unclaimed_bytes += unclaimed_bytes;
        seen.names.push(archive.name(&entry)?);
        seen.bodies.push(body);
    }
    Ok(seen)
}

fn fault_of(bytes: &[u8]) -> ZipFaultKind {
    see(bytes).expect_err("the archive is damaged").kind
}
