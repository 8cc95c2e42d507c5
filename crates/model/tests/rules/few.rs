//! A short list that lives inside a world.
//!
//! Guarantees: two lists of the same things in the same order are equal, also bit by bit; a list that is full says so.
//! Does not do: grow. A world is copied a million times and must stay small.

/// A list of few things, kept in place. Unused places hold the default, so that equal lists are equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Few<T, const N: usize> {
    items: [T; N],
    count: u8,
}

impl<T: Copy + Default, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self { items: [T::default(); N], count: 0 }
    }
}

impl<T: Copy + Default + Ord, const N: usize> Few<T, N> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.count)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == N
    }

    pub(crate) fn push(&mut self, item: T) {
        assert!(!self.is_full(), "the world is too small for this budget: raise the limit");
        let count = self.len();
        self.items[count] = item;
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, at: usize) -> T {
        let removed = self.items[at];
        let count = self.len();
        self.items.copy_within(at + 1..count, at);
        self.items[count - 1] = T::default();
        self.count -= 1;
        removed
    }

    pub(crate) fn sort(&mut self) {
        let count = self.len();
        self.items[..count].sort_unstable();
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.items[..self.len()]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        let count = self.len();
        &mut self.items[..count]
    }
}
