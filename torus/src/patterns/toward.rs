//! The toward table: the step and the peer to which a coordinate forwards a block for another coordinate.
//!
//! For target x, walk the steps backwards with R = {x}: at step t every a outside R that has a peer in R forwards
//! at step t to that peer, and joins R. So a forwards at the *latest* step from which the block still arrives, and
//! the next hop's own step is later (algorithms.md section 2). Some rules determine the path themselves. As
//! patterns are vertex-transitive, column x = 0 suffices: a forwards the block for x as `normalise(a, x)` forwards
//! the block for 0.
//!
//! The column is a tree with root 0, in which steps ascend towards the root. In depth-first numbers, the blocks
//! that have arrived at a coordinate before a step are an interval ([`Toward::resident`]).

use std::ops::Range;

use super::pattern::{Hop, Pattern};

/// The toward table of a pattern.
#[derive(Clone, Debug)]
pub struct Toward {
    pattern: Pattern,
    /// Hop of every coordinate towards 0; `None` for 0 itself.
    column: Vec<Option<Hop>>,
    /// The coordinates other than 0 in the order of (step, target).
    hopping: Vec<u32>,
    /// For each step, where its coordinates start in `hopping`; one entry more than steps.
    start: Vec<u32>,
    /// Depth-first number of each coordinate, children by (step, target).
    number: Vec<u32>,
    /// For each coordinate, its children as (step, end of the child's subtree), by step.
    children: Vec<Vec<(u32, u32)>>,
}

impl Toward {
    /// The table of `pattern`. Takes O(size + steps) memory and at most O(steps x size) time; if the rule
    /// determines the paths, time is O(size + steps), too.
    pub fn new(pattern: Pattern) -> Self {
        let column = match pattern.has_explicit_hops() {
            true => (0..pattern.size()).map(|b| pattern.explicit_hop(b)).collect(),
            false => column(&pattern),
        };
        let mut hopping: Vec<u32> = (1..pattern.size()).collect();
        let key = |b: u32| column[b as usize].map(|hop| (hop.step, hop.target));
        hopping.sort_by_key(|&b| key(b));
        let mut start = vec![0; pattern.n_steps() as usize + 1];
        let mut children = vec![Vec::new(); column.len()];
        for &b in &hopping {
            if let Some(hop) = column[b as usize] {
                start[hop.step as usize + 1] += 1;
                children[hop.next as usize].push((hop.step, b));
            }
        }
        for step in 1..start.len() {
            start[step] += start[step - 1];
        }
        // Subtree sizes: a coordinate hops after all coordinates whose blocks pass through it.
        let mut sizes = vec![1u32; column.len()];
        for &b in &hopping {
            if let Some(hop) = column[b as usize] {
                sizes[hop.next as usize] += sizes[b as usize];
            }
        }
        let mut number = vec![0; column.len()];
        for &parent in std::iter::once(&0).chain(hopping.iter().rev()) {
            let mut next = number[parent as usize] + 1;
            for (_, child) in &mut children[parent as usize] {
                number[*child as usize] = next;
                next += sizes[*child as usize];
                *child = next;
            }
        }
        Toward { pattern, column, hopping, start, number, children }
    }

    /// The pattern.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The hop of a normalised coordinate towards 0.
    pub fn hop(&self, b: u32) -> Option<Hop> {
        self.column[b as usize]
    }

    /// The normalised coordinates that hop at step `t`, ordered by target.
    pub fn hopping(&self, t: u32) -> &[u32] {
        &self.hopping[self.start[t as usize] as usize..self.start[t as usize + 1] as usize]
    }

    /// The depth-first number of a normalised coordinate in the tree of the column.
    pub fn number(&self, b: u32) -> u32 {
        self.number[b as usize]
    }

    /// The depth-first numbers of the blocks at the normalised coordinate `b` after `done` steps, if all blocks
    /// move towards 0: its own block, and the subtrees whose roots have hopped to `b`. Empty if `b` itself has
    /// hopped.
    pub fn resident(&self, b: u32, done: u32) -> Range<u32> {
        let first = self.number[b as usize];
        if self.column[b as usize].is_some_and(|hop| hop.step < done) {
            return first..first;
        }
        first..self.subtree_end(b, done)
    }

    /// The depth-first numbers of all coordinates whose blocks pass through `b`, including `b`.
    pub fn subtree(&self, b: u32) -> Range<u32> {
        self.number[b as usize]..self.subtree_end(b, u32::MAX)
    }

    fn subtree_end(&self, b: u32, done: u32) -> u32 {
        let children = &self.children[b as usize];
        let n_earlier = children.partition_point(|&(step, _)| step < done);
        match n_earlier.checked_sub(1) {
            Some(last) => children[last].1,
            None => self.number[b as usize] + 1,
        }
    }

    /// True if all messages that a coordinate receives in step `t` of a reduce-scatter carry the same blocks, so
    /// that they are the operands of one fold.
    pub fn folds_evenly(&self, t: u32) -> bool {
        let sources = self.pattern.sources(t, 0);
        if sources.len() < 2 {
            return true;
        }
        // By target, the blocks that coordinate 0 receives.
        let mut blocks = vec![Vec::new(); sources.len()];
        for &b in self.hopping(t) {
            if let Some(hop) = self.hop(b) {
                let target = hop.target as usize;
                blocks[target].push(self.pattern.solve(sources[target], b));
            }
        }
        blocks.iter_mut().for_each(|blocks| blocks.sort_unstable());
        blocks.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The hops of a block from `a` to `x`: (step, number of the target), steps ascending.
    pub fn path(&self, a: u32, x: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = self.pattern.normalise(a, x);
        std::iter::from_fn(move || {
            let hop = self.column[at as usize]?;
            at = hop.next;
            Some((hop.step, hop.target))
        })
    }
}

/// The hop of every coordinate towards 0: the latest from which a block arrives.
fn column(pattern: &Pattern) -> Vec<Option<Hop>> {
    let size = pattern.size();
    let mut column = vec![None; size as usize];
    let mut reached = vec![0];
    let mut is_reached = vec![false; size as usize];
    is_reached[0] = true;
    for step in (0..pattern.n_steps()).rev() {
        // Only sources of members can join the set. A coordinate with several targets in the set takes the first of
        // these.
        let n_before = reached.len();
        for target in 0..pattern.targets(step, 0).len() {
            for index in 0..n_before {
                let next = reached[index];
                let a = pattern.sources(step, next)[target];
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
    column
}
