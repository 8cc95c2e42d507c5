//! What requests are signed with: SHA-256 and HMAC, and for a content that has a hash already, that hash.
//!
//! A signed request names the SHA-256 of its payload, and the store refuses a payload that is another. Of a blob it is known since the bytes
//! arrived: inside [`of_known`] the payload is signed with it instead of being hashed again. So what is sent is proved against the
//! blob's own name by the store, before the object gets that name.
//!
//! Guarantees: a known hash is used once, for the payload, and only if the length is right; everything else is hashed here.
//! Does not do: believe that the store looks. `conditions` tries that out.

use std::cell::Cell;

use hmac::{Hmac, KeyInit as _, Mac as _};
use model::Digest;
use object_store::client::{
    CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm,
};
use object_store::{Error, Result};
use sha2::{Digest as _, Sha256};

tokio::task_local! {
    static KNOWN: Cell<Option<Known>>;
}

/// A content whose hash is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) digest: Digest,
    pub(super) size_bytes: u64,
}

/// Makes one request whose payload has this hash.
pub(super) async fn of_known<T>(known: Known, request: impl Future<Output = T>) -> T {
    KNOWN.scope(Cell::new(Some(known)), request).await
}

/// The provider of every client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signing;

impl CryptoProvider for Signing {
    fn digest(&self, algorithm: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        let DigestAlgorithm::Sha256 = algorithm else { return Err(unknown("digest")) };
        // The payload's is the first that a request asks for; the signature over its headers follows.
        Ok(match KNOWN.try_with(Cell::take).ok().flatten() {
            Some(known) => Box::new(KnownDigest { known, seen_bytes: 0 }),
            None => Box::new(Hashing { hasher: Sha256::new(), out: Vec::new() }),
        })
    }

    fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
        let DigestAlgorithm::Sha256 = algorithm else { return Err(unknown("HMAC")) };
        let mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| unknown("key"))?;
        Ok(Box::new(Keyed { mac, out: Vec::new() }))
    }

    fn sign(&self, _algorithm: SigningAlgorithm, _pem: &[u8]) -> Result<Box<dyn Signer>> {
        Err(unknown("signature"))
    }
}

fn unknown(what: &str) -> Error {
    Error::NotSupported { source: format!("no such {what} is needed for S3").into() }
}

struct KnownDigest {
    known: Known,
    seen_bytes: u64,
}

impl DigestContext for KnownDigest {
    fn update(&mut self, data: &[u8]) {
        self.seen_bytes += data.len() as u64;
    }

    fn finish(&mut self) -> Result<&[u8]> {
        if self.seen_bytes == self.known.size_bytes {
            return Ok(self.known.digest.as_bytes());
        }
        let (seen, known) = (self.seen_bytes, self.known.size_bytes);
        Err(Error::Generic {
            store: "S3",
            source: format!("{seen} bytes are not the {known} of the blob").into(),
        })
    }
}

struct Hashing {
    hasher: Sha256,
    out: Vec<u8>,
}

impl DigestContext for Hashing {
    fn update(&mut self, data: &[u8]) {
        self.hasher.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.out = self.hasher.finalize_reset().to_vec();
        Ok(&self.out)
    }
}

struct Keyed {
    mac: Hmac<Sha256>,
    out: Vec<u8>,
}

impl HmacContext for Keyed {
    fn update(&mut self, data: &[u8]) {
        self.mac.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.out = self.mac.clone().finalize().into_bytes().to_vec();
        Ok(&self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha256(data: &[u8]) -> Result<Vec<u8>> {
        let mut context = Signing.digest(DigestAlgorithm::Sha256)?;
        context.update(data);
        context.finish().map(<[u8]>::to_vec)
    }

    #[tokio::test]
    async fn a_known_hash_stands_for_the_first_content_and_for_no_other() {
        let known = Known { digest: Digest::of(b"blob"), size_bytes: 4 };

        of_known(known, async {
            assert_eq!(sha256(b"what").unwrap(), Digest::of(b"blob").as_bytes());
            assert_eq!(sha256(b"what").unwrap(), Digest::of(b"what").as_bytes());
        })
        .await;
        of_known(known, async { assert!(sha256(b"longer").is_err()) }).await;
        assert_eq!(sha256(b"blob").unwrap(), Digest::of(b"blob").as_bytes());
    }

    /// The second case of RFC 4231.
    #[test]
    fn keyed_hashes_are_those_of_the_standard() {
        let mut context = Signing.hmac(DigestAlgorithm::Sha256, b"Jefe").unwrap();
        context.update(b"what do ya want ");
        context.update(b"for nothing?");

        let found: String = context.finish().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
