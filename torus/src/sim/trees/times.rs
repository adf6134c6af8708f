//! Times of pieces, class by class of a lane's trees. Ports that share a lane work at the same time; notifications
//! between them cost nothing.

use super::branches::{busiest, by_step, interfaces, n_sharing};
use super::port::{Post, Received, Sent, drive};
use crate::sim::subtrees::{Branch, LaneTrees, SHARES, Subtree, Subtrees};
use smallvec::SmallVec;

use crate::collectives::Action;
use crate::plan::DependsOn;
use crate::sim::engine::Costs;
use crate::sim::outcome::TimeCategory;
use crate::sim::routed::StepFacts;
use crate::sim::speeds::Speeds;
use crate::sim::work::StepWork;

/// What the slowest path through a tree spends time on, in order: (category, ns, step).
pub(super) type CriticalPath = Vec<(TimeCategory, f64, Option<u32>)>;

/// A rank on the slowest path from the root, and when its last piece arrived, ns.
#[derive(Clone, Copy)]
struct Stop {
    branch: Branch,
    /// Messages for each piece on its sender's port.
    n_sharing: usize,
    arrival: f64,
}

/// When pieces pass through the trees of a lane, ns.
pub(super) struct Run {
    start: f64,
    /// By subtree towards the root, when it posts each piece; the root posts nothing.
    posted: Option<Pieces>,
    /// When the root has combined all pieces from below.
    combined: f64,
    /// From the root: until when its first messages wait for their receivers, and the slowest path.
    down: Option<(f64, Vec<Stop>)>,
    /// When the root's last piece arrives in the shift.
    shifted: Option<f64>,
    /// When the last rank is done.
    pub(super) end: f64,
}

/// Times of pieces, a row for each subtree, ns.
struct Pieces {
    n: usize,
    ns: Vec<f64>,
}

impl Pieces {
    /// The times of a subtree's pieces.
    fn of(&self, subtree: u32) -> &[f64] {
        &self.ns[subtree as usize * self.n..][..self.n]
    }
}

/// The trees of a lane in a call.
pub(super) struct Tree<'a> {
    pub(super) costs: Costs<'a>,
    speeds: Speeds,
    share: f64,
    pieces: usize,
    /// Bytes of a piece.
    bytes: f64,
    /// All ranks of the tree have a message like the root's in the shift.
    trees: &'a LaneTrees,
}

impl<'a> Tree<'a> {
    pub(super) fn new(costs: Costs<'a>, speeds: Speeds, share: f64, trees: &'a LaneTrees) -> Self {
        let mut tree = Tree { costs, speeds, share, pieces: 1, bytes: 0.0, trees };
        let facts = tree.facts(Action::Copy, false);
        let segments = tree.costs.segments(&facts, &StepWork::default());
        tree.pieces = segments as usize;
        tree.bytes = tree.costs.message(&facts) / segments;
        tree
    }

    /// The facts of each step.
    fn facts(&self, action: Action, is_intra_node: bool) -> StepFacts {
        let (depends_on, share) = (DependsOn::Nothing, self.share);
        StepFacts { action, depends_on, share, n_sends: 1, is_everywhere: false, is_intra_node }
    }

    /// Time of a piece on its route, without latency, ns. The first of many pieces shares links with those of its
    /// step, later pieces more and more with those of all steps.
    fn wire(&self, branch: &Branch) -> f64 {
        let [in_step, in_all] =
            [branch.in_step, branch.in_all].map(|load| f64::from(load as f32 / SHARES));
        let first = 1.0 / self.pieces as f64;
        let load = (first * in_step + (1.0 - first) * in_all).max(1.0);
        let rate = match branch.hops {
            [0, 0] => self.speeds.uncontended(true),
            _ => self.speeds.interface.min(self.speeds.link / load),
        };
        self.bytes / rate
    }

    /// Time to copy a short piece, ns.
    fn eager_ns(&self, facts: &StepFacts) -> f64 {
        self.costs.copy_time(self.costs.eager(facts)) / self.pieces as f64
    }

    /// The messages that a rank sends in a step.
    fn sent(&self, action: Action, step: u32, is_intra_node: bool, n: usize) -> Sent {
        let facts = self.facts(action, is_intra_node);
        let (post_ns, _) = self.costs.post(step as usize, &facts);
        let first_ns = self.costs.first_contact_ns(&facts, n as u32);
        Sent { n, post_ns, copy_ns: self.eager_ns(&facts), first_ns, after_ns: 0.0 }
    }

    /// Times of a port for a piece that has arrived from `n` senders, ns: to poll, and to combine or copy.
    fn received_ns(&self, action: Action, branch: &Branch, n: usize) -> [f64; 2] {
        let facts = self.facts(action, branch.is_intra_node);
        let n = n as f64;
        let poll = n * self.costs.poll_ns(branch.step as usize, &facts);
        let fold = match action {
            Action::Reduce => {
                n * self.bytes * self.costs.fold_ns
                    + self.costs.machine.reduce_start_ns(self.bytes, 1.0)
            }
            Action::Copy => n * self.eager_ns(&facts),
        };
        [poll, fold]
    }

    /// Time that the messages of a first step wait for the descriptors of their receivers, ns; 0 in later steps.
    fn ready(&self, action: Action, is_first: bool, is_intra_node: bool, hops: [u32; 2]) -> f64 {
        let machine = self.costs.machine;
        match is_first && self.costs.is_announced(&self.facts(action, is_intra_node)) {
            true => machine.post_ns + self.speeds.latency(hops) + machine.poll_ns,
            false => 0.0,
        }
    }

    /// Follows all pieces through the lane's trees, from a time on.
    pub(super) fn run(&self, start: f64) -> Run {
        let LaneTrees { up, down, .. } = self.trees;
        let posted = up.as_ref().map(|all| self.up(all, start));
        let received = match up.as_ref().zip(posted.as_ref()) {
            Some((all, posted)) => self.received(&all[all.len() - 1], posted),
            None => Vec::new(),
        };
        let (_, combined) = drive(&received, &[], start, self.pieces);
        let Some(down) = down else {
            let shifted = self.shift().map(|(branch, sent)| {
                let (posts, _) = drive(&received, &[sent], start, self.pieces);
                let arrivals = self.arrivals_of_posts(&[(0, &[branch])], &[branch], &posts);
                arrivals[0].last().copied().unwrap_or(start)
            });
            let end = shifted.map_or(combined, |arrival| arrival + self.shift_ns());
            return Run { start, posted, combined, down: None, shifted, end };
        };
        let first = down[down.len() - 1].branches[0];
        let ready = self.ready(Action::Copy, first.step == 0, first.is_intra_node, first.hops);
        let (stops, end) = self.down(down, received, [start, start + ready]);
        Run { start, posted, combined, down: Some((ready, stops)), shifted: None, end }
    }

    /// A rank's message in the shift.
    fn shift(&self) -> Option<(Branch, Sent)> {
        let of = |branch: Branch| self.sent(Action::Copy, branch.step, branch.is_intra_node, 1);
        self.trees.shift.map(|branch| (branch, of(branch)))
    }

    /// Time to poll for a piece of the shift and to copy it, ns.
    fn shift_ns(&self) -> f64 {
        let of_piece = |branch: Branch| self.received_ns(Action::Copy, &branch, 1);
        self.trees.shift.map_or(0.0, |branch| of_piece(branch).iter().sum())
    }

    /// Adds the slowest path of a run.
    pub(super) fn trace(&self, run: &Run, path: &mut CriticalPath) {
        let up = self.trees.up.as_ref().zip(run.posted.as_ref());
        if let Some((all, posted)) = up {
            self.trace_up(all, posted, [run.start, run.combined], path);
        }
        if let Some(((branch, sent), arrival)) = self.shift().zip(run.shifted) {
            let software = [sent.post_ns, sent.copy_ns];
            let ns = arrival - run.combined;
            self.add_breakdown(&branch, 1, software, Action::Copy, ns, path);
            path.push((TimeCategory::Software, run.end - arrival, Some(branch.step)));
        }
        let Some((ready, stops)) = &run.down else { return };
        let mut at = run.combined;
        if up.is_none() {
            path.push((TimeCategory::Latency, *ready, Some(0)));
            at = run.start + ready;
        }
        for (number, stop) in stops.iter().enumerate() {
            let [poll, copy] = self.received_ns(Action::Copy, &stop.branch, 1);
            let sent = self.sent(Action::Copy, stop.branch.step, stop.branch.is_intra_node, 1);
            let before = if number > 0 { poll } else { 0.0 };
            let software = [before + sent.post_ns, copy + sent.copy_ns];
            let ns = stop.arrival - at;
            self.add_breakdown(&stop.branch, stop.n_sharing, software, Action::Copy, ns, path);
            at = stop.arrival;
        }
        let last = stops.last().map(|stop| stop.branch.step);
        path.push((TimeCategory::Software, run.end - at, last));
    }

    /// Towards the root: when each subtree posts each piece.
    fn up(&self, all: &Subtrees, start: f64) -> Pieces {
        let mut posted = Pieces { n: self.pieces, ns: Vec::with_capacity(all.len() * self.pieces) };
        // A piece of the shift comes from another rank about when one leaves.
        let shift = self.shift().map(|(_, sent)| Sent { after_ns: self.shift_ns(), ..sent });
        for subtree in all {
            let Some((is_first, hops, is_intra_node)) = subtree.above else { break };
            let from = start + self.ready(Action::Reduce, is_first, is_intra_node, hops);
            let above = self.sent(Action::Reduce, u32::from(!is_first), is_intra_node, 1);
            let sent: SmallVec<[Sent; 2]> = [Some(above), shift].into_iter().flatten().collect();
            let received = self.received(subtree, &posted);
            let (posts, _) = drive(&received, &sent, from, self.pieces);
            let above = posts.iter().filter(|post| post.of == 0);
            posted.ns.extend(above.map(|post| post.at_ns));
        }
        posted
    }

    /// When the pieces of each branch arrive, ns; branches of one port share its interface.
    fn arrivals(&self, subtree: &Subtree, posted: &Pieces) -> Vec<Vec<f64>> {
        let branches = &subtree.branches;
        let wire: Vec<f64> = branches.iter().map(|branch| self.wire(branch)).collect();
        let uncontended = self.bytes / self.speeds.interface;
        let mut arrivals: Vec<Vec<f64>> = vec![Vec::with_capacity(self.pieces); branches.len()];
        let mut free = vec![f64::NEG_INFINITY; branches.len()];
        let mut interfaces = interfaces(branches);
        for _ in 0..self.pieces * branches.len() {
            let begins = |of: usize| {
                let next = arrivals[of].len();
                let ready = posted.of(branches[of].below).get(next)?;
                Some((of, ready.max(free[of])))
            };
            let next = (0..branches.len()).filter_map(begins).min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((of, begins)) = next else { break };
            let mut left = begins + wire[of];
            if branches[of].hops != [0, 0] {
                let interface = &mut interfaces[branches[of].port.index()];
                *interface = interface.max(begins) + uncontended;
                left = left.max(*interface);
            }
            // The sender's piece of the shift follows, on the same interface.
            free[of] = if self.trees.shift.is_some() { left + wire[of] } else { left };
            arrivals[of].push(left + self.speeds.latency(branches[of].hops));
        }
        arrivals
    }

    /// The pieces that a rank receives from below, step by step.
    fn received(&self, subtree: &Subtree, posted: &Pieces) -> Vec<Received> {
        let arrivals = self.arrivals(subtree, posted);
        let of_step = |(first, branches): (usize, &[Branch])| {
            let of_step = &arrivals[first..first + branches.len()];
            let last =
                |piece: usize| of_step.iter().map(|of| of[piece]).fold(f64::NEG_INFINITY, f64::max);
            let [poll, fold] = self.received_ns(Action::Reduce, &branches[0], busiest(branches));
            Received { arrivals: (0..self.pieces).map(last).collect(), ns: poll + fold }
        };
        by_step(&subtree.branches).into_iter().map(of_step).collect()
    }

    /// Follows the last piece towards the root between two times, from the rank below whose piece arrives last.
    fn trace_up(
        &self,
        all: &Subtrees,
        posted: &Pieces,
        [start, end]: [f64; 2],
        path: &mut CriticalPath,
    ) {
        let (mut at, mut until) = (&all[all.len() - 1], end);
        let mut hops = Vec::new();
        loop {
            let arrivals = self.arrivals(at, posted);
            let last = |of: &usize| arrivals[*of].last().copied().unwrap_or(start);
            let latest = (0..arrivals.len()).max_by(|a, b| last(a).total_cmp(&last(b)));
            let Some(branch) = latest.map(|latest| &at.branches[latest]) else { break };
            let begins = posted.of(branch.below).last().copied().unwrap_or(start);
            hops.push((branch, n_sharing(&at.branches, branch), until - begins));
            (at, until) = (&all[branch.below as usize], begins);
        }
        path.push((TimeCategory::Software, until - start, Some(0)));
        for (number, (branch, n_sharing, ns)) in hops.into_iter().rev().enumerate() {
            let [poll, fold] = self.received_ns(Action::Reduce, branch, 1);
            let sent = self.sent(Action::Reduce, branch.step, branch.is_intra_node, 1);
            let post = if number > 0 { sent.post_ns } else { 0.0 };
            let software = [poll + post, fold];
            self.add_breakdown(branch, n_sharing, software, Action::Reduce, ns, path);
        }
    }

    /// From the root: the slowest path, and when the last rank on it is done, ns.
    fn down(
        &self,
        all: &Subtrees,
        received: Vec<Received>,
        [start, from_root]: [f64; 2],
    ) -> (Vec<Stop>, f64) {
        let (mut slowest, mut end) = (Vec::new(), f64::NEG_INFINITY);
        let mut path: Vec<Stop> = Vec::new();
        let root = (all.len() - 1, received, from_root, 0, None);
        let mut open = vec![root];
        // By subtree: what it receives on the paths that are followed.
        let mut followed: Vec<Vec<Received>> = vec![Vec::new(); all.len()];
        while let Some((at, received, from, depth, stop)) = open.pop() {
            path.truncate(depth);
            path.extend(stop);
            let branches = &all[at].branches;
            let by_step = by_step(branches);
            let sent: Vec<Sent> = by_step
                .iter()
                .map(|(_, of)| {
                    self.sent(Action::Copy, of[0].step, of[0].is_intra_node, busiest(of))
                })
                .collect();
            let (posts, done) = drive(&received, &sent, from, self.pieces);
            if done > end {
                (slowest, end) = (path.clone(), done);
            }
            let arrivals = self.arrivals_of_posts(&by_step, branches, &posts);
            for (number, (branch, arrivals)) in branches.iter().zip(arrivals).enumerate() {
                // Of several equal branches the last is served last.
                let is_alike = |other: &Branch| Branch { step: branch.step, ..*other } == *branch;
                if branches[number + 1..].iter().any(is_alike) {
                    continue;
                }
                let arrival = arrivals.last().copied().unwrap_or(from);
                let n_sharing = n_sharing(branches, branch);
                let stop = Stop { branch: *branch, n_sharing, arrival };
                let ns = self.received_ns(Action::Copy, branch, 1).iter().sum();
                let (below, received) = (branch.below as usize, Received { arrivals, ns });
                if followed[below].iter().any(|other| other.is_never_before(&received)) {
                    continue;
                }
                followed[below].push(received.clone());
                open.push((below, vec![received], start, path.len(), Some(stop)));
            }
        }
        (slowest, end)
    }

    /// When posted pieces arrive, by branch, ns: an interface sends one piece after the other.
    fn arrivals_of_posts(
        &self,
        by_step: &[(usize, &[Branch])],
        all: &[Branch],
        posts: &[Post],
    ) -> Vec<Vec<f64>> {
        let mut arrivals: Vec<Vec<f64>> = vec![Vec::with_capacity(self.pieces); all.len()];
        let mut interfaces = interfaces(all);
        for post in posts {
            let (first, branches) = by_step[post.of];
            for (number, branch) in (first..).zip(branches) {
                let free = &mut interfaces[branch.port.index()];
                *free = free.max(post.at_ns) + self.wire(branch);
                arrivals[number].push(*free + self.speeds.latency(branch.hops));
            }
        }
        arrivals
    }

    /// Adds the parts of the time that a last piece takes from one rank to the next.
    fn add_breakdown(
        &self,
        branch: &Branch,
        n_sharing: usize,
        [software, handled]: [f64; 2],
        action: Action,
        ns: f64,
        path: &mut CriticalPath,
    ) {
        let step = Some(branch.step);
        let mut left = ns;
        let mut take = |wanted: f64| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let latency = take(self.speeds.latency(branch.hops));
        let (software, handled) = (take(software), take(handled));
        let uncontended = self.bytes / self.speeds.uncontended(branch.hops == [0, 0]);
        // Messages on the same port, or on a shared link, have the rest of the speed.
        let shared = (self.wire(branch) / uncontended).max(n_sharing as f64).max(1.0);
        let handling =
            if action == Action::Reduce { TimeCategory::Fold } else { TimeCategory::Copy };
        path.extend([
            (TimeCategory::Software, software, step),
            (TimeCategory::Wire, left / shared, step),
            (TimeCategory::Congestion, left - left / shared, step),
            (TimeCategory::Latency, latency, step),
            (handling, handled, step),
        ]);
    }
}
