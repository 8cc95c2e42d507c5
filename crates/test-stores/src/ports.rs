//! A port that nobody else takes before its server does.
//!
//! Whoever asks the system for a free port and gives it back may find it taken: by a connection of another test, which gets its port
//! from the same range. These ports lie outside of that range, and a lock keeps other tests away.
//! Guarantees: a port is this process's until it ends. Does not do: listen.

use std::fs::File;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

/// Below what Linux gives to connections (32768 to 60999), above what services have.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// Held until the process ends.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port of the loopback that nobody listens on and no other test is given.
pub fn free_port() -> u16 {
    let folder = std::env::temp_dir().join("saveguard-ports");
    std::fs::create_dir_all(&folder).unwrap();
    // Tests are processes one after the other: each begins somewhere else.
    let start = std::process::id().wrapping_mul(97) % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + u16::try_from((start + step) % u32::from(COUNT)).unwrap();
        let lock = File::create(folder.join(port.to_string())).unwrap();
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            HELD.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
            return port;
        }
    }
    panic!("every port is taken");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once_and_none_that_somebody_listens_on() {
        let first = free_port();
        let taken = TcpListener::bind(("127.0.0.1", first + 1)).ok();

        let second = free_port();

        assert_ne!(first, second);
        assert!(taken.is_none() || second != first + 1);
    }
}
