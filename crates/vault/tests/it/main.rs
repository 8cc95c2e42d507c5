//! The contract, run against every adapter, and what only a real disk can get wrong.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod depot;
mod local_disk;
mod s3;
mod s3_faults;
mod sftp;

mod local {
    use std::sync::Arc;

    use model::Guards;
    use vault::local::LocalVault;
    use vault::local::tree::LocalTree;
    use vault::{Tree, Vault};

    fn fresh_vault() -> (Arc<dyn Vault>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(LocalVault::open(folder.path(), &Guards::ALL).unwrap()), folder)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(LocalTree::open(folder.path(), &Guards::ALL).unwrap()), folder)
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}

mod memory {
    use std::sync::Arc;

    use vault::memory::{MemoryTree, MemoryVault};
    use vault::{Tree, Vault};

    fn fresh_vault() -> (Arc<dyn Vault>, ()) {
        (Arc::new(MemoryVault::default()), ())
    }

    fn fresh_tree() -> (Arc<dyn Tree>, ()) {
        (Arc::new(MemoryTree::default()), ())
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}
