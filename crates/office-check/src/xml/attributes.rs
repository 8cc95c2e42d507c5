//! The attributes of one start tag, and whether one is there twice.
//!
//! Guarantees: telling repeated attributes takes `n log n` at worst, and next to nothing when all names look different.
//! Not its business: prefixes; the numbers of their namespaces come from [`super::namespaces`].

use super::fault::{Stop, XmlFaultKind};

/// Up to here comparing each with each is quicker than sorting.
const FEW: usize = 12;

/// A name as indices into the data at hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Name {
    /// Where it begins, with its prefix.
    pub(crate) start: usize,
    /// Where the part without prefix and colon begins.
    pub(crate) local: usize,
    /// Behind its last byte.
    pub(crate) end: usize,
}

impl Name {
    #[inline(always)]
    pub(crate) fn has_prefix(self) -> bool {
        self.local != self.start
    }

    #[inline(always)]
    pub(crate) fn whole_in(self, data: &[u8]) -> &[u8] {
        data.get(self.start..self.end).unwrap_or_default()
    }

    pub(crate) fn local_in(self, data: &[u8]) -> &[u8] {
        data.get(self.local..self.end).unwrap_or_default()
    }

    /// The prefix without its colon; empty if there is none.
    pub(crate) fn prefix_in(self, data: &[u8]) -> &[u8] {
        data.get(self.start..self.local.saturating_sub(1)).unwrap_or_default()
    }
}

/// One attribute as indices into the data at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attribute {
    pub(crate) name: Name,
    /// The value between its quotes.
    pub(crate) value_start: usize,
    pub(crate) value_end: usize,
    /// The number of its namespace, if it has a prefix and was resolved.
    pub(crate) namespace: Option<u32>,
}

impl Attribute {
    pub(crate) fn value_in<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        data.get(self.value_start..self.value_end).unwrap_or_default()
    }

    /// The prefix it declares, if it declares a namespace; the empty one is the default.
    pub(crate) fn declares<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        match (self.name.prefix_in(data), self.name.local_in(data)) {
            (b"xmlns", prefix) => Some(prefix),
            (b"", b"xmlns") => Some(b""),
            _ => None,
        }
    }
}

/// The attributes of the tag that is being read.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    items: Vec<Attribute>,
    /// A bit for each look a name can have; two names with the same look may be the same.
    looks: u64,
    may_repeat: bool,
    /// Whether namespaces must be resolved: there is a prefix or a declaration.
    has_namespaces: bool,
    order: Vec<u32>,
}

impl Attributes {
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.looks = 0;
        self.may_repeat = false;
        self.has_namespaces = false;
    }

    #[inline(always)]
    pub(crate) fn items(&self) -> &[Attribute] {
        &self.items
    }

    pub(crate) fn items_mut(&mut self) -> &mut [Attribute] {
        &mut self.items
    }

    #[inline(always)]
    pub(crate) fn has_namespaces(&self) -> bool {
        self.has_namespaces
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, data: &[u8], attribute: Attribute) {
        let name = attribute.name.whole_in(data);
        let (first, last) = (name.first().copied().unwrap_or(0), name.last().copied().unwrap_or(0));
        let look = 1 << ((usize::from(first) + usize::from(last) * 5 + name.len() * 11) % 64);
        self.may_repeat |= self.looks & look != 0;
        self.looks |= look;
        self.has_namespaces |= attribute.name.has_prefix() || name == b"xmlns";
        self.items.push(attribute);
    }

    /// Finds an attribute whose whole name was there before.
    #[inline(always)]
    pub(crate) fn refuse_repeated(&mut self, data: &[u8]) -> Result<(), Stop> {
        if self.may_repeat { self.refuse(|attribute| (0, attribute.name.whole_in(data))) } else { Ok(()) }
    }

    /// Finds an attribute whose namespace and local name were there before under another prefix.
    pub(crate) fn refuse_repeated_expanded(&mut self, data: &[u8]) -> Result<(), Stop> {
        // Attributes without a namespace were compared by their whole names; here none equals another.
        self.refuse(|attribute| match attribute.namespace {
            Some(namespace) => (u64::from(namespace) + 1, attribute.name.local_in(data)),
            None => (0, attribute.name.whole_in(data)),
        })
    }

    #[cold]
    fn refuse<'a>(&mut self, key: impl Fn(&Attribute) -> (u64, &'a [u8])) -> Result<(), Stop> {
        let repeated =
            if self.items.len() <= FEW { self.first_repeated(key) } else { self.first_repeated_sorted(key) };
        match repeated {
            Some(at) => Err(Stop::Fault(XmlFaultKind::DuplicateAttribute, at)),
            None => Ok(()),
        }
    }

    fn first_repeated<'a>(&self, key: impl Fn(&Attribute) -> (u64, &'a [u8])) -> Option<usize> {
        let is_repeated = |at: usize| {
            let mut earlier = self.items.iter().take(at);
            self.items.get(at).is_some_and(|late| earlier.any(|early| key(early) == key(late)))
        };
        (1..self.items.len()).find(|at| is_repeated(*at)).and_then(|at| self.start_of(at))
    }

    fn first_repeated_sorted<'a>(&mut self, key: impl Fn(&Attribute) -> (u64, &'a [u8])) -> Option<usize> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..u32::try_from(self.items.len()).unwrap_or(u32::MAX));
        let key_of = |at: u32| self.items.get(at as usize).map(&key);
        order.sort_unstable_by(|left, right| (key_of(*left), left).cmp(&(key_of(*right), right)));
        let later =
            order.windows(2).filter(|pair| key_of(pair[0]) == key_of(pair[1])).map(|pair| pair[1]).min();
        self.order = order;
        later.and_then(|at| self.start_of(at as usize))
    }

    fn start_of(&self, at: usize) -> Option<usize> {
        self.items.get(at).map(|attribute| attribute.name.start)
    }
}
