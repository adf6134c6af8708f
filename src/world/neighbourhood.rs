//! What a rank keeps of the start-up records of all ranks: where the nodes are, and which ranks are near.
//!
//! The start-up records of 158,976 ranks take most of the memory that start-up may use, so they are freed before the
//! map is made and the device is opened.

use hopbine_meet::Exchange;
#[cfg(feature = "internals")]
use hopbine_torus::geometry::RankMap;
use hopbine_torus::geometry::Shape;

use super::placement::{Placement, TorusPlace, from_hosts, from_tofu, from_torus_places};
use super::startup_record::{CommonSettings, StartupRecord, StartupRecords};
#[cfg(feature = "internals")]
use crate::comm::choice::tuning::Tuning;
use crate::error::Error;

/// How to distinguish nodes, and which sources may give their places.
pub(super) struct PlacementSources<'a> {
    /// The torus that Fujitsu MPI reports, with this rank's place in it, if the settings give no torus.
    pub(super) logical: Option<&'a (Shape, TorusPlace)>,
    /// The source of the torus otherwise.
    pub(super) source: Source,
    /// Ranks of a node by the settings, if no device reports which node a rank is on.
    pub(super) per_node: Option<u32>,
    /// Whether the hosts of all ranks are kept.
    pub(super) hosts: bool,
}

/// A source of the torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Settings,
    TofuCoordinates,
    Hosts,
}

/// The number of ranks that share a property with this one, itself included, and the number of lower ranks among
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sharing {
    pub(super) n: usize,
    pub(super) place: usize,
}

/// See the module documentation.
pub(super) struct Neighbourhood {
    /// Ranks with the same coordinates.
    pub(super) node: Sharing,
    /// Ranks with the same cores.
    pub(super) cores: Sharing,
    /// Ranks with the same coordinates and the same host.
    pub(super) ranks_per_node: u32,
    pub(super) n_hosts: u32,
    /// The node's number, the same for the ranks of a node.
    pub(super) node_number: u64,
    /// Whether some node has several ranks; the same on all ranks.
    pub(super) several_on_a_node: bool,
    /// Other ranks with the same node number and the same host.
    pub(super) neighbours: u32,
    /// Places of the ranks' nodes in the torus, if they are known.
    pub(super) placement: Option<Placement>,
    /// The host of each rank, if requested; else empty.
    pub(super) hosts: Vec<u64>,
}

impl Neighbourhood {
    /// Exchanges the records; collective.
    ///
    /// # Errors
    /// As [`StartupRecords::gather`].
    pub(super) fn exchange(
        exchange: &mut dyn Exchange,
        record: &StartupRecord,
        common: CommonSettings<'_>,
        sources: &PlacementSources<'_>,
    ) -> Result<Self, Error> {
        let me = exchange.rank();
        let records = StartupRecords::gather(exchange, record, common)?;
        let ranks = || (0usize..).zip(records.iter());
        let share = |same: &dyn Fn(&StartupRecord) -> bool| {
            let mut share = Sharing::default();
            for (rank, _) in ranks().filter(|(_, other)| same(other)) {
                share.n += 1;
                share.place += usize::from(rank < me);
            }
            share
        };
        let number_of = |rank: usize, record: &StartupRecord| match sources.per_node {
            Some(per_node) => rank as u64 / u64::from(per_node),
            None => of_coords(record.coords),
        };
        let node_number = number_of(me, record);
        let is_on_node =
            |other: &StartupRecord| (other.coords, other.host) == (record.coords, record.host);
        let is_near = |(rank, other): &(usize, StartupRecord)| {
            (number_of(*rank, other), other.host) == (node_number, record.host)
        };
        let hosts = || records.iter().map(|record| record.host);
        let by_torus_place =
            |mine| from_torus_places(mine, records.iter().map(|record| record.torus_place));
        let otherwise = || match sources.source {
            Source::Settings => None,
            Source::TofuCoordinates => from_tofu(records.iter().map(|record| record.coords)),
            Source::Hosts => from_hosts(&hosts().collect::<Vec<_>>()),
        };
        Ok(Neighbourhood {
            node: share(&|other| other.coords == record.coords),
            cores: share(&|other| other.cores == record.cores),
            ranks_per_node: records.iter().filter(is_on_node).count() as u32,
            n_hosts: n_different(hosts()) as u32,
            node_number,
            several_on_a_node: n_different(ranks().map(|(rank, other)| number_of(rank, &other)))
                < records.iter().len(),
            neighbours: ranks().filter(is_near).count() as u32 - 1,
            placement: sources.logical.and_then(by_torus_place).or_else(otherwise),
            hosts: if sources.hosts { hosts().collect() } else { Vec::new() },
        })
    }
}

fn n_different(numbers: impl Iterator<Item = u64>) -> usize {
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

fn of_coords(coords: [u8; 6]) -> u64 {
    coords.iter().fold(0, |number, &at| number << 8 | u64::from(at))
}

/// Shape and rank map of ranks on Tofu nodes, with this one at `coords`: for a test of the memory that this takes.
///
/// # Errors
/// As [`init`](crate::init).
#[cfg(feature = "internals")]
pub fn torus_of_nodes(
    exchange: &mut dyn Exchange,
    coords: [u8; 6],
) -> Result<Option<(Shape, RankMap)>, Error> {
    let tuning = Tuning::tofu_d();
    let common = CommonSettings { settings: "", table: tuning.table(), path: "" };
    let record = StartupRecord::new(0, 0, coords, None, common);
    let source = Source::TofuCoordinates;
    let sources = PlacementSources { logical: None, source, per_node: None, hosts: false };
    let placement = Neighbourhood::exchange(exchange, &record, common, &sources)?.placement;
    let wrong = |reason| Error::Layout { rank: exchange.rank() as u32, reason };
    placement.map(Placement::shape_and_map).transpose().map_err(wrong)
}
