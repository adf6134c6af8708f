//! Contents of consecutive positions: one value in all of them, or a chunk of several values.
//!
//! Neighbouring positions mostly hold the same value, or move together. So a message is one content whatever its
//! length, and many ranks can share a chunk.

use std::ops::Range;

use smallvec::SmallVec;

use super::values::{Value, Values};

/// The content of some consecutive positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(u32);

/// Contents with this number or a larger one are chunks.
const CHUNKS: u32 = Value::END + 1;

#[derive(Clone, Copy)]
enum Unpacked {
    Value(Value),
    Chunk(usize),
}

impl Content {
    /// One value in all positions.
    pub(super) fn of(value: Value) -> Self {
        Content(value.number())
    }

    /// The value, if all positions have the same.
    pub(super) fn value(self) -> Option<Value> {
        match self.kind() {
            Unpacked::Value(value) => Some(value),
            Unpacked::Chunk(_) => None,
        }
    }

    fn kind(self) -> Unpacked {
        match self.0.checked_sub(CHUNKS) {
            Some(chunk) => Unpacked::Chunk(chunk as usize),
            None => Unpacked::Value(Value::from_number(self.0)),
        }
    }
}

/// A part of a chunk; it ends where the next part starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValuePart {
    pub(super) start: u16,
    pub(super) content: Content,
}

/// A sequence of contents with fixed positions.
#[derive(Debug)]
struct ValueChunk {
    parts: Range<u32>,
    /// True if some position holds nothing.
    has_empty: bool,
    /// True if all positions are known to hold their correct result.
    is_right: bool,
}

/// A value in consecutive positions that end at `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) end: u32,
    pub(super) value: Value,
}

/// Consecutive stretches.
pub(super) type Stretches = SmallVec<[Stretch; 8]>;

/// All chunks.
#[derive(Debug, Default)]
pub(super) struct ValueChunks {
    chunks: Vec<ValueChunk>,
    /// The parts of all chunks.
    parts: Vec<ValuePart>,
}

impl ValueChunks {
    /// Forgets all chunks.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.parts.clear();
    }

    /// Joins consecutive parts into one content.
    pub(super) fn join(&mut self, parts: impl Iterator<Item = ValuePart>) -> Content {
        let first = self.parts.len();
        self.parts.extend(parts);
        if let [single] = self.parts[first..] {
            self.parts.truncate(first);
            return single.content;
        }
        let has_empty = self.parts[first..].iter().any(|part| self.has_empty(part.content));
        let parts = first as u32..self.parts.len() as u32;
        self.chunks.push(ValueChunk { parts, has_empty, is_right: false });
        Content(CHUNKS + (self.chunks.len() - 1) as u32)
    }

    /// Joins the values of consecutive stretches, the first of which begins at `start`, into one content.
    fn join_values(&mut self, start: u32, stretches: &[Stretch]) -> Content {
        let starts = [start].into_iter().chain(stretches.iter().map(|stretch| stretch.end));
        self.join(starts.zip(stretches).map(|(start, stretch)| ValuePart {
            start: start as u16,
            content: Content::of(stretch.value),
        }))
    }

    /// The parts of a content, if it is a chunk.
    pub(super) fn parts(&self, content: Content) -> Option<&[ValuePart]> {
        match content.kind() {
            Unpacked::Value(_) => None,
            Unpacked::Chunk(chunk) => Some(self.parts_of(chunk)),
        }
    }

    fn parts_of(&self, chunk: usize) -> &[ValuePart] {
        let Range { start, end } = self.chunks[chunk].parts;
        &self.parts[start as usize..end as usize]
    }

    fn has_empty(&self, content: Content) -> bool {
        match content.kind() {
            Unpacked::Value(value) => value == Value::NOTHING,
            Unpacked::Chunk(chunk) => self.chunks[chunk].has_empty,
        }
    }

    /// The first position that holds nothing; `content` fills `range`.
    pub(super) fn first_empty(&self, content: Content, range: &Range<u32>) -> Option<u32> {
        if !self.has_empty(content) {
            return None;
        }
        let stretches = self.stretches(content, range.end, range);
        let starts = [range.start].into_iter().chain(stretches.iter().map(|stretch| stretch.end));
        let empty = starts.zip(&stretches).find(|(_, stretch)| stretch.value == Value::NOTHING);
        empty.map(|(start, _)| start)
    }

    /// The values in the positions `within` of a content that ends at `end`.
    pub(super) fn stretches(&self, content: Content, end: u32, within: &Range<u32>) -> Stretches {
        let mut stretches = Stretches::new();
        self.list(content, end, within, &mut stretches);
        stretches
    }

    fn list(&self, content: Content, end: u32, within: &Range<u32>, stretches: &mut Stretches) {
        let chunk = match content.kind() {
            Unpacked::Chunk(chunk) => chunk,
            Unpacked::Value(value) => {
                let end = end.min(within.end);
                match stretches.last_mut() {
                    Some(last) if last.value == value => last.end = end,
                    _ => stretches.push(Stretch { end, value }),
                }
                return;
            }
        };
        let parts = self.parts_of(chunk);
        for (part, end) in parts.iter().zip(ends(parts, |part| part.start, end)) {
            if u32::from(part.start) >= within.end {
                break;
            }
            if end > within.start {
                self.list(part.content, end, within, stretches);
            }
        }
    }

    /// The content of the positions `within`, cut out of a content that fills `range`.
    pub(super) fn part(
        &mut self,
        content: Content,
        range: &Range<u32>,
        within: &Range<u32>,
    ) -> Content {
        if content.value().is_some() || range == within {
            return content;
        }
        let stretches = self.stretches(content, range.end, within);
        self.join_values(within.start, &stretches)
    }

    /// Combines `left` with `right`, which both fill `range`. Also returns the first position in which a
    /// contribution is detected to be in both.
    pub(super) fn combine(
        &mut self,
        left: Content,
        right: Content,
        range: &Range<u32>,
        values: &mut Values,
    ) -> (Content, Option<u32>) {
        if let (Some(left), Some(right)) = (left.value(), right.value()) {
            let (value, is_repeated) = values.combine(left, right);
            return (Content::of(value), is_repeated.then_some(range.start));
        }
        let left = self.stretches(left, range.end, range);
        let right = self.stretches(right, range.end, range);
        let mut repeated = None;
        let stretches: Stretches = zip_stretches(&left, &right, range.start)
            .map(|(at, left, right)| {
                let (value, is_repeated) = values.combine(left, right);
                repeated = repeated.or(is_repeated.then_some(at.start));
                Stretch { end: at.end, value }
            })
            .collect();
        (self.join_values(range.start, &stretches), repeated)
    }

    /// The first position of `own_range` in which two contents have different contributors. The first content fills
    /// `own_range`; the second covers it and ends at `end`.
    pub(super) fn first_difference(
        &self,
        (own, own_range): (Content, &Range<u32>),
        (other, end): (Content, u32),
        values: &Values,
    ) -> Option<u32> {
        let own = self.stretches(own, own_range.end, own_range);
        let other = self.stretches(other, end, own_range);
        let mut pairs = zip_stretches(&own, &other, own_range.start);
        pairs.find(|&(_, a, b)| !values.are_of_the_same(a, b)).map(|(at, ..)| at.start)
    }

    /// True if `is_right` holds for all values of a content that fills `range`. With `remember`, a chunk that was
    /// right on one rank is not checked again on other ranks.
    pub(super) fn are_right(
        &mut self,
        content: Content,
        range: &Range<u32>,
        remember: bool,
        is_right: &mut dyn FnMut(Value, &Range<u32>) -> bool,
    ) -> bool {
        let chunk = match content.kind() {
            Unpacked::Value(value) => return is_right(value, range),
            Unpacked::Chunk(chunk) => chunk,
        };
        if remember && self.chunks[chunk].is_right {
            return true;
        }
        let parts = self.chunks[chunk].parts.clone();
        for index in parts.clone() {
            let ValuePart { start, content } = self.parts[index as usize];
            let next = self.parts[..parts.end as usize].get(index as usize + 1);
            let end = next.map_or(range.end, |next| u32::from(next.start));
            if !self.are_right(content, &(u32::from(start)..end), remember, is_right) {
                return false;
            }
        }
        self.chunks[chunk].is_right = true;
        true
    }
}

/// The end of each of some neighbours: the start of the next one; `end` for the last.
pub(super) fn ends<'a, T>(
    neighbours: &'a [T],
    start: impl Fn(&T) -> u16 + 'a,
    end: u32,
) -> impl Iterator<Item = u32> + 'a {
    let next = neighbours.iter().skip(1);
    next.map(move |next| u32::from(start(next))).chain([end])
}

/// The values of two lists in the same positions, pairwise. Both lists begin at `start`.
fn zip_stretches<'a>(
    left: &'a [Stretch],
    right: &'a [Stretch],
    mut start: u32,
) -> impl Iterator<Item = (Range<u32>, Value, Value)> + 'a {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    std::iter::from_fn(move || {
        let (a, b) = (**left.peek()?, **right.peek()?);
        let range = start..a.end.min(b.end);
        left.next_if(|stretch| stretch.end == range.end);
        right.next_if(|stretch| stretch.end == range.end);
        start = range.end;
        Some((range, a.value, b.value))
    })
}
