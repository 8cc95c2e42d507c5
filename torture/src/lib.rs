//! Parts of the torture harness that its tests and its programs share.
pub mod power_loss;
