//! Lists that mostly have no entry, or one.

/// Takes an entry out of a list that mostly has one. Not `swap_remove`: the oldest stays in front, which
/// is the likeliest to be wanted next.
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

/// Appends a list to another one, and leaves it empty.
#[inline]
pub(super) fn hand_over<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}
