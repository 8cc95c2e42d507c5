//! The stand-in Document Server as a program of its own.
fn main() {}
