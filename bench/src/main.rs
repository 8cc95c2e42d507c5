//! What we measure, and against whom.
fn main() {}
