//! What we write.
