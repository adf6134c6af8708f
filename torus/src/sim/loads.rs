//! What the messages of a step put on links, as far as they are alike.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::network::Network;
use super::score::{ResourceId, Score};
use crate::geometry::Vertex;
use crate::names::{LaneId, Rank, StepId};
use crate::plan::{Flow, LineHop, LineStep};

/// What messages that are alike put on links.
#[derive(Debug)]
pub(super) struct LoadProfile<'a> {
    /// The dimension along which they go; `None` for a step without symmetry.
    dim: Option<usize>,
    /// Of the longest way: cables, and links on boards.
    pub(super) hops: [u16; 2],
    /// By link of a line, how many of them cross it; of a step without symmetry, the largest.
    load: Vec<f32>,
    /// Whether each of them goes as far and meets as many on its busiest link.
    pub(super) is_alike: bool,
    /// The step and the target that they are, of a line.
    step: Option<(LineStep<'a>, usize)>,
}

#[derive(Default)]
pub(super) struct Profiles<'a> {
    pub(super) all: Vec<LoadProfile<'a>>,
    /// By dimension and bits of the loads.
    known: HashMap<(usize, Vec<u32>), usize>,
    /// By a hash of all messages of a step, what the busiest are.
    busiest: HashMap<u64, (u64, usize)>,
    /// Of the step at hand, by link what it carries and by rank what it sends; all 0 between steps.
    load: Vec<u64>,
    sent: Vec<u64>,
}

impl<'a> Profiles<'a> {
    /// Those of a step's messages, by target.
    pub(super) fn of_line(&mut self, step: &LineStep<'a>, network: &Network) -> Vec<usize> {
        let line = network.line(step.dim);
        let new = |target| LoadProfile {
            dim: Some(step.dim),
            hops: [0; 2],
            load: vec![0.0; line.n_links()],
            is_alike: true,
            step: Some((step.clone(), target)),
        };
        let mut found: Vec<LoadProfile<'a>> = (0..step.positions.len()).map(new).collect();
        for LineHop { from, to, target, positions } in step.hops() {
            let profile = &mut found[target];
            // What carries less than the one that stands for all is a part of a message.
            let weight = positions as f32 / step.positions[target].max(1) as f32;
            let mut hops = [0u16; 2];
            line.route(Vertex(from), Vertex(to), &mut |link| {
                profile.load[link.index()] += weight;
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            if hops.iter().sum::<u16>() > profile.hops.iter().sum() {
                profile.hops = hops;
            }
        }
        let busiest: Vec<f32> =
            found.iter().map(|profile| profile.load.iter().copied().fold(0.0, f32::max)).collect();
        for LineHop { from, to, target, .. } in step.hops() {
            let profile = &mut found[target];
            let (mut hops, mut most) = ([0u16; 2], 0.0f32);
            line.route(Vertex(from), Vertex(to), &mut |link| {
                most = most.max(profile.load[link.index()]);
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            profile.is_alike &= hops == profile.hops && most == busiest[target];
        }
        let number = |profile: LoadProfile<'a>| {
            let bits = profile.load.iter().map(|load| load.to_bits()).collect();
            *self.known.entry((step.dim, bits)).or_insert_with(|| {
                self.all.push(profile);
                self.all.len() - 1
            })
        };
        found.into_iter().map(number).collect()
    }

    /// Those of the messages of ranks in a row, by target: what the most loaded link of the whole network
    /// carries.
    pub(super) fn of_row(
        &mut self,
        step: &LineStep<'a>,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
    ) -> Vec<usize> {
        let of_target = |target: usize| {
            let mut load = vec![0.0f32; network.whole().n_links()];
            let mut hops = [0u16; 2];
            let all = step.positions[target].max(1) as f32;
            for hop in step.hops().filter(|hop| hop.target == target) {
                let mut of_hop = [0u16; 2];
                let ends = [hop.from, hop.to].map(|rank| place(Rank(rank)));
                network.whole().route(ends[0], ends[1], &mut |link| {
                    load[link.index()] += hop.positions as f32 / all;
                    of_hop[usize::from(network.is_on_board(link))] += 1;
                });
                hops = hops.max(of_hop);
            }
            let busiest = vec![load.into_iter().fold(0.0, f32::max)];
            self.all.push(LoadProfile {
                dim: None,
                hops,
                load: busiest,
                is_alike: false,
                step: None,
            });
            self.all.len() - 1
        };
        (0..step.positions.len()).map(of_target).collect()
    }

    /// The most positions that a rank sends in a step, and what the most loaded link carries, as a
    /// multiple of them.
    pub(super) fn of_busiest(
        &mut self,
        flow: &dyn Flow,
        network: &Network,
        place: &dyn Fn(Rank) -> Vertex,
        lane: LaneId,
        step: StepId,
    ) -> (u64, usize) {
        // Lanes often do the same; their messages are routed once.
        let mut messages = DefaultHasher::new();
        flow.volumes(lane, step, &mut |from, to, positions| {
            (from, to, positions).hash(&mut messages)
        });
        let messages = messages.finish();
        if let Some(&found) = self.busiest.get(&messages) {
            return found;
        }
        self.load.resize(network.whole().n_links(), 0);
        self.sent.resize(flow.n_ranks() as usize, 0);
        let (load, sent) = (&mut self.load, &mut self.sent);
        let (mut most, mut link_most, mut longest) = (0, 0, [0u16; 2]);
        let mut touched = Vec::new();
        flow.volumes(lane, step, &mut |from, to, positions| {
            let of_sender = &mut sent[from.index()];
            *of_sender += positions;
            most = most.max(*of_sender);
            touched.push(from);
            let mut hops = [0u16; 2];
            network.whole().route(place(from), place(to), &mut |link| {
                let of_link = &mut load[link.index()];
                *of_link += positions;
                link_most = link_most.max(*of_link);
                hops[usize::from(network.is_on_board(link))] += 1;
            });
            longest = longest.max(hops);
        });
        load.fill(0);
        touched.into_iter().for_each(|rank| sent[rank.index()] = 0);
        let load = vec![if most == 0 { 0.0 } else { link_most as f32 / most as f32 }];
        self.all.push(LoadProfile { dim: None, hops: longest, load, is_alike: false, step: None });
        self.busiest.insert(messages, (most, self.all.len() - 1));
        (most, self.all.len() - 1)
    }

    /// Whether the messages of different lanes that go along a dimension in steps of one number meet each
    /// other alike, whoever sends them.
    pub(super) fn meet_alike(&self, score: &Score, network: &Network) -> bool {
        let n_steps = score.lanes.iter().map(|lane| lane.steps.len()).max().unwrap_or(0);
        let mut known: HashSet<Vec<u32>> = HashSet::new();
        for step in 0..n_steps {
            let mut by_dim: HashMap<usize, Vec<u32>> = HashMap::new();
            let of_step = score.lanes.iter().filter_map(|lane| lane.steps.get(step));
            // The path of a message is its profile, until resources are numbered.
            for profile in of_step.flat_map(|step| &step.messages).map(|message| message.path.start)
            {
                if let Some(dim) = self.all[profile as usize].dim {
                    by_dim.entry(dim).or_default().push(profile);
                }
            }
            for (dim, mut together) in by_dim {
                together.sort_unstable();
                if together.len() > 1
                    && known.insert(together.clone())
                    && !self.are_alike(dim, &together, network)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Whether all messages of a profile meet as many of these profiles on their busiest link.
    fn are_alike(&self, dim: usize, together: &[u32], network: &Network) -> bool {
        let line = network.line(dim);
        let mut load = vec![0.0f32; line.n_links()];
        for &profile in together {
            load.iter_mut()
                .zip(&self.all[profile as usize].load)
                .for_each(|(sum, load)| *sum += load);
        }
        together.iter().filter_map(|&profile| self.all[profile as usize].step.as_ref()).all(
            |(step, of)| {
                let hops = step.hops().filter(|hop| hop.target == *of);
                let mut busiest = hops.map(|LineHop { from, to, .. }| {
                    let mut most = 0.0f32;
                    line.route(Vertex(from), Vertex(to), &mut |link| {
                        most = most.max(load[link.index()])
                    });
                    most
                });
                let first = busiest.next();
                busiest.all(|most| Some(most) == first)
            },
        )
    }

    /// By profile, the resources that its messages cross, each with how many of them do. Links of a
    /// dimension that all profiles load alike are one resource.
    pub(super) fn into_resources(self, n_resources: &mut usize) -> Vec<Vec<(ResourceId, f32)>> {
        let mut paths: Vec<Vec<(ResourceId, f32)>> = vec![Vec::new(); self.all.len()];
        let mut by_dim: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (number, profile) in self.all.iter().enumerate() {
            by_dim.entry(profile.dim).or_default().push(number);
        }
        // In order, so that the same plan has the same numbers each time.
        let mut by_dim: Vec<_> = by_dim.into_iter().collect();
        by_dim.sort();
        for (dim, profiles) in by_dim {
            if dim.is_none() {
                for number in profiles {
                    paths[number].push((*n_resources as u32, self.all[number].load[0]));
                    *n_resources += 1;
                }
                continue;
            }
            let n_links = self.all[profiles[0]].load.len();
            let mut classes: HashSet<Vec<u32>> = HashSet::new();
            for link in 0..n_links {
                let loads = || profiles.iter().map(|&number| self.all[number].load[link]);
                let class: Vec<u32> = loads().map(f32::to_bits).collect();
                if loads().any(|load| load > 0.0) && classes.insert(class) {
                    for (&number, load) in profiles.iter().zip(loads()) {
                        if load > 0.0 {
                            paths[number].push((*n_resources as u32, load));
                        }
                    }
                    *n_resources += 1;
                }
            }
        }
        paths
    }
}
