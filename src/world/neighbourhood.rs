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
#[cfg(any(test, feature = "internals"))]
use crate::comm::choice::tuning::Tuning;
use crate::error::Error;

/// How to distinguish nodes, and which sources may give their places.
pub(super) struct PlacementSources<'a> {
    /// The torus that Fujitsu MPI reports, with this rank's place in it, if the settings give no torus.
    pub(super) logical: Option<&'a (Shape, TorusPlace)>,
    /// The source of the torus otherwise.
    pub(super) source: TorusSource,
    /// Ranks of a node by the settings, if no device reports which node a rank is on.
    pub(super) per_node: Option<u32>,
    /// Whether the hosts of all ranks are kept.
    pub(super) hosts: bool,
}

/// A source of the torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TorusSource {
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
    /// Places of the ranks' nodes in the torus, if they are known, and their source in words.
    pub(super) placement: Option<(Placement, &'static str)>,
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
        let logical = || Some((sources.logical.and_then(by_torus_place)?, "Fujitsu MPI"));
        let coords = || records.iter().map(|record| record.coords);
        let otherwise = || match sources.source {
            TorusSource::Settings => None,
            TorusSource::TofuCoordinates => Some((from_tofu(coords())?, "the Tofu device")),
            TorusSource::Hosts => Some((from_hosts(&hosts().collect::<Vec<_>>())?, "the hosts")),
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
            placement: match (sources.source, sources.logical) {
                // A job of `node=N` has one dimension in Fujitsu MPI, but no such ring: its nodes fill a box.
                (TorusSource::TofuCoordinates, Some((torus, _))) if torus.n_dims() == 1 => {
                    otherwise().or_else(logical)
                }
                _ => logical().or_else(otherwise),
            },
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
    let source = TorusSource::TofuCoordinates;
    let sources = PlacementSources { logical: None, source, per_node: None, hosts: false };
    let placement = Neighbourhood::exchange(exchange, &record, common, &sources)?.placement;
    let wrong = |reason| Error::Layout { rank: exchange.rank() as u32, reason };
    placement.map(|(placement, _)| placement.shape_and_map()).transpose().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;
    use hopbine_torus::geometry::Vertex;
    use hopbine_torus::geometry::tofu::TofuBox;

    use super::super::placement::Logical;
    use super::*;

    /// The shape of a job on the nodes with these coordinates and its source, for which Fujitsu MPI reports these sizes.
    fn shape_of(coords: &[[u8; 6]], sizes: [u32; 3]) -> (String, &'static str) {
        let exchanges = LocalExchange::group(coords.len(), Duration::from_secs(60));
        let of_rank = |(mut exchange, rank): (LocalExchange, usize)| {
            let at = [0, 1, 2].map(|dim| {
                let below: u32 = sizes[..dim].iter().product();
                sizes
                    .get(dim)
                    .filter(|&&size| size > 0)
                    .map_or(0, |size| rank as u32 / below % size)
            });
            let logical = Logical { sizes, at }.torus_place();
            let torus_place = logical.as_ref().map(|(_, place)| *place);
            let common = CommonSettings { settings: "", table: Tuning::tofu_d().table(), path: "" };
            let record = StartupRecord::new(0, 0, coords[rank], torus_place, common);
            let (logical, source) = (logical.as_ref(), TorusSource::TofuCoordinates);
            let sources = PlacementSources { logical, source, per_node: None, hosts: false };
            let near = Neighbourhood::exchange(&mut exchange, &record, common, &sources).unwrap();
            let (placement, source) = near.placement.unwrap();
            (placement.shape_and_map().unwrap().0.to_string(), source)
        };
        std::thread::scope(|threads| {
            let ranks = exchanges.into_iter().zip(0..);
            let spawned: Vec<_> = ranks.map(|rank| threads.spawn(move || of_rank(rank))).collect();
            let shapes: Vec<_> = spawned.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(shapes.iter().all(|shape| *shape == shapes[0]), "{shapes:?}");
            shapes[0].clone()
        })
    }

    #[test]
    fn a_job_of_one_dimension_has_the_box_of_its_nodes() {
        let tofu_box = TofuBox { units: [1, 1, 1] };
        let nodes = tofu_box.logical_shape().unwrap();
        let unit: Vec<[u8; 6]> =
            (0..12).map(|node| tofu_box.unfold(nodes.coord(Vertex(node)))).collect();
        assert_eq!(shape_of(&unit, [12, 0, 0]), (nodes.to_string(), "the Tofu device"));
        // More dimensions are those that the job has asked for.
        assert_eq!(shape_of(&unit, [6, 2, 0]), ("6x2".to_owned(), "Fujitsu MPI"));
        // Less than a unit is no box.
        assert_eq!(shape_of(&unit[..5], [5, 0, 0]), ("5".to_owned(), "Fujitsu MPI"));
    }
}
