//! The toward table: when, and to whom, a coordinate forwards what is meant for another.
//!
//! For target x: walk the steps backwards with R = {x}; every a outside R that has a peer in
//! R at step t forwards at step t to that peer, and joins R. So a forwards at the *latest*
//! step from which the block still arrives, and the next hop's own step is later
//! (algorithms.md section 2). Some rules say the way themselves. As patterns look the same
//! from everywhere, column x = 0 suffices.

use super::pattern::{Hop, Pattern};
use super::rule::Peers;

/// The toward table of a pattern.
#[derive(Clone, Debug)]
pub struct Toward {
    pattern: Pattern,
    /// Hop of every coordinate towards 0; `None` for 0 itself.
    column: Vec<Option<Hop>>,
}

impl Toward {
    /// The table of `pattern`. Costs O(steps x size) time at most, O(size) memory.
    pub fn new(pattern: Pattern) -> Self {
        let size = pattern.size();
        if pattern.has_explicit_hops() {
            let column = (0..size).map(|b| pattern.explicit_hop(b)).collect();
            return Toward { pattern, column };
        }
        let mut column = vec![None; size as usize];
        let mut reached = vec![0];
        let mut is_reached = vec![false; size as usize];
        is_reached[0] = true;
        for step in (0..pattern.n_steps()).rev() {
            // Only coordinates beside the set can join, so look at its sources.
            for index in 0..reached.len() {
                let next = reached[index];
                let sources: Peers = pattern.sources(step, next);
                for (target, &a) in sources.iter().enumerate() {
                    if !is_reached[a as usize] {
                        is_reached[a as usize] = true;
                        column[a as usize] = Some(Hop { step, target: target as u32, next });
                        reached.push(a);
                    }
                }
            }
            if reached.len() == size as usize {
                break;
            }
        }
        debug_assert_eq!(reached.len(), size as usize, "the pattern connects all coordinates");
        Toward { pattern, column }
    }

    /// The pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The step at which `a` forwards what is meant for `x`, and which of its targets then;
    /// `None` if `a` is `x`.
    pub fn step(&self, a: u32, x: u32) -> Option<(u32, u32)> {
        self.column[self.pattern.normalise(a, x) as usize].map(|hop| (hop.step, hop.target))
    }

    /// Like [`Toward::step`], with the coordinate that is sent to.
    pub fn hop(&self, a: u32, x: u32) -> Option<(u32, u32)> {
        self.column[self.pattern.normalise(a, x) as usize]
            .map(|hop| (hop.step, self.pattern.denormalise(hop.next, x)))
    }

    /// The hops of a block from `a` to `x`: (step, which target), steps ascending.
    pub fn path(&self, a: u32, x: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = self.pattern.normalise(a, x);
        std::iter::from_fn(move || {
            let hop = self.column[at as usize]?;
            at = hop.next;
            Some((hop.step, hop.target))
        })
    }
}
