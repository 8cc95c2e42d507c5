//! One blob, out of a listing.

use model::Digest;

use crate::{Result, StoredBlob, Vault};

/// A blob as the vault lists it; `None` if there is none.
pub(crate) async fn find(vault: &dyn Vault, digest: &Digest) -> Result<Option<StoredBlob>> {
    let found = vault.list(before(digest).as_ref(), 1).await?;
    Ok(found.into_iter().find(|found| found.digest == *digest))
}

/// The digest right before this one, after which a listing begins with it.
fn before(digest: &Digest) -> Option<Digest> {
    let mut bytes = *digest.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (less, was_zero) = byte.overflowing_sub(1);
        *byte = less;
        if !was_zero {
            return Some(Digest::new(bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_after_the_digest_before_begins_with_it() {
        let of = |text: &str| Digest::parse_hex(&format!("{text:0>64}")).unwrap();

        assert_eq!(before(&of("1")), Some(of("0")));
        assert_eq!(before(&of("100")), Some(of("ff")));
        assert_eq!(before(&of("0")), None);
    }
}
