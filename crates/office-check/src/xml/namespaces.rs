//! The namespaces in scope.
//!
//! Guarantees: finding a prefix takes the same time however many are in scope, also for input that was made to be slow
//! (the hashes are seeded at random); two namespaces are the same if their numbers are.
//! Not its business: when an element begins or ends.

use std::hash::{BuildHasher as _, RandomState};

use super::fault::XmlFaultKind;
use super::limits::XmlLimits;

const XML_URI: &[u8] = b"http://www.w3.org/XML/1998/namespace";
const XMLNS_URI: &[u8] = b"http://www.w3.org/2000/xmlns/";

/// Lists of bindings by the hash of their prefix; few prefixes share one.
const BUCKETS: u64 = 256;

/// No binding.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Binding {
    /// Its prefix and its name stand in the bytes one after the other, up to where the next begins.
    start: usize,
    uri_start: usize,
    uri_hash: u64,
    /// The first binding in scope that has the same name.
    number: u32,
    bucket: usize,
    /// The next older binding in the same bucket.
    older: u32,
}

/// The namespaces in scope, the newest last.
#[derive(Debug)]
pub(crate) struct Namespaces {
    bindings: Vec<Binding>,
    bytes: Vec<u8>,
    newest: Vec<u32>,
    seeds: RandomState,
    /// The binding that was found last; elements with the same prefix come in rows.
    last: u32,
    count_max: usize,
    bytes_max: usize,
}

impl Namespaces {
    pub(crate) fn new(limits: &XmlLimits) -> Self {
        let mut namespaces = Self {
            bindings: Vec::new(),
            bytes: Vec::new(),
            newest: (0..BUCKETS).map(|_| NONE).collect(),
            seeds: RandomState::new(),
            last: NONE,
            // `xml` is always in scope and counts for nobody.
            count_max: limits.namespaces_max.saturating_add(1),
            bytes_max: limits.namespaces_bytes_max.saturating_add(64),
        };
        namespaces.bind(b"xml", XML_URI);
        namespaces
    }

    /// How many bindings there are, to go back to with [`Self::close`].
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Forgets what was declared since there were `len` bindings.
    #[inline(always)]
    pub(crate) fn close(&mut self, len: usize) {
        if self.bindings.len() > len {
            self.forget(len);
        }
    }

    /// The binding that was found last needs no care: it is gone, or still the newest of its prefix.
    fn forget(&mut self, len: usize) {
        while self.bindings.len() > len
            && let Some(binding) = self.bindings.pop()
        {
            if let Some(newest) = self.newest.get_mut(binding.bucket) {
                *newest = binding.older;
            }
            self.bytes.truncate(binding.start);
        }
    }

    /// Brings a namespace into scope. The empty prefix is the default, and the empty name takes it back.
    pub(crate) fn declare(&mut self, prefix: &[u8], uri: &[u8]) -> Result<(), XmlFaultKind> {
        let is_reserved = prefix == b"xmlns" || uri == XMLNS_URI || (prefix == b"xml") != (uri == XML_URI);
        if is_reserved || (uri.is_empty() && !prefix.is_empty()) {
            return Err(XmlFaultKind::BadNamespace);
        }
        let bytes = self.bytes.len().saturating_add(prefix.len()).saturating_add(uri.len());
        if self.bindings.len() >= self.count_max || bytes > self.bytes_max {
            return Err(XmlFaultKind::TooManyNamespaces);
        }
        self.bind(prefix, uri);
        Ok(())
    }

    fn bind(&mut self, prefix: &[u8], uri: &[u8]) {
        let bucket = self.bucket(prefix);
        let uri_hash = self.seeds.hash_one(uri);
        let index = u32::try_from(self.bindings.len()).unwrap_or(NONE);
        let number = self.number_of(uri, uri_hash).unwrap_or(index);
        let older = self.newest.get(bucket).copied().unwrap_or(NONE);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(prefix);
        let uri_start = self.bytes.len();
        self.bytes.extend_from_slice(uri);
        self.bindings.push(Binding { start, uri_start, uri_hash, number, bucket, older });
        if let Some(newest) = self.newest.get_mut(bucket) {
            *newest = index;
        }
        self.last = NONE;
    }

    fn number_of(&self, uri: &[u8], uri_hash: u64) -> Option<u32> {
        let is_same = |(index, binding): &(usize, &Binding)| {
            binding.uri_hash == uri_hash && self.uri_at(*index) == Some(uri)
        };
        self.bindings.iter().enumerate().find(is_same).map(|(_, binding)| binding.number)
    }

    fn bucket(&self, prefix: &[u8]) -> usize {
        usize::try_from(self.seeds.hash_one(prefix) % BUCKETS).unwrap_or(0)
    }

    /// The number of the namespace a prefix stands for.
    #[inline(always)]
    pub(crate) fn resolve(&mut self, prefix: &[u8]) -> Option<u32> {
        if self.prefix_at(self.last) != Some(prefix) {
            self.last = self.find(prefix)?;
        }
        self.bindings.get(self.last as usize).map(|binding| binding.number)
    }

    /// The name of the namespace a prefix stands for; the empty prefix is the default.
    pub(crate) fn uri(&self, prefix: &[u8]) -> Option<&[u8]> {
        self.find(prefix).and_then(|index| self.uri_at(index as usize)).filter(|uri| !uri.is_empty())
    }

    #[inline(never)]
    fn find(&self, prefix: &[u8]) -> Option<u32> {
        let mut index = self.newest.get(self.bucket(prefix)).copied().unwrap_or(NONE);
        while let Some(binding) = self.bindings.get(index as usize) {
            if self.prefix_at(index) == Some(prefix) {
                return Some(index);
            }
            index = binding.older;
        }
        None
    }

    #[inline(always)]
    fn prefix_at(&self, index: u32) -> Option<&[u8]> {
        self.bindings.get(index as usize).and_then(|binding| self.bytes.get(binding.start..binding.uri_start))
    }

    fn uri_at(&self, index: usize) -> Option<&[u8]> {
        let end = self.bindings.get(index + 1).map_or(self.bytes.len(), |next| next.start);
        self.bindings.get(index).and_then(|binding| self.bytes.get(binding.uri_start..end))
    }
}
