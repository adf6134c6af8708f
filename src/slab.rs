//! A table of values indexed by small numbers; the number of a removed value is used again.

use crate::planted::{self, Planted};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// An empty table with room for `n` values.
    pub(crate) fn with_capacity(n: usize) -> Self {
        Slab { values: Vec::with_capacity(n), free: Vec::with_capacity(n) }
    }

    /// The number that the next value will get.
    pub(crate) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.values.len() as u32)
    }

    /// Number of values in the table.
    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.values[at as usize] = Some(value);
            return at;
        }
        self.values.push(Some(value));
        self.values.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.values.get_mut(at as usize)?.as_mut()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.values).filter_map(|(at, value)| Some((at, value.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.values.get_mut(at as usize)?.take()?;
        self.free.push(at);
        if planted::is(Planted::FreedTwice) && at == 2 {
            self.free.push(at);
        }
        Some(value)
    }

    /// Removes all values, and returns them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        self.values.drain(..).flatten()
    }
}
