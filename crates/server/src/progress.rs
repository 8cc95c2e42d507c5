//! How long work tells how far it is.

/// Told how far it is.
pub trait Progress: Send + Sync {
    /// A part begins, with so many things to look at; 0 if nobody knows how many.
    fn begin(&self, part: &'static str, count: u64);
    /// One more thing was looked at.
    fn advance(&self);
}
