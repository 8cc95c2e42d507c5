//! The SFTP adapter against a real OpenSSH server.

mod doors;

use std::sync::Arc;

use model::{EditorKey, Guards};
use vault::contract::sshd::{EXTENSIONS, Sshd};
use vault::sftp::Store;
use vault::{Sidecar, Tree, Vault};

fn sidecar() -> Sidecar {
    Sidecar::Saved { key: EditorKey::parse("prod_12345_edit_1.k").unwrap(), status: 2 }
}

fn store(sshd: &Sshd) -> Store {
    Store::open(sshd.settings(), &Guards::ALL).unwrap()
}

mod as_it_comes {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start();
        (Arc::new(store(&sshd).vault()), sshd)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, Sshd) {
        let sshd = Sshd::start();
        (Arc::new(store(&sshd).tree()), sshd)
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}

mod without_extensions {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS);
        (Arc::new(store(&sshd).vault()), sshd)
    }

    vault::contract_tests!(super::fresh_vault());
}

/// What a tree needs and no more: files are copied and read back.
mod with_replacing_renames_only {
    use super::*;

    fn fresh_vault() -> (Arc<dyn Vault>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS[1..]);
        (Arc::new(store(&sshd).vault()), sshd)
    }

    fn fresh_tree() -> (Arc<dyn Tree>, Sshd) {
        let sshd = Sshd::start_without(&EXTENSIONS[1..]);
        (Arc::new(store(&sshd).tree()), sshd)
    }

    vault::contract_tests!(super::fresh_vault(), super::fresh_tree());
}
