//! A map from byte ranges to values, for the compiler of programs.
//!
//! Ranges that were never set have no value. Setting a range splits the ranges that it overlaps, so the contents of a
//! queried range are whole intervals.

use std::collections::BTreeMap;
use std::ops::Range;

use smallvec::SmallVec;

/// Disjoint half-open ranges, each with a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalMap<V> {
    /// Start of each range, with its end and its value.
    ranges: BTreeMap<u64, (u64, V)>,
}

/// The entries that overlap a queried range.
enum Found<'a, V> {
    Nothing,
    /// The queried range is the beginning of one entry, or all of it: the entry's end and value.
    Front(&'a mut (u64, V)),
    Parts,
}

impl<V: Clone> IntervalMap<V> {
    /// A map without any range.
    pub(crate) fn new() -> Self {
        IntervalMap { ranges: BTreeMap::new() }
    }

    /// The entries that overlap `range`, which is not empty. One search suffices unless the result is `Parts`.
    fn find(&mut self, range: &Range<u64>) -> Found<'_, V> {
        match self.ranges.range_mut(..range.end).next_back() {
            Some((&start, found)) if start == range.start && found.0 >= range.end => {
                Found::Front(found)
            }
            Some((_, (end, _))) if *end > range.start => Found::Parts,
            _ => Found::Nothing,
        }
    }

    /// Makes `at` a boundary: splits an entry that spans it.
    fn cut(&mut self, at: u64) {
        let Some((_, (end, value))) = self.ranges.range_mut(..at).next_back() else { return };
        if *end > at {
            let tail = (*end, value.clone());
            *end = at;
            self.ranges.insert(at, tail);
        }
    }

    /// Sets the whole of `range` to `value`.
    pub(crate) fn set(&mut self, range: Range<u64>, value: V) {
        self.replace(range, value, |_| {});
    }

    /// Sets the whole of `range` to `value`; calls `visit` with each previous value.
    pub(crate) fn replace(&mut self, range: Range<u64>, value: V, mut visit: impl FnMut(&V)) {
        if range.is_empty() {
            return;
        }
        match self.find(&range) {
            Found::Nothing => {}
            Found::Front((end, old)) if *end == range.end => {
                visit(old);
                *old = value;
                return;
            }
            Found::Front((end, old)) => {
                visit(old);
                let tail = (*end, std::mem::replace(old, value));
                *end = range.end;
                self.ranges.insert(range.end, tail);
                return;
            }
            Found::Parts => {
                self.within(range.clone()).for_each(|(_, old)| visit(old));
                self.clear(range.clone());
            }
        }
        self.ranges.insert(range.start, (range.end, value));
    }

    /// Removes the values within `range`.
    pub(crate) fn clear(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        while let Some((&start, _)) = self.ranges.range(range.clone()).next() {
            if let Some((end, value)) =
                self.ranges.remove(&start).filter(|(end, _)| *end > range.end)
            {
                self.ranges.insert(range.end, (end, value));
            }
        }
    }

    /// The entries within `range`, in order; entries that cross its bounds are clipped.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &V)> {
        let last = self.ranges.range(..range.end).next_back();
        let last = last.filter(|(_, (end, _))| *end > range.start && !range.is_empty());
        // Mostly there is at most one entry.
        let others = last.filter(|(start, _)| **start > range.start).map(|(&last, _)| {
            let first = self.ranges.range(..=range.start).next_back();
            let first = first.filter(|(_, (end, _))| *end > range.start);
            first.into_iter().chain(self.ranges.range(range.start + 1..last))
        });
        others.into_iter().flatten().chain(last).map(move |(&start, (end, value))| {
            (start.max(range.start)..(*end).min(range.end), value)
        })
    }

    /// Calls `change` for every part of `range` with the part's value; a part without a value first gets the default
    /// one.
    pub(crate) fn update(&mut self, range: Range<u64>, mut change: impl FnMut(&mut V))
    where
        V: Default,
    {
        if range.is_empty() {
            return;
        }
        let mut gaps: SmallVec<[Range<u64>; 2]> = SmallVec::new();
        let mut at = range.start;
        match self.find(&range) {
            Found::Nothing => {}
            Found::Front((end, value)) => {
                let tail = (*end > range.end).then(|| (*end, value.clone()));
                *end = range.end;
                change(value);
                if let Some(tail) = tail {
                    self.ranges.insert(range.end, tail);
                }
                return;
            }
            Found::Parts => {
                self.cut(range.start);
                self.cut(range.end);
                for (&start, (end, value)) in self.ranges.range_mut(range.clone()) {
                    if start > at {
                        gaps.push(at..start);
                    }
                    change(value);
                    at = *end;
                }
            }
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            let mut value = V::default();
            change(&mut value);
            self.ranges.insert(gap.start, (gap.end, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(map: &IntervalMap<u32>, range: Range<u64>) -> Vec<(Range<u64>, u32)> {
        map.within(range).map(|(range, &value)| (range, value)).collect()
    }

    #[test]
    fn setting_cuts_what_it_meets() {
        let mut map = IntervalMap::new();
        map.set(0..10, 1);
        map.set(4..6, 2);
        assert_eq!(all(&map, 0..10), [(0..4, 1), (4..6, 2), (6..10, 1)]);
        assert_eq!(all(&map, 3..5), [(3..4, 1), (4..5, 2)]);
        map.clear(2..8);
        assert_eq!(all(&map, 0..10), [(0..2, 1), (8..10, 1)]);
        assert_eq!(all(&map, 5..5), []);
    }

    #[test]
    fn what_is_there_already_keeps_its_bounds() {
        let mut map = IntervalMap::new();
        map.set(2..4, 7);
        map.set(4..9, 8);
        map.set(4..9, 9);
        map.update(2..4, |value| *value += 1);
        assert_eq!(all(&map, 0..10), [(2..4, 8), (4..9, 9)]);
        map.set(4..8, 1);
        assert_eq!(all(&map, 3..10), [(3..4, 8), (4..8, 1), (8..9, 9)]);
    }

    #[test]
    fn updating_fills_gaps() {
        let mut map = IntervalMap::new();
        map.set(2..4, 7);
        map.update(0..6, |value| *value += 1);
        assert_eq!(all(&map, 0..6), [(0..2, 1), (2..4, 8), (4..6, 1)]);
        map.update(3..5, |value| *value += 10);
        assert_eq!(all(&map, 0..6), [(0..2, 1), (2..3, 8), (3..4, 18), (4..5, 11), (5..6, 1)]);
    }
}
