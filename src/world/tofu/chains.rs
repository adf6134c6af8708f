//! Chains of barrier gates: that of the world, and those of further communicators as long as there are free gates.
//!
//! A rank has its gates on one TNI, and sends their names to the other ranks, which connect their own gates with
//! them. If some rank finds no free gates, or cannot connect them, no rank uses gates, and those that were taken are
//! freed.

use std::sync::{Arc, Mutex, Weak};

use hopbine_meet::{BootstrapError, Exchange};
use hopbine_torus::geometry::{RankMap, Shape, Vertex};
use utofu::handles::{GateId, GateLink, GateSet};
use utofu::{Api, BarrierCaps, Tni};

use super::agreement::History;
use super::gates::{Connected, Gates};
use super::topology::{Arrangement, GateConnections};
use crate::Rank;
use crate::comm::state::members::Members;
use crate::comm::state::small::{Allgather, SmallCollectives, SmallCollectivesPool};
use crate::endpoint::utofu::OnNode;
use crate::error::{Error, WireError};
use crate::sync::lock;
use crate::world::backend::Layout;

/// The most words that the names of a communicator's gates may take on each rank (4 MiB); larger communicators use
/// plans.
const MOST_NAMES: usize = 1 << 19;
/// In place of a name: the rank has no gates.
const NONE: u64 = u64::MAX;

/// The gates of one rank for one communicator, before they are connected.
struct Chain {
    set: GateSet,
    caps: BarrierCaps,
    tni: Tni,
    connections: Vec<GateConnections>,
}

impl Chain {
    /// Takes gates on the first of `tnis` that has enough.
    fn take(
        api: Api,
        tnis: impl Iterator<Item = Tni>,
        connections: Vec<GateConnections>,
    ) -> Result<Self, String> {
        let mut reason = "no TNI has barrier gates".to_owned();
        for tni in tnis {
            let caps = api.barrier_caps(tni).map_err(|error| error.to_string())?;
            match GateSet::alloc(api, tni, connections.len()) {
                Ok(set) => return Ok(Chain { set, caps, tni, connections }),
                Err(error) => reason = format!("{} gates on TNI {tni}: {error}", connections.len()),
            }
        }
        Err(reason)
    }

    fn names(&self) -> impl Iterator<Item = u64> {
        self.set.ids().into_iter().map(|GateId(name)| name)
    }

    /// Connects the gates with those of other nodes, whose names `name_of` returns.
    fn connect(&mut self, name_of: impl Fn(Vertex, usize) -> u64) -> Result<(), String> {
        let own = self.set.ids();
        let id_of = |(node, gate)| GateId(name_of(node, gate));
        let link = |connections: &GateConnections| GateLink {
            from_local: connections.from_local.map(|gate| own[gate]),
            from_remote: connections.from_remote.map(id_of),
            to_local: connections.to_local.map(|gate| own[gate]),
            to_remote: connections.to_remote.map(id_of),
            path: None,
        };
        let links: Vec<GateLink> = self.connections.iter().map(link).collect();
        self.set.connect(&links).map_err(|error| error.to_string())
    }

    /// The gates of rank `rank` of the world.
    fn into_gates(
        self,
        arrangement: Arrangement,
        (rank, n_ranks): (Rank, u32),
        next: Option<usize>,
    ) -> Gates {
        let Chain { set, caps, tni, .. } = self;
        Gates {
            chain: Arc::new(Mutex::new((Some(set), History::default()))),
            caps,
            tni,
            arrangement,
            rank,
            n_ranks,
            next,
        }
    }
}

/// The gates of the world, or why there are none, and those for further communicators.
pub(super) type OpenedGates =
    (Result<Box<dyn SmallCollectives>, String>, Option<Box<dyn SmallCollectivesPool>>);

/// Opens the gates of the world; collective over `exchange`.
///
/// # Errors
/// [`WireError`] if the exchange fails.
pub(super) fn open(
    api: Api,
    exchange: &mut dyn Exchange,
    layout: &Layout<'_>,
) -> Result<OpenedGates, WireError> {
    let small = of_world(api, exchange, layout)?;
    let pool = small.as_ref().ok().map(|gates| GatePool {
        api,
        place: layout.on_node.place,
        chains: Mutex::new(vec![Arc::downgrade(&gates.chain)]),
    });
    Ok((small.map(|gates| Box::new(gates) as _), pool.map(|pool| Box::new(pool) as _)))
}

/// The gates of the world on this rank; collective over `exchange`. The ranks of a node use different TNIs. If some
/// rank cannot have gates, no rank has any, and all get the reason.
///
/// # Errors
/// [`WireError`] if the exchange fails.
fn of_world(
    api: Api,
    exchange: &mut dyn Exchange,
    layout: &Layout<'_>,
) -> Result<Result<Gates, String>, WireError> {
    let Layout { shape, map, on_node: OnNode { place, .. }, .. } = *layout;
    let arrangement = Arrangement::of(shape);
    let rank = exchange.rank() as Rank;
    let connections = connections(arrangement, (shape, map), rank);
    let tnis = api.barrier_tnis().map_err(|error| error.to_string());
    let mut mine =
        tnis.and_then(|tnis| Chain::take(api, tnis_from(&tnis, place).take(1), connections));
    let own_names = mine.as_ref().map(|chain| chain.names().flat_map(u64::to_le_bytes).collect());
    let own_names: Result<Vec<u8>, _> = own_names.map_err(|reason: &String| reason.clone());
    let all = match exchange.agree(own_names.as_deref().map_err(Clone::clone)).map_err(lost)? {
        Ok(all) => all,
        Err(refusal) => return Ok(Err(refusal.to_string())),
    };
    let name_of = |node, gate: usize| {
        let (names, _) = all[map.rank_of(shape, node).index()].as_chunks::<8>();
        u64::from_le_bytes(names[gate])
    };
    let connected = match &mut mine {
        Ok(chain) => chain.connect(name_of),
        Err(reason) => Err(reason.clone()),
    };
    if let Err(refusal) = exchange.agree(connected.map(|()| [].as_slice())).map_err(lost)? {
        return Ok(Err(refusal.to_string()));
    }
    Ok(mine.map(|chain| chain.into_gates(arrangement, (rank, shape.n_ranks()), None)))
}

/// The gates that are left for further communicators.
struct GatePool {
    api: Api,
    /// This rank's number among those of its node.
    place: usize,
    /// The gates of all communicators of the world.
    chains: Mutex<Vec<Weak<Connected>>>,
}

impl SmallCollectivesPool for GatePool {
    fn take(&self) -> Option<u32> {
        // Each rank has its own gates: `open`, on all ranks, finds out whether there are enough.
        Some(0)
    }

    fn give_back(&self, _: u32) {}

    fn open(
        &self,
        _: u32,
        members: &Members,
        allgather: Allgather<'_>,
    ) -> Result<Result<Box<dyn SmallCollectives>, String>, Error> {
        let Members { shape, map, caller, .. } = members;
        let n_ranks = caller.n_ranks as usize;
        let arrangement = Arrangement::of(shape);
        let most = arrangement.most_gates(shape);
        if n_ranks == 1 {
            return Ok(Err("one rank needs none".to_owned()));
        }
        if n_ranks * most > MOST_NAMES {
            return Ok(Err(format!("{n_ranks} ranks are too many for gates")));
        }
        let connections = connections(arrangement, (shape, map), caller.rank);
        let tnis = self.api.barrier_tnis().map_err(|error| error.to_string());
        let mut mine =
            tnis.and_then(|tnis| Chain::take(self.api, tnis_from(&tnis, self.place), connections));
        let mut names = vec![NONE; most];
        let given = mine.iter().flat_map(Chain::names);
        names.iter_mut().zip(given).for_each(|(name, given)| *name = given);
        let all = allgather(&names)?;
        let without =
            |words: &[u64], width| words.iter().step_by(width).position(|&words| words == NONE);
        if let Some(rank) = without(&all, most) {
            let own = in_brackets(mine.err());
            return Ok(Err(format!("rank {rank} of this communicator has no free gates{own}")));
        }
        let name_of = |node, gate| all[map.rank_of(shape, node).index() * most + gate];
        let connected = match &mut mine {
            Ok(chain) => chain.connect(name_of),
            Err(reason) => Err(reason.clone()),
        };
        let all = allgather(&[connected.as_ref().map_or(NONE, |()| 0)])?;
        if let Some(rank) = without(&all, 1) {
            let own = in_brackets(connected.err());
            return Ok(Err(format!("rank {rank} could not connect its gates{own}")));
        }
        let next = (caller.rank as usize + 1) % n_ranks;
        let ranks = (members.me(), caller.n_ranks);
        Ok(mine.map(|chain| {
            let gates = chain.into_gates(arrangement, ranks, Some(next));
            let chains = &mut *lock(&self.chains);
            chains.retain(|chain| chain.strong_count() > 0);
            chains.push(Arc::downgrade(&gates.chain));
            Box::new(gates) as _
        }))
    }

    fn end(&self) {
        let chains = std::mem::take(&mut *lock(&self.chains));
        chains.iter().filter_map(Weak::upgrade).for_each(|chain| lock(&chain).0 = None);
    }
}

/// This rank's own reason in brackets, to follow that of another rank.
fn in_brackets(reason: Option<String>) -> String {
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// All TNIs, from this rank's own on.
fn tnis_from(tnis: &[Tni], place: usize) -> impl Iterator<Item = Tni> {
    tnis.iter().copied().cycle().skip(place % tnis.len().max(1)).take(tnis.len())
}

fn connections(
    arrangement: Arrangement,
    (shape, map): (&Shape, &RankMap),
    rank: u32,
) -> Vec<GateConnections> {
    arrangement.connections(shape, map.vertex_of(shape, hopbine_torus::Rank(rank)))
}

fn lost(error: BootstrapError) -> WireError {
    WireError::new("connecting the barrier gates", error)
}
