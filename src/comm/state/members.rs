//! The ranks of a communicator, their shape and their map.

use crate::Rank;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hopbine_torus::choose::Features;
use hopbine_torus::geometry::{Axis, AxisLink, RankMap, Shape, Vertex};

use crate::comm::call::Caller;
use crate::comm::choice::preferred::Preferred;
use crate::comm::programs::cache::ProgramCache;
use crate::comm::programs::idle_budget::IdleBudget;
use hopbine_torus::geometry::near_cubic;

/// The ranks of a communicator on their torus, and the programs that have been compiled for them. Duplicates of the
/// communicator share it.
pub(crate) struct Members {
    pub(crate) shape: Shape,
    /// The features of the shape that decision tables use.
    pub(crate) features: Features,
    pub(crate) map: RankMap,
    /// A hash of the shape and the map, to compare them between ranks.
    pub(crate) fingerprint: u64,
    pub(crate) caller: Caller,
    /// The members as ranks of the world, in order; `None` if they are all ranks of the world.
    ranks: Option<Box<[Rank]>>,
    pub(crate) segment_bytes: Option<u64>,
    /// The algorithms that the user prefers and that serve the shape.
    pub(crate) preferred: Preferred,
    pub(crate) programs: Arc<ProgramCache>,
}

impl Members {
    /// All ranks of the world; `rank` is the calling one.
    pub(crate) fn world(
        rank: Rank,
        shape: Shape,
        map: RankMap,
        segment_bytes: Option<u64>,
        preferred: &Preferred,
    ) -> Self {
        let caller = Caller { rank, n_ranks: shape.n_ranks() };
        Members::new((shape, map), caller, None, (segment_bytes, preferred), &Arc::default())
    }

    fn new(
        (shape, map): (Shape, RankMap),
        caller: Caller,
        ranks: Option<Box<[Rank]>>,
        (segment_bytes, preferred): (Option<u64>, &Preferred),
        budget: &Arc<IdleBudget>,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        (&shape, &map).hash(&mut hasher);
        let (fingerprint, programs) = (hasher.finish(), ProgramCache::new(budget));
        let (features, preferred) = (Features::of(&shape), preferred.on(&shape));
        Members {
            shape,
            features,
            map,
            fingerprint,
            caller,
            ranks,
            segment_bytes,
            preferred,
            programs,
        }
    }

    /// Some ranks of `self`, in this order, with the calling rank at `rank`. If they fill a box of the torus they
    /// keep its shape, in which a dimension wraps only if it is whole; otherwise they are laid out as near a cube as
    /// their number allows. A dimension in which they do not differ stays if `keeps` accepts it. `preferred` are the
    /// user's algorithms for all shapes.
    pub(crate) fn subset(
        &self,
        (ranks, rank): (&[Rank], Rank),
        preferred: &Preferred,
        keeps: impl Fn(usize) -> bool,
    ) -> Self {
        let caller = Caller { rank, n_ranks: ranks.len() as u32 };
        let place = self.sub_box(ranks, keeps).unwrap_or_else(|| near_cubic_box(caller.n_ranks));
        let ranks = ranks.iter().map(|&rank| self.world_rank(rank)).collect();
        let settings = (self.segment_bytes, preferred);
        Members::new(place, caller, Some(ranks), settings, &self.programs.budget)
    }

    /// A member as a rank of the world.
    pub(crate) fn world_rank(&self, rank: Rank) -> Rank {
        self.ranks.as_ref().map_or(rank, |ranks| ranks[rank as usize])
    }

    /// The calling rank as a rank of the world.
    pub(crate) fn me(&self) -> Rank {
        self.world_rank(self.caller.rank)
    }

    /// All members as ranks of the world, in order.
    pub(crate) fn world_ranks(&self) -> Vec<Rank> {
        (0..self.caller.n_ranks).map(|rank| self.world_rank(rank)).collect()
    }

    /// Whether these are all ranks of the world in its order.
    pub(crate) fn is_world(&self) -> bool {
        self.ranks.is_none()
    }

    /// The shape of the box that these ranks fill, and the rank map in it; `None` if they do not fill a box.
    fn sub_box(&self, ranks: &[Rank], keeps: impl Fn(usize) -> bool) -> Option<(Shape, RankMap)> {
        let coords: Vec<_> = ranks
            .iter()
            .map(|&rank| self.map.coord_of(&self.shape, hopbine_torus::Rank(rank)))
            .collect();
        let mut axes = Vec::new();
        let mut starts = Vec::new();
        for (dim, &axis) in self.shape.axes().iter().enumerate() {
            let (first, last) = coords.iter().fold((u32::MAX, 0), |(first, last), coord| {
                (first.min(coord[dim]), last.max(coord[dim]))
            });
            let size = last - first + 1;
            if size > 1 || keeps(dim) {
                axes.push(match axis.link {
                    AxisLink::Torus if size < axis.size => Axis::mesh(size),
                    link => Axis { size, link },
                });
                starts.push((dim, first, size));
            }
        }
        // Ranks of one node, or a single rank, get a torus of one node.
        if axes.iter().all(|axis| axis.link == AxisLink::Node) {
            axes.insert(0, Axis::torus(1));
        }
        let n_nodes = axes.iter().map(|axis| u64::from(axis.size)).product::<u64>();
        if n_nodes != ranks.len() as u64 {
            return None;
        }
        let shape = Shape::from_axes(axes).ok()?;
        let node_of = coords.iter().map(|coord| {
            let place =
                |node, &(dim, first, size): &(usize, u32, u32)| node * size + coord[dim] - first;
            starts.iter().fold(0, place)
        });
        let map = RankMap::from_vertices(&shape, node_of.map(Vertex).collect()).ok()?;
        Some((shape, map))
    }
}

fn near_cubic_box(n_ranks: u32) -> (Shape, RankMap) {
    let shape = Shape::torus(&near_cubic(n_ranks)).expect("sizes whose product is a u32");
    (shape, RankMap::ColumnMajor)
}
