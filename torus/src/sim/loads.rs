//! Loads that the messages of a step put on links, as far as the messages are alike.

use std::collections::{HashMap, HashSet};

use smallvec::{SmallVec, smallvec};

use super::counts::SparseCounts;
use super::network::Network;
use super::routed::{ResourceId, RoutedPlan};
use crate::geometry::Vertex;
use crate::plan::{LineHop, LineStep, MessagesKey, ProductStep, ShiftStep, TargetChoice};

/// The loads that messages of one kind put on the links of one dimension.
#[derive(Debug)]
pub(super) struct LoadProfile<'a> {
    /// The dimension along which the messages go; `None` for a step without symmetry.
    pub(super) dim: Option<usize>,
    /// By link of a line, how many of the messages cross it; without symmetry, only the largest number.
    pub(super) load: Vec<f32>,
    /// Whether the messages cross equally many links and meet equally many messages on their busiest links.
    pub(super) is_alike: bool,
    /// Whether all coordinates of the line are alike.
    pub(super) is_on_ring: bool,
    /// Without symmetry, the number of the link, if other messages of the same step are on it.
    pub(super) shared: Option<u32>,
    /// The messages.
    pub(super) hops: Hops<'a>,
}

/// The messages on a line.
#[derive(Clone, Debug)]
pub(super) enum Hops<'a> {
    /// The messages of a step to one of its targets.
    Line(LineStep<'a>, usize),
    /// One message from each of this many coordinates, over this displacement.
    Shift(u32, u32),
    /// Messages that are not on a line.
    Unknown,
}

impl Hops<'_> {
    /// Senders and receivers of the messages.
    fn ends(&self) -> Box<dyn Iterator<Item = (Vertex, Vertex)> + '_> {
        match self {
            Hops::Line(step, target) => {
                let hops = step.hops().filter(|hop| hop.target == *target);
                Box::new(hops.map(|LineHop { from, to, .. }| (Vertex(from), Vertex(to))))
            }
            &Hops::Shift(size, by) => {
                Box::new((0..size).map(move |a| (Vertex(a), Vertex((a + by) % size))))
            }
            Hops::Unknown => Box::new(std::iter::empty()),
        }
    }
}

/// Messages of a step with the same kind of route, along one dimension after the other.
#[derive(Clone, Debug)]
pub(super) struct RouteLoad {
    /// The numbers of their profiles, dimension by dimension.
    pub(super) profiles: SmallVec<[u32; 3]>,
    /// Links of the longest route: cables, and links on boards.
    pub(super) hops: [u32; 2],
    /// Messages of a node that are on each of its interfaces, or in its memory, at the same time.
    pub(super) of_node: f32,
    /// Whether the messages cross equally many links and meet equally many messages on their busiest links.
    pub(super) is_alike: bool,
    /// Whether equally many messages cross every link on their routes. Loads then stay equal if messages of another
    /// such load are added.
    pub(super) is_uniform: bool,
}

/// Profiles, hops, and bits of `of_node`.
type RouteLoadKey = (SmallVec<[u32; 3]>, [u32; 2], u32);

#[derive(Default)]
pub(super) struct RouteLoads<'a> {
    pub(super) all: Vec<RouteLoad>,
    /// Without symmetry, the route loads of the current step, each with the loads that it puts on links.
    pub(super) of_step: Vec<(usize, Vec<(u32, f32)>)>,
    /// In the current step, the load of each link by all lanes; all 0 between steps.
    pub(super) sum: Vec<f32>,
    pub(super) profiles: Vec<LoadProfile<'a>>,
    /// Numbers of profiles, by dimension and bits of the loads.
    known: HashMap<(usize, Vec<u32>), u32>,
    /// Numbers of profiles and hops of displacements on all coordinates, by dimension and displacement.
    shifts: HashMap<(usize, u32), (u32, [u32; 2])>,
    /// Numbers of route loads, by profiles, hops and messages of a node.
    route_loads: HashMap<RouteLoadKey, usize>,
    /// The most positions that a rank sends in a step, and the number of its route load, by a hash of all messages or
    /// by key.
    pub(super) busiest: HashMap<u64, (u64, usize)>,
    pub(super) by_key: HashMap<MessagesKey, (u64, usize)>,
    /// In the current step, what each link carries, each rank sends and each node receives; all 0 between steps.
    pub(super) load: SparseCounts,
    pub(super) sent: SparseCounts,
    pub(super) received: SparseCounts,
}

/// Whether all loads that are not 0 are equal.
fn is_uniform(load: &[f32]) -> bool {
    let mut loads = load.iter().filter(|&&load| load > 0.0);
    let first = loads.next();
    loads.all(|load| Some(load) == first)
}

impl<'a> RouteLoads<'a> {
    fn profile(&mut self, profile: LoadProfile<'a>) -> u32 {
        let bits = profile.load.iter().map(|load| load.to_bits()).collect();
        let dim = profile.dim.expect("a line is along a dimension");
        *self.known.entry((dim, bits)).or_insert_with(|| {
            self.profiles.push(profile);
            self.profiles.len() as u32 - 1
        })
    }

    pub(super) fn route_load(
        &mut self,
        profiles: SmallVec<[u32; 3]>,
        hops: [u32; 2],
        of_node: f32,
    ) -> usize {
        let key = (profiles.clone(), hops, of_node.to_bits());
        *self.route_loads.entry(key).or_insert_with(|| {
            let of = |profile: &u32| &self.profiles[*profile as usize];
            let is_alike = profiles.iter().all(|profile| of(profile).is_alike);
            let on_ring =
                |profile: &LoadProfile<'_>| profile.is_on_ring && is_uniform(&profile.load);
            let is_uniform = is_alike && profiles.iter().all(|profile| on_ring(of(profile)));
            self.all.push(RouteLoad { profiles, hops, of_node, is_alike, is_uniform });
            self.all.len() - 1
        })
    }

    /// The route loads of a step's messages, by target.
    pub(super) fn of_line(&mut self, step: &LineStep<'a>, network: &Network) -> Vec<usize> {
        let line = network.line(step.dim);
        let new = |target| LoadProfile {
            dim: Some(step.dim),
            load: vec![0.0; line.n_links()],
            is_alike: true,
            is_on_ring: network.is_ring(step.dim),
            shared: None,
            hops: Hops::Line(step.clone(), target),
        };
        let mut found: Vec<LoadProfile<'a>> = (0..step.positions.len()).map(new).collect();
        let mut longest = vec![[0u32; 2]; found.len()];
        for LineHop { from, to, target, positions } in step.hops() {
            let profile = &mut found[target];
            // A message with fewer positions than the message that stands for all counts as a part of one.
            let weight = positions as f32 / step.positions[target].max(1) as f32;
            let ends = [from, to].map(Vertex);
            let hops = network.route(line, ends, |link| profile.load[link.index()] += weight);
            if hops.iter().sum::<u32>() > longest[target].iter().sum() {
                longest[target] = hops;
            }
        }
        let busiest: Vec<f32> =
            found.iter().map(|profile| profile.load.iter().copied().fold(0.0, f32::max)).collect();
        for LineHop { from, to, target, .. } in step.hops() {
            let profile = &mut found[target];
            let (ends, mut most) = ([from, to].map(Vertex), 0.0f32);
            let hops =
                network.route(line, ends, |link| most = most.max(profile.load[link.index()]));
            profile.is_alike &= hops == longest[target] && most == busiest[target];
        }
        // If lines differ, only one rank of a node sends on this line.
        let of_node = if step.is_on_all_lines { network.per_node() as f32 } else { 1.0 };
        // The ranks of a node share its links.
        for load in found.iter_mut().flat_map(|profile| &mut profile.load) {
            *load *= of_node;
        }
        let route_load = |(profile, hops)| {
            let number = self.profile(profile);
            self.route_load(smallvec![number], hops, of_node)
        };
        found.into_iter().zip(longest).map(route_load).collect()
    }

    /// The route loads of a step's messages along several dimensions, in the order in which a rank sends them. On the
    /// links of a dimension, the messages have the loads of the dimension's lines.
    pub(super) fn of_product(&mut self, step: &ProductStep<'a>, network: &Network) -> Vec<usize> {
        let lines: Vec<Vec<usize>> =
            step.lines.iter().map(|line| self.of_line(line, network)).collect();
        let route_load = |choice: TargetChoice| {
            let (mut profiles, mut hops, mut of_node) = (SmallVec::new(), [0u32; 2], 1.0f32);
            for (route_loads, target) in lines.iter().zip(choice) {
                let Some(target) = target else { continue };
                let RouteLoad { profiles: of_dim, hops: further, of_node: times, .. } =
                    &self.all[route_loads[target]];
                profiles.extend_from_slice(of_dim);
                hops = [hops[0] + further[0], hops[1] + further[1]];
                of_node = *times;
            }
            self.route_load(profiles, hops, of_node)
        };
        step.choices().into_iter().map(route_load).collect()
    }

    /// The route loads of a step's messages over displacements, in order, if routes follow one dimension after the
    /// other; `None` on other networks.
    pub(super) fn of_shifts(&mut self, step: &ShiftStep, network: &Network) -> Option<Vec<usize>> {
        let n_linked = network.n_linked();
        let route_load = |shift: &crate::plan::Shift| {
            let linked = || shift.by.iter().copied().enumerate().take(n_linked);
            let n_dims = linked().filter(|(_, by)| *by > 0).count();
            if n_dims > 1 && !network.is_dimension_ordered() {
                return None;
            }
            let (mut profiles, mut hops) = (SmallVec::new(), [0u32; 2]);
            for (dim, by) in linked().filter(|(_, by)| *by > 0) {
                let (profile, of_dim) = self.of_shift(dim, step.sizes[dim], by, network);
                profiles.push(profile);
                hops = [hops[0] + of_dim[0], hops[1] + of_dim[1]];
            }
            Some(self.route_load(profiles, hops, network.per_node() as f32))
        };
        step.shifts.iter().map(route_load).collect()
    }

    /// The profile of messages over one displacement from each coordinate of a line, and their longest route.
    fn of_shift(&mut self, dim: usize, size: u32, by: u32, network: &Network) -> (u32, [u32; 2]) {
        if let Some(&known) = self.shifts.get(&(dim, by)) {
            return known;
        }
        let line = network.line(dim);
        let (mut load, mut longest) = (vec![0.0f32; line.n_links()], [0u32; 2]);
        let hops = Hops::Shift(size, by);
        for (from, to) in hops.ends() {
            // The ranks of a node share its links.
            let n = network.per_node() as f32;
            let hops = network.route(line, [from, to], |link| load[link.index()] += n);
            longest = longest.max(hops);
        }
        let busiest = load.iter().copied().fold(0.0, f32::max);
        let is_alike = hops.ends().all(|(from, to)| {
            let mut most = 0.0f32;
            let hops = network.route(line, [from, to], |link| most = most.max(load[link.index()]));
            hops == longest && most == busiest
        });
        let is_on_ring = network.is_ring(dim);
        let profile =
            LoadProfile { dim: Some(dim), load, is_alike, is_on_ring, shared: None, hops };
        let number = self.profile(profile);
        self.shifts.insert((dim, by), (number, longest));
        (number, longest)
    }

    /// Whether messages of different lanes, along one dimension in steps of the same number, meet each other in the
    /// same way whichever rank sends them.
    pub(super) fn has_equal_contention(&self, routed: &RoutedPlan, network: &Network) -> bool {
        let n_steps = routed.lanes.iter().map(|lane| lane.steps.len()).max().unwrap_or(0);
        let mut known: HashSet<Vec<u32>> = HashSet::new();
        for step in 0..n_steps {
            let mut by_dim: HashMap<usize, Vec<u32>> = HashMap::new();
            let of_step = routed.lanes.iter().filter_map(|lane| lane.steps.get(step));
            // The path of a message contains its route load, until resources are numbered.
            let route_loads =
                of_step.flat_map(|step| &step.messages).map(|message| message.path.start);
            for &profile in
                route_loads.flat_map(|route_load| &self.all[route_load as usize].profiles)
            {
                if let Some(dim) = self.profiles[profile as usize].dim {
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

    /// Whether, for each of these profiles, all its messages meet equally many messages on their busiest links.
    fn are_alike(&self, dim: usize, together: &[u32], network: &Network) -> bool {
        let line = network.line(dim);
        let mut load = vec![0.0f32; line.n_links()];
        for &profile in together {
            load.iter_mut()
                .zip(&self.profiles[profile as usize].load)
                .for_each(|(sum, load)| *sum += load);
        }
        together.iter().all(|&profile| {
            let mut busiest = self.profiles[profile as usize].hops.ends().map(|(from, to)| {
                let mut most = 0.0f32;
                line.route(from, to, &mut |link| most = most.max(load[link.index()]));
                most
            });
            let first = busiest.next();
            busiest.all(|most| Some(most) == first)
        })
    }

    /// The links that messages of each route load cross, numbered from 0, each with the number of these messages; and
    /// the number of links. Links of a dimension that each profile loads alike become one link.
    pub(super) fn into_links(self) -> (Vec<Vec<(ResourceId, f32)>>, usize) {
        let mut n_links = 0;
        let mut paths: Vec<Vec<(ResourceId, f32)>> = vec![Vec::new(); self.profiles.len()];
        let mut by_dim: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (number, profile) in self.profiles.iter().enumerate() {
            by_dim.entry(profile.dim).or_default().push(number);
        }
        // In order, so that equal plans have equal numbers.
        let mut by_dim: Vec<_> = by_dim.into_iter().collect();
        by_dim.sort();
        for (dim, profiles) in by_dim {
            if dim.is_none() {
                let mut known: HashMap<u32, usize> = HashMap::new();
                for number in profiles {
                    let LoadProfile { load, shared, .. } = &self.profiles[number];
                    let link = shared.map_or(n_links, |at| *known.entry(at).or_insert(n_links));
                    paths[number].push((link as u32, load[0]));
                    n_links = n_links.max(link + 1);
                }
                continue;
            }
            let mut classes: HashSet<Vec<u32>> = HashSet::new();
            for link in 0..self.profiles[profiles[0]].load.len() {
                let loads = || profiles.iter().map(|&number| self.profiles[number].load[link]);
                let class: Vec<u32> = loads().map(f32::to_bits).collect();
                if loads().any(|load| load > 0.0) && classes.insert(class) {
                    for (&number, load) in profiles.iter().zip(loads()) {
                        if load > 0.0 {
                            paths[number].push((n_links as u32, load));
                        }
                    }
                    n_links += 1;
                }
            }
        }
        let path = |route_load: &RouteLoad| {
            route_load
                .profiles
                .iter()
                .flat_map(|&profile| paths[profile as usize].clone())
                .collect()
        };
        (self.all.iter().map(path).collect(), n_links)
    }
}
