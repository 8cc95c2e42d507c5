//! The binary `saveguard`.
fn main() {}
