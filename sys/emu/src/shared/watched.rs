//! The part of a put that is written last.
//!
//! A program puts a packet without a notice, watches one word of it, and reads the rest as soon as that word has
//! changed. Tofu writes a put line after line, each line at once, and the highest address last. No processor writes a
//! line in one store, so the end that the program watches is written last: of a put within one line mostly the first
//! bytes, a header; of a longer put the last bytes, a flag behind the data.

/// Bytes of a line: Tofu writes a put within one line at once.
pub(crate) const LINE: u64 = 256;
/// Bytes of a processor's cache line.
pub(crate) const CACHE_LINE: u64 = 64;
/// Bytes of a processor's widest usual store (AVX2). The kernel's `rep movsb` writes a cache line as several such
/// stores, upwards, and an interrupt may come between two of them.
const STORE: u64 = 32;

/// The end of a put that a program watches without a notice; it is written last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watched {
    /// The first 32 bytes of a put within one line; the last bytes of other puts, as with `Last`.
    #[default]
    Usual,
    /// The first 32 bytes of the put: headers before the payload.
    First,
    /// The last bytes of the put: headers or flags behind the payload. With STRONG_ORDER the last bytes of each line,
    /// for several packets in one put.
    Last,
}

impl Watched {
    /// Returns the sequence in which a put of `len` bytes to `to` is written for ranks that watch this end.
    #[inline]
    pub(crate) fn write_order(self, to: u64, len: u64, is_strong: bool) -> WriteOrder {
        let is_first = match self {
            Watched::Usual => to % LINE + len <= LINE,
            Watched::First => true,
            Watched::Last => false,
        };
        match (is_first, is_strong) {
            (true, _) => WriteOrder::HeadLast,
            (false, true) => WriteOrder::Lines,
            (false, false) => WriteOrder::TailLast,
        }
    }
}

/// The sequence in which the bytes of a put are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOrder {
    Any,
    /// Downwards: the first cache line last, and within it the first store last.
    HeadLast,
    /// The last cache line last.
    TailLast,
    /// Line after line upwards, the last cache line of each line after the rest of the line.
    Lines,
}

/// Returns how many bytes of a put of `len` bytes to `to` lie in its first cache line.
#[inline]
pub(crate) fn head(to: u64, len: usize) -> usize {
    len.min((CACHE_LINE - to % CACHE_LINE) as usize)
}

/// Returns the parts, as start and end, in which a put of `len` bytes to `to` is written downwards.
#[inline]
pub(crate) fn downwards(to: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let line = head(to, len);
    let store = line.min((STORE - to % STORE) as usize);
    [(line, len), (store, line), (0, store)].into_iter().filter(|(start, end)| start < end)
}

/// Returns how many bytes of a put of `len` bytes to `to` lie before its last cache line.
#[inline]
pub(crate) fn before_tail(to: u64, len: usize) -> usize {
    let end = to + len as u64;
    (end.saturating_sub(1) / CACHE_LINE * CACHE_LINE).saturating_sub(to) as usize
}

/// Returns the parts, as start and end, in which a put of `len` bytes to `to` is written upwards: cut before the last
/// cache line of each line and of the put.
pub(crate) fn upwards(to: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let (mut start, last) = (0, before_tail(to, len));
    std::iter::from_fn(move || {
        let at = to + start as u64;
        let cut = ((at + CACHE_LINE) / LINE + 1) * LINE - CACHE_LINE - to;
        let end = if start < last { last.min(cut as usize) } else { len };
        let part = (start, end);
        start = end;
        (part.0 < part.1).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The watched start of a put is written last, in one store.
    #[test]
    fn the_first_store_is_the_last_part() {
        let parts = |to, len| downwards(to, len).collect::<Vec<_>>();
        assert_eq!(parts(256, 1024), [(64, 1024), (32, 64), (0, 32)]);
        assert_eq!(parts(256, 40), [(32, 40), (0, 32)]);
        assert_eq!(parts(256, 8), [(0, 8)]);
        assert_eq!(parts(296, 100), [(24, 100), (0, 24)]);
        assert_eq!(parts(266, 100), [(54, 100), (22, 54), (0, 22)]);
        assert_eq!(parts(256, 0), []);
    }

    /// The parts of a put cover it, and a part starts at the last cache line of each line.
    #[test]
    fn parts_go_upwards_and_end_before_tails() {
        let parts = |to, len| upwards(to, len).collect::<Vec<_>>();
        assert_eq!(parts(256, 0), []);
        assert_eq!(parts(256, 64), [(0, 64)]);
        assert_eq!(parts(256, 256), [(0, 192), (192, 256)]);
        assert_eq!(parts(256, 100), [(0, 64), (64, 100)]);
        assert_eq!(parts(440, 600), [(0, 8), (8, 264), (264, 520), (520, 584), (584, 600)]);
        assert_eq!(parts(250, 3), [(0, 3)]);
    }
}
