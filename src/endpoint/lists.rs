//! Operations on lists that usually have at most one entry.

/// Removes the entry at `at`. Keeps the order, unlike `swap_remove`, so that the oldest entry, which is most likely
/// to be wanted next, stays first.
#[inline]
pub(super) fn take_out<T: Copy>(list: &mut Vec<T>, at: usize) -> T {
    let entry = list[at];
    if list.len() == 1 {
        list.clear();
    } else {
        list.remove(at);
    }
    entry
}

/// Moves all entries of `from` to the end of `to`.
#[inline]
pub(super) fn hand_over<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}
