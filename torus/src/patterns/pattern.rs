//! A pattern on a ring of a given size: its rule, its forms and its properties.

use super::kind::{PatternKind, UnsupportedSize};
use super::rule::{Descent, Peers, RingRule};

/// One hop towards coordinate 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The step of the hop.
    pub step: u32,
    /// The number of the target at that step.
    pub target: u32,
    /// The coordinate that the hop leads to.
    pub next: u32,
}

/// A pattern on a ring of a given size.
#[derive(Clone, Debug)]
pub struct Pattern {
    size: u32,
    mirrored: bool,
    far_first: bool,
    /// True if the groups of each step are shifted down by half a group.
    shifted: bool,
    rule: RingRule,
}

impl Pattern {
    /// The plain, near-first form of `kind` on `size` coordinates.
    ///
    /// # Errors
    /// [`UnsupportedSize`] if the kind does not serve the size.
    pub fn new(kind: PatternKind, size: u32) -> Result<Self, UnsupportedSize> {
        kind.serves(size)?;
        let (rule, mirrored) = RingRule::new(&kind, size);
        Ok(Pattern { size, mirrored, far_first: false, shifted: false, rule })
    }

    /// The mirror image if `mirrored`, else the same pattern.
    pub fn mirrored(mut self, mirrored: bool) -> Self {
        self.mirrored ^= mirrored;
        self
    }

    /// The form with its steps in reverse order if `far_first`, else the same pattern.
    pub fn far_first(mut self, far_first: bool) -> Self {
        self.far_first ^= far_first;
        self
    }

    /// The form that loads the links that the plain form leaves idle: the mirror image, unless near-first groups of
    /// neighbours exchange. Their mirror image mostly loads the same links again, so their groups shift by half a
    /// group in each step; `doubling` goes from a to 2a - (a xor 2^t) (Swing, section 5.1).
    ///
    /// Step t still clears digit t and keeps the lower ones, so blocks move towards their owners as in the plain form.
    /// But the carry into the higher digits depends on the coordinate: groups do not nest, and
    /// [`Pattern::normalise`] preserves no targets. Hence only passes with blocks from all coordinates to all can use
    /// this form.
    pub fn opposed(self) -> Self {
        match !self.far_first && self.rule.half_group(0).is_some() {
            true => Pattern { shifted: true, ..self },
            false => self.mirrored(true),
        }
    }

    /// Number of coordinates.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of steps.
    pub fn n_steps(&self) -> u32 {
        self.rule.n_steps
    }

    /// The targets of `a` at step `t`, in an order that [`Pattern::normalise`] preserves.
    pub fn targets(&self, t: u32, a: u32) -> Peers {
        self.peers(t, a, |b| b)
    }

    /// The coordinates that any non-empty subset of `steps`, taken one after the other, leads to from `a`; for a
    /// single step its targets.
    pub fn targets_of(&self, steps: &[u32], a: u32) -> Peers {
        let mut found = Peers::from_slice(&[a]);
        for &t in steps {
            for index in 0..found.len() {
                found.extend(self.targets(t, found[index]));
            }
        }
        found.remove(0);
        found
    }

    /// The sources of `a` at step `t`: entry `i` is the coordinate whose target `i` is `a`.
    pub fn sources(&self, t: u32, a: u32) -> Peers {
        self.peers(t, a, |b| self.rule.law.inverse(b))
    }

    /// `form` of each target of coordinate 0 at step `t`, composed with `a`.
    fn peers(&self, t: u32, a: u32, form: impl Fn(u32) -> u32) -> Peers {
        let shift = self.rule.half_group(t).filter(|_| self.shifted).unwrap_or(0);
        let a = (self.mirror(a) + shift) % self.size;
        let peer = |b| (self.rule.law.compose(a, form(b)) + self.size - shift) % self.size;
        self.steps(t).iter().map(|&b| self.mirror(peer(b))).collect()
    }

    /// The targets of coordinate 0 at step `t`, not mirrored.
    fn steps(&self, t: u32) -> &[u32] {
        let t = if self.far_first { self.n_steps() - 1 - t } else { t };
        self.rule.targets(t)
    }

    fn mirror(&self, a: u32) -> u32 {
        if self.mirrored && a > 0 { self.size - a } else { a }
    }

    /// The image of `a` under the renumbering that maps the pattern onto itself and `x` to 0.
    pub fn normalise(&self, a: u32, x: u32) -> u32 {
        let law = &self.rule.law;
        self.mirror(law.compose(law.inverse(self.mirror(x)), self.mirror(a)))
    }

    /// The coordinate `a` whose image is `b` when `x` moves to 0: `normalise(a, x) == b`.
    pub fn denormalise(&self, b: u32, x: u32) -> u32 {
        self.mirror(self.rule.law.compose(self.mirror(x), self.mirror(b)))
    }

    /// The coordinate `x` that must move to 0 for `a` to have image `b`: `normalise(a, x) == b`.
    pub fn solve(&self, a: u32, b: u32) -> u32 {
        let law = &self.rule.law;
        self.mirror(law.compose(self.mirror(a), law.inverse(self.mirror(b))))
    }

    /// The hop of image `b` towards 0, if the pattern's rule determines it; `None` for 0. For other patterns it is
    /// the latest hop from which a block still arrives, see [`Toward`](super::Toward).
    ///
    /// # Panics
    /// If [`Pattern::has_explicit_hops`] is false.
    pub fn explicit_hop(&self, b: u32) -> Option<Hop> {
        if b == 0 {
            return None;
        }
        let image = self.mirror(b);
        let law = &self.rule.law;
        let (step, target) = match &self.rule.descent {
            Descent::Latest => panic!("the way of this pattern is found by search"),
            Descent::Chain => (self.size - 1 - law.inverse(image), 0),
            Descent::Digits(digits) => {
                // The first step whose digit of the image is not 0 clears that digit.
                let of = |t: u32| {
                    let t = if self.far_first { self.n_steps() - 1 - t } else { t };
                    digits.all()[t as usize].of(image)
                };
                let step = (0..self.n_steps()).find(|&t| of(t) > 0).expect("a number above 0");
                (step, self.steps(step).len() as u32 - of(step))
            }
        };
        let next = law.compose(image, self.steps(step)[target as usize]);
        Some(Hop { step, target, next: self.mirror(next) })
    }

    /// True if [`Pattern::normalise`] maps all steps onto themselves. In a shifted form each step has a renumbering of
    /// its own.
    pub fn is_transitive(&self) -> bool {
        !self.shifted
    }

    /// True if the rule determines every hop, so that no search is needed.
    pub fn has_explicit_hops(&self) -> bool {
        !matches!(self.rule.descent, Descent::Latest)
    }

    /// True if each of d - 1 steps forwards one block, the farthest first: ring and k-ring. In the order of
    /// coordinates, or of distances ([`Pattern::distance`]), every set and every subtree is then a few runs, with
    /// one level for all steps.
    pub fn is_chain(&self) -> bool {
        matches!(self.rule.descent, Descent::Chain)
    }

    /// For a chain of `d` coordinates, the number of hops from image `b` to 0. The block takes the first hop in
    /// step `d - 1 - distance`. The order of distances is a depth-first order of the tree towards 0.
    pub fn distance(&self, b: u32) -> u32 {
        self.rule.law.inverse(self.mirror(b))
    }

    /// True if the sets that a coordinate sends and keeps are the same for all coordinates of a group, or nearly so
    /// (bine on even sizes that are not powers of two). Path order then makes these sets contiguous for every
    /// coordinate, even interleaved with other dimensions.
    pub fn is_nested(&self) -> bool {
        match &self.rule.descent {
            _ if self.n_steps() <= 1 => true,
            Descent::Chain => false,
            Descent::Latest => self.rule.is_alternating(),
            // Under a shift, numbers with equal low digits keep equal low digits, but numbers with equal high
            // digits do not.
            Descent::Digits(_) => {
                !self.rule.is_shift() || (self.rule.is_whole() && !self.far_first)
            }
        }
    }

    /// True if after each step the coordinates that have exchanged form groups, and each coordinate has received
    /// the contribution of every member exactly once. Only then does the latency form of allreduce exist
    /// (algorithms.md section 5). This depends on the order of the steps: bine's groups nest in far-first order.
    pub fn groups_nest(&self) -> bool {
        let law = &self.rule.law;
        // The contributions that coordinate 0 has received; those of other coordinates are the same, composed.
        let mut received = vec![0];
        let mut is_received = vec![false; self.size as usize];
        is_received[0] = true;
        let mut all_sources: Vec<u32> = Vec::new();
        for t in 0..self.n_steps() {
            let sources: Vec<u32> = self.steps(t).iter().map(|&b| law.inverse(b)).collect();
            for at in 0..received.len() {
                for &source in &sources {
                    let new = law.compose(source, received[at]);
                    if std::mem::replace(&mut is_received[new as usize], true) {
                        return false;
                    }
                    received.push(new);
                }
            }
            all_sources.extend(sources);
            // In a group the sources of all members are members.
            let is_closed =
                |&a: &u32| all_sources.iter().all(|&b| is_received[law.compose(a, b) as usize]);
            if !received.iter().all(is_closed) {
                return false;
            }
        }
        received.len() == self.size as usize
    }
}
