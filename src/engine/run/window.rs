//! The window of a communicator's operations: none posts whose number is ahead by [`Tag::WINDOW`] or more of one that
//! is under way. Operations start in the order of their numbers: see [`Engine::start`](crate::engine::Engine::start).

use std::collections::VecDeque;

use crate::endpoint::Tag;
use crate::planted::{self, Planted};

/// The window of one communicator.
#[derive(Debug)]
struct Window {
    context: u64,
    /// The lowest number under way.
    first: u32,
    /// Bit `i`: number `first + i` is under way and may post.
    active: u64,
    /// Numbers that may not post yet, in order of arrival, each with its `held_as`.
    held: VecDeque<(u32, u32)>,
}

const _: () = assert!(Tag::WINDOW == u64::BITS);

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct Windows(Vec<Window>);

impl Window {
    /// Distance of a number ahead of `first`, modulo the number of operations.
    fn ahead(&self, number: u32) -> u32 {
        number.wrapping_sub(self.first) % Tag::OPERATIONS
    }

    /// Adds a number that is under way; false if it may not post yet.
    #[inline]
    fn enter(&mut self, number: u32) -> bool {
        if self.active == 0 {
            (self.first, self.active) = (number, 1);
            return true;
        }
        let ahead = self.ahead(number);
        let may_post = ahead < Tag::WINDOW || planted::is(Planted::NoWindow);
        if ahead < Tag::WINDOW {
            self.active |= 1 << ahead;
        }
        may_post
    }
}

impl Windows {
    /// Adds an operation that is under way. Returns whether it may post; if not, [`leave`](Windows::leave) passes
    /// `held_as` on as soon as it may.
    #[inline]
    pub(crate) fn enter(&mut self, (context, number): (u64, u32), held_as: u32) -> bool {
        if let Some(window) = self.0.iter_mut().find(|window| window.context == context) {
            let may_post = window.enter(number);
            if !may_post {
                window.held.push_back((number, held_as));
            }
            return may_post;
        }
        self.open(context, number);
        true
    }

    /// Adds the window of a communicator, in place of one without operations if possible.
    #[cold]
    fn open(&mut self, context: u64, first: u32) {
        let window = Window { context, first, active: 1, held: VecDeque::new() };
        match self.0.iter_mut().find(|window| window.active == 0) {
            Some(free) => *free = window,
            None => self.0.push(window),
        }
    }

    /// Removes an operation that could post, and calls `give` with `held_as` of each operation that may post now.
    #[inline]
    pub(crate) fn leave(&mut self, (context, number): (u64, u32), mut give: impl FnMut(u32)) {
        let of = |window: &&mut Window| window.context == context;
        let Some(window) = self.0.iter_mut().find(of) else { return };
        let ahead = window.ahead(number);
        if ahead >= Tag::WINDOW {
            return;
        }
        window.active &= !(1 << ahead);
        if window.active != 0 {
            let n_gone = window.active.trailing_zeros();
            window.first = (window.first + n_gone) % Tag::OPERATIONS;
            window.active >>= n_gone;
        }
        while let Some(&(number, held_as)) = window.held.front()
            && window.enter(number)
        {
            window.held.pop_front();
            give(held_as);
        }
    }

    /// Removes all operations.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A number out of order is held like one that is far ahead.
    #[test]
    fn what_is_behind_does_not_post_unrecorded() {
        for first in [200, 5, Tag::OPERATIONS - 1] {
            let behind = |by: u32| (0, first.wrapping_sub(by) % Tag::OPERATIONS);
            let mut windows = Windows::default();
            assert!(windows.enter(behind(0), 0));
            assert!(!windows.enter(behind(Tag::WINDOW + 1), 1));
            let mut given = Vec::new();
            windows.leave(behind(0), |held_as| given.push(held_as));
            assert_eq!(given, [1]);
            // The number that was held is under way: one that is far ahead of it waits.
            assert!(!windows.enter(behind(1), 2));
            windows.leave(behind(Tag::WINDOW + 1), |held_as| given.push(held_as));
            assert_eq!(given, [1, 2]);
        }
    }

    proptest! {
        /// Compares with the definition: no operation posts while one is under way that is far behind it.
        #[test]
        fn none_posts_that_is_far_ahead(
            first in prop_oneof![0..300u32, Tag::OPERATIONS - 300..Tag::OPERATIONS],
            // Whether an operation starts, of which communicator, and how many numbers it leaves out; or which of the
            // operations that may post ends.
            steps in prop::collection::vec(
                (any::<bool>(), 0..3u64, 0..3u32, any::<prop::sample::Index>()),
                1..400,
            ),
        ) {
            let mut windows = Windows::default();
            let mut next = [first; 3];
            // The operations under way, each with its `held_as` and whether it may post.
            let mut under_way: Vec<((u64, u32), u32, bool)> = Vec::new();
            let far = |(context, number): (u64, u32), (of, behind): (u64, u32)| {
                let ahead = number.wrapping_sub(behind) % Tag::OPERATIONS;
                context == of && (Tag::WINDOW..Tag::OPERATIONS / 2).contains(&ahead)
            };
            for (at, (starts, context, left_out, which)) in steps.into_iter().enumerate() {
                // More operations start than end.
                let may_post: Vec<usize> =
                    (0..under_way.len()).filter(|&index| under_way[index].2).collect();
                if starts || at % 3 == 0 || may_post.is_empty() {
                    let number = (next[context as usize] + left_out) % Tag::OPERATIONS;
                    next[context as usize] = (number + 1) % Tag::OPERATIONS;
                    let id = (context, number);
                    let may = windows.enter(id, at as u32);
                    under_way.push((id, at as u32, may));
                } else {
                    let (id, ..) = under_way.remove(may_post[which.index(may_post.len())]);
                    windows.leave(id, |held_as| {
                        let held = under_way.iter_mut().find(|(_, at, _)| *at == held_as);
                        let (_, _, may_post) = held.expect("held and under way");
                        assert!(!std::mem::replace(may_post, true));
                    });
                }
                for &(id, _, may) in &under_way {
                    let waits = under_way.iter().any(|&(other, ..)| far(id, other));
                    prop_assert_eq!(may, !waits, "{:?} of {:?}", id, under_way);
                }
            }
        }
    }
}
