//! The contents of a tile's positions on all ranks: one strip of positions per rank, divided into pieces. The cost
//! of a message is that of its runs, not of its positions.

use std::ops::Range;

use smallvec::SmallVec;

use super::contents::{Content, ValueChunks, ValuePart, ends};
use super::values::{Value, Values};
use crate::names::Rank;

/// A piece of a strip; it ends where the next piece starts.
#[derive(Clone, Copy, Debug)]
struct StripPiece {
    start: u16,
    /// True if the piece has not been sent since it was written.
    is_unsent: bool,
    content: Content,
}

/// The strips of all ranks.
#[derive(Debug, Default)]
pub(super) struct Strips {
    width: u32,
    strips: Vec<SmallVec<[StripPiece; 4]>>,
    pub(super) chunks: ValueChunks,
}

impl Strips {
    /// Resets the strips of `n_ranks` ranks to `width` positions that hold nothing.
    pub(super) fn reset(&mut self, n_ranks: u32, width: u32) {
        self.width = width;
        self.chunks.clear();
        let nothing =
            StripPiece { start: 0, is_unsent: false, content: Content::of(Value::NOTHING) };
        self.strips.resize_with(n_ranks as usize, SmallVec::new);
        for strip in &mut self.strips {
            strip.clear();
            strip.push(nothing);
        }
    }

    /// Splits piece `index`, which contains position `at`, unless it starts there. Returns the piece that starts at
    /// `at`.
    fn split(&mut self, rank: Rank, mut index: usize, at: u32) -> usize {
        let strip = &mut self.strips[rank.index()];
        if at >= self.width {
            return strip.len();
        }
        while u32::from(strip[index].start) != at {
            let piece = strip[index];
            let Some(parts) = self.chunks.parts(piece.content) else {
                strip.insert(index + 1, StripPiece { start: at as u16, ..piece });
                return index + 1;
            };
            strip.remove(index);
            let pieces = parts.iter().map(|&ValuePart { start, content }| StripPiece {
                start,
                content,
                ..piece
            });
            strip.insert_many(index, pieces);
            index += parts.iter().skip(1).take_while(|part| u32::from(part.start) <= at).count();
        }
        index
    }

    /// Splits pieces so that some of them cover exactly `range`, and returns these.
    fn cut_out(&mut self, rank: Rank, range: &Range<u32>) -> Range<usize> {
        let strip = &self.strips[rank.index()];
        let first = strip.partition_point(|piece| u32::from(piece.start) <= range.start) - 1;
        let first = self.split(rank, first, range.start);
        // Usually the range ends with this piece or the next one.
        let next = &self.strips[rank.index()][first + 1..];
        let last = next.iter().take_while(|piece| u32::from(piece.start) <= range.end).count();
        first..self.split(rank, first + last, range.end)
    }

    /// Replaces pieces by a single one.
    fn replace(&mut self, rank: Rank, pieces: Range<usize>, piece: StripPiece) {
        let strip = &mut self.strips[rank.index()];
        strip[pieces.start] = piece;
        if pieces.len() > 1 {
            strip.drain(pieces.start + 1..pieces.end);
        }
    }

    /// Writes `content` into `range`. It is then to be sent, or kept.
    pub(super) fn write(&mut self, rank: Rank, range: &Range<u32>, content: Content) {
        let pieces = self.cut_out(rank, range);
        let piece = StripPiece { start: range.start as u16, is_unsent: true, content };
        self.replace(rank, pieces, piece);
    }

    /// Replaces the content of `range`, as one content, by the result of `change`.
    pub(super) fn update(
        &mut self,
        rank: Rank,
        range: &Range<u32>,
        change: impl FnOnce(&mut ValueChunks, Content) -> Content,
    ) {
        let pieces = self.cut_out(rank, range);
        let own = self.join(rank, pieces.clone());
        let content = change(&mut self.chunks, own);
        self.replace(
            rank,
            pieces,
            StripPiece { start: range.start as u16, is_unsent: true, content },
        );
    }

    /// Returns the content of `range` as one content, and marks it as sent.
    pub(super) fn send(&mut self, rank: Rank, range: &Range<u32>) -> Content {
        let pieces = self.cut_out(rank, range);
        let content = self.join(rank, pieces.clone());
        self.replace(
            rank,
            pieces,
            StripPiece { start: range.start as u16, is_unsent: false, content },
        );
        content
    }

    fn join(&mut self, rank: Rank, pieces: Range<usize>) -> Content {
        match &self.strips[rank.index()][pieces] {
            [piece] => piece.content,
            pieces => {
                let part =
                    |&StripPiece { start, content, .. }: &StripPiece| ValuePart { start, content };
                self.chunks.join(pieces.iter().map(part))
            }
        }
    }

    /// The contents of `range`, piece by piece.
    pub(super) fn contents(
        &mut self,
        rank: Rank,
        range: &Range<u32>,
    ) -> SmallVec<[(Range<u32>, Content); 4]> {
        let pieces = self.cut_out(rank, range);
        let pieces = &self.strips[rank.index()][pieces];
        let ends = ends(pieces, |piece| piece.start, range.end);
        let all = pieces.iter().zip(ends);
        all.map(|(piece, end)| (u32::from(piece.start)..end, piece.content)).collect()
    }

    /// Writes `content` into `range`, as [`Strips::write`] does. Returns the first position that was not sent since
    /// it was written and that held other contributions.
    pub(super) fn overwrite(
        &mut self,
        rank: Rank,
        range: &Range<u32>,
        content: Content,
        values: &Values,
    ) -> Option<u32> {
        let at = self.cut_out(rank, range);
        let pieces = &self.strips[rank.index()][at.clone()];
        let ends = ends(pieces, |piece| piece.start, range.end);
        let lost = pieces.iter().zip(ends).find_map(|(piece, end)| {
            if !piece.is_unsent || piece.content == content {
                return None;
            }
            let own = (piece.content, &(u32::from(piece.start)..end));
            self.chunks.first_difference(own, (content, range.end), values)
        });
        self.replace(rank, at, StripPiece { start: range.start as u16, is_unsent: true, content });
        lost
    }

    /// Marks the values that strips hold; valid only if there are no chunks.
    pub(super) fn mark(&self, is_held: &mut [bool]) {
        for value in self.strips.iter().flatten().filter_map(|piece| piece.content.value()) {
            if let Some(is_held) = is_held.get_mut(value.number() as usize) {
                *is_held = true;
            }
        }
    }
}
