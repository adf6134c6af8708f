//! The most loaded link of steps without symmetry.

use std::hash::{DefaultHasher, Hash, Hasher};

use smallvec::smallvec;

use super::loads::{Hops, LoadProfile, RouteLoads};
use super::network::Network;
use crate::geometry::Vertex;
use crate::names::{LaneId, Rank, StepId};
use crate::plan::{Flow, LineStep, MessagesKey};

impl<'a> RouteLoads<'a> {
    /// The route loads of messages between ranks in a row, by target: the load of the most loaded link of the whole
    /// network.
    pub(super) fn of_row(
        &mut self,
        step: &LineStep<'a>,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
    ) -> Vec<usize> {
        let of_target = |target: usize| {
            let mut load = vec![0.0f32; network.whole().n_links()];
            let mut hops = [0u32; 2];
            let all = step.positions[target].max(1) as f32;
            for hop in step.hops().filter(|hop| hop.target == target) {
                let ends = [hop.from, hop.to].map(|rank| place(Rank(rank)));
                let weight = hop.positions as f32 / all;
                hops = hops
                    .max(network.route(network.whole(), ends, |link| load[link.index()] += weight));
            }
            let link = self.link(load.into_iter().fold(0.0, f32::max), None);
            self.route_load(smallvec![link], hops, network.per_node() as f32)
        };
        (0..step.positions.len()).map(of_target).collect()
    }

    /// Returns the most positions that a rank sends in a step, and a route load with the load of the most loaded link
    /// as a multiple of these positions. Steps with the same key have the same messages.
    pub(super) fn of_busiest(
        &mut self,
        flow: &dyn Flow,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
        (lane, step): (LaneId, StepId),
        key: Option<MessagesKey>,
    ) -> (u64, usize) {
        if let Some(&found) = key.as_ref().and_then(|key| self.by_key.get(key)) {
            return found;
        }
        let hash = key.is_none().then(|| {
            // Lanes often have the same messages, which are then routed once.
            let mut messages = DefaultHasher::new();
            flow.volumes(lane, step, &mut |from, to, positions| {
                (from, to, positions).hash(&mut messages)
            });
            messages.finish()
        });
        if let Some(&found) = hash.and_then(|hash| self.busiest.get(&hash)) {
            return found;
        }
        let found = self.count(flow, network, place, (lane, step));
        match (key, hash) {
            (Some(key), _) => _ = self.by_key.insert(key, found),
            (None, Some(hash)) => _ = self.busiest.insert(hash, found),
            (None, None) => {}
        }
        found
    }

    /// Counts all messages of a step, one by one.
    fn count(
        &mut self,
        flow: &dyn Flow,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
        (lane, step): (LaneId, StepId),
    ) -> (u64, usize) {
        let RouteLoads { load, sent, received, .. } = self;
        load.resize(network.whole().n_links());
        sent.resize(flow.n_ranks() as usize);
        received.resize((flow.n_ranks() / network.per_node()) as usize);
        let (mut most, mut node_most, mut link_most, mut longest) = (0, 0, 0, [0u32; 2]);
        flow.volumes(lane, step, &mut |from, to, positions| {
            most = most.max(sent.add(from.index(), positions));
            let receiver = network.node(place(to)) as usize;
            node_most = node_most.max(received.add(receiver, positions));
            longest = longest.max(network.route(network.whole(), [from, to].map(place), |link| {
                link_most = link_most.max(load.add(link.index(), positions));
            }));
        });
        let of = |count: u64| if most == 0 { 0.0 } else { count as f32 / most as f32 };
        let loads = load.drain().map(|(link, load)| (link, of(load))).collect();
        sent.drain().for_each(drop);
        received.drain().for_each(drop);
        let number = self.link(of(link_most), None);
        let route_load = self.route_load(smallvec![number], longest, of(node_most));
        self.of_step.push((route_load, loads));
        (most, route_load)
    }

    /// Adds a link of a step without symmetry; `shared` is the number of a link that other route loads may use, too.
    fn link(&mut self, load: f32, shared: Option<u32>) -> u32 {
        let (load, hops) = (vec![load], Hops::Unknown);
        let (dim, is_alike, is_on_ring) = (None, false, false);
        self.profiles.push(LoadProfile { dim, load, is_alike, is_on_ring, shared, hops });
        self.profiles.len() as u32 - 1
    }

    /// Ends a step, when the messages of all its lanes are known. Lanes without symmetry meet on the link that they
    /// load most together.
    pub(super) fn end_step(&mut self) {
        let of_step = std::mem::take(&mut self.of_step);
        if of_step.len() < 2 {
            return;
        }
        let mut sum = std::mem::take(&mut self.sum);
        for &(link, load) in of_step.iter().flat_map(|(_, loads)| loads) {
            let needed = sum.len().max(link as usize + 1);
            sum.resize(needed, 0.0);
            sum[link as usize] += load;
        }
        let crossed = || of_step.iter().flat_map(|(_, loads)| loads).map(|(link, _)| *link);
        let busiest =
            crossed().max_by(|&a, &b| sum[a as usize].total_cmp(&sum[b as usize]).then(a.cmp(&b)));
        crossed().for_each(|link| sum[link as usize] = 0.0);
        self.sum = sum;
        let (Some(busiest), number) = (busiest, self.profiles.len() as u32) else { return };
        for (route_load, loads) in &of_step {
            let of_busiest = loads.iter().find(|(link, load)| *link == busiest && *load > 0.0);
            if let Some(&(_, load)) = of_busiest {
                let link = self.link(load, Some(number));
                self.all[*route_load].profiles.push(link);
            }
        }
    }
}
