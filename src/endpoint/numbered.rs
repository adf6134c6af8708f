//! Values by small numbers, which are used again.

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// The number that the next value gets.
    #[cfg(feature = "mpi")]
    pub(super) fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.values.len() as u32)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.values[at as usize] = Some(value);
            return at;
        }
        self.values.push(Some(value));
        self.values.len() as u32 - 1
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.values.get_mut(at as usize)?.as_mut()
    }

    #[cfg(feature = "mpi")]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.values).filter_map(|(at, value)| Some((at, value.as_ref()?)))
    }

    #[cfg(feature = "mpi")]
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.values.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(value)
    }
}
