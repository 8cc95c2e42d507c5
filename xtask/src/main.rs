//! Commands for people who work on Saveguard.
fn main() {}
