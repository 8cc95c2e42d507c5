//! Rules about the source text, run as a test.
