//! Links to results: signed, short-lived, with a stable path.
//!
//! Guarantees: the address form of the real server,
//! `<base>/cache/files/data/<folder>/<name>/<name>?md5=..&expires=..&shardkey=..&filename=..`; the signature
//! covers path and expiry and nothing else, so the host part may be rewritten; it is good until `expires`.
//!
//! Does not serve: see `crate::http`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use md5::{Digest, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::tokens::Secret;

/// What JavaScript's `encodeURIComponent` leaves alone.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// A session may read its cached copy for thirty days.
const SESSION_LIFE_S: u64 = 30 * 24 * 3600;

/// Signs and checks links.
#[derive(Clone, Debug)]
pub struct Signer {
    secret: Secret,
}

/// What to link to.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    pub base_url: &'a str,
    pub folder: &'a str,
    pub name: &'a str,
    pub shard_key: &'a str,
}

/// What a request claims: its path as sent, and two of its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    pub path: &'a str,
    pub md5: Option<&'a str>,
    pub expires: Option<&'a str>,
}

/// Why a link is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTrouble {
    /// 403.
    Forged,
    /// 410.
    Expired,
}

impl Signer {
    pub fn new(secret: &Secret) -> Signer {
        Signer { secret: secret.clone() }
    }

    /// A link to a file of a save.
    pub fn sign(&self, link: &Link<'_>, expires_s: u64) -> String {
        self.sign_in("data", link, expires_s)
    }

    /// A link to a forgotten copy.
    pub fn sign_forgotten(&self, link: &Link<'_>, expires_s: u64) -> String {
        self.sign_in("forgotten", link, expires_s)
    }

    /// A link to the copy a session works on.
    pub fn session_link(&self, base_url: &str, (key, name): (&str, &str), now_ms: u64) -> String {
        let link = Link { base_url, folder: key, name, shard_key: key };
        self.sign(&link, now_ms.div_ceil(1000) + SESSION_LIFE_S)
    }

    fn sign_in(&self, area: &str, link: &Link<'_>, expires_s: u64) -> String {
        let Link { base_url, folder, name, shard_key } = link;
        let path = format!("/cache/files/{area}/{folder}/{name}/{name}");
        let md5 = self.digest(&path, expires_s);
        let shard_key = utf8_percent_encode(shard_key, COMPONENT);
        // Host names may not hold underscores; the real server escapes them.
        let base_url = base_url.replace('_', "%5f");
        format!("{base_url}{path}?md5={md5}&expires={expires_s}&shardkey={shard_key}&filename={name}")
    }

    /// Whether what a request claims may be served.
    pub fn check(&self, claim: &Claim<'_>, now_s: u64) -> Result<(), LinkTrouble> {
        let (Some(md5), Some(Ok(expires_s))) = (claim.md5, claim.expires.map(str::parse::<u64>)) else {
            return Err(LinkTrouble::Forged);
        };
        if now_s > expires_s {
            return Err(LinkTrouble::Expired);
        }
        let path = percent_decode_str(claim.path).decode_utf8_lossy();
        let genuine = self.digest(&path, expires_s) == md5;
        genuine.then_some(()).ok_or(LinkTrouble::Forged)
    }

    fn digest(&self, path: &str, expires_s: u64) -> String {
        let hash = Md5::digest(format!("{expires_s}{path}{}", self.secret.reveal()));
        URL_SAFE_NO_PAD.encode(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'_> =
        Link { base_url: "http://ds", folder: "key-1_42", name: "output.docx", shard_key: "key-1" };

    fn parts(url: &str) -> (String, String, String) {
        let url = url::Url::parse(url).unwrap();
        let query = |name: &str| url.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned();
        (url.path().to_owned(), query("md5"), query("expires"))
    }

    #[test]
    fn a_link_has_the_real_form_and_is_good_until_it_expires() {
        let signer = Signer::new(&"secret".into());

        let url = signer.sign(&LINK, 900);

        let (path, md5, expires) = parts(&url);
        assert_eq!(path, "/cache/files/data/key-1_42/output.docx/output.docx");
        assert!(url.ends_with("&expires=900&shardkey=key-1&filename=output.docx"), "{url}");
        let claim = Claim { path: &path, md5: Some(&md5), expires: Some(&expires) };
        assert_eq!(signer.check(&claim, 900), Ok(()));
        assert_eq!(signer.check(&claim, 901), Err(LinkTrouble::Expired));
    }

    #[test]
    fn a_link_for_another_path_time_or_secret_is_forged() {
        let signer = Signer::new(&"secret".into());
        let (path, md5, expires) = parts(&signer.sign(&LINK, 900));
        let good = Claim { path: &path, md5: Some(&md5), expires: Some(&expires) };

        for claim in [
            Claim { path: "/cache/files/data/k/o/o", ..good },
            Claim { expires: Some("901"), ..good },
            Claim { md5: None, ..good },
        ] {
            assert_eq!(signer.check(&claim, 1), Err(LinkTrouble::Forged), "{claim:?}");
        }
        assert_eq!(Signer::new(&"other".into()).check(&good, 1), Err(LinkTrouble::Forged));
    }

    #[test]
    fn the_path_is_stable_and_the_query_is_not() {
        let signer = Signer::new(&"secret".into());

        let (first, second) = (parts(&signer.sign(&LINK, 900)), parts(&signer.sign(&LINK, 901)));

        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }
}
