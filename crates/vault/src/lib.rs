//! Immutable blobs and the published tree: port, adapters, contract.
