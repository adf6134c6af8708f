//! The VCQ ids of all ranks, computed instead of stored.
//!
//! A VCQ's id follows from its node's coordinates and its place on the node (TNI, control queue, component). In
//! almost every job ranks are numbered along the dimensions, so coordinates follow from the rank by a rule, and a few
//! small tables suffice for any number of ranks. The rule is found from all ranks' ids, not assumed. In the worst
//! case there is a single table with 8 bytes for each rank. All ports share the tables.

use std::sync::Arc;

use hopbine_torus::PortId;

use utofu::{Api, Tni, UtofuError, VcqId, VcqInfo};

use crate::endpoint::{Rank, WireError};

/// The extra value of a VCQ with component id 0, and of the first VCQ without a component id.
const FIRST_EXTRA: u16 = 8;
/// First bit of the kind in a place; the six bytes below it are the coordinates.
const KIND_AT: u32 = 48;

/// A VCQ's place on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Queue {
    tni: Tni,
    cq: u16,
    extra: u16,
}

/// All ranks' places. A place is a number: the coordinates of the rank's node and, in the upper two bytes, the index
/// in `kinds` of its ports' queues.
#[derive(Debug)]
pub(super) struct QueuePlaces {
    n_ranks: u32,
    first: u64,
    /// For each digit of a rank, fastest digit first, and each of its values: the number that is XORed to the place.
    /// Different digits change different bits.
    digits: Vec<Box<[u64]>>,
    /// The queues of a rank's ports, for each combination that occurs.
    kinds: Vec<Box<[Queue]>>,
}

impl QueuePlaces {
    /// Computes the tables from the VCQ ids of all ranks, of all ports of each.
    ///
    /// # Errors
    /// The error of a rank's ids; [`WireError`] if a rank's number of ports is not `n_ports`, that of the calling
    /// rank, `rank`.
    pub(super) fn new(
        ids: impl ExactSizeIterator<Item = Result<Vec<VcqInfo>, WireError>>,
        rank: Rank,
        n_ports: usize,
    ) -> Result<Self, WireError> {
        let n_ranks = ids.len() as u32;
        let mut kinds: Vec<Box<[Queue]>> = Vec::new();
        let mut places = Vec::with_capacity(ids.len());
        for (peer, ports) in ids.enumerate() {
            let ports = ports?;
            let differ = |reason| WireError::new("exchange of addresses", reason).at(peer as Rank);
            if ports.len() != n_ports {
                let theirs = ports.len();
                return Err(differ(format!(
                    "rank {peer} has {theirs} ports, rank {rank} has {n_ports} ports"
                )));
            }
            let queue = |id: &VcqInfo| Queue { tni: id.tni, cq: id.cq, extra: id.extra };
            let queues = ports.iter().map(queue);
            let known = kinds.iter().position(|kind| kind.iter().copied().eq(queues.clone()));
            let kind = known.unwrap_or_else(|| {
                kinds.push(queues.collect());
                kinds.len() - 1
            });
            let kind = u16::try_from(kind)
                .map_err(|_| differ("more than 65,536 ways to choose queues".to_owned()))?;
            let coords = ports.first().map_or([0; 6], |id| id.coords);
            places.push(number(coords) | u64::from(kind) << KIND_AT);
        }
        let first = places[0];
        places.iter_mut().for_each(|place| *place ^= first);
        Ok(QueuePlaces { n_ranks, first, digits: digits(places), kinds })
    }

    pub(super) fn n_ranks(&self) -> u32 {
        self.n_ranks
    }

    fn place(&self, rank: Rank) -> u64 {
        let mut rest = rank as usize;
        self.digits.iter().fold(self.first, |place, digit| {
            let by = digit[rest % digit.len()];
            rest /= digit.len();
            place ^ by
        })
    }

    fn rank(&self, place: u64) -> Option<Rank> {
        let change = place ^ self.first;
        let (mut rank, mut stride) = (0, 1);
        for digit in &self.digits {
            let bits = changes(digit);
            rank += stride * digit.iter().position(|&by| by == change & bits)?;
            stride *= digit.len();
        }
        let rank = rank as Rank;
        (self.place(rank) == place).then_some(rank)
    }
}

/// A node's coordinates as a number.
fn number(coords: [u8; 6]) -> u64 {
    coords.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

fn changes(digit: &[u64]) -> u64 {
    digit.iter().fold(0, |bits, by| bits | by)
}

/// Splits places into digits: takes the smallest first digit whose changes do not depend on the other digits, and
/// repeats this for the rest.
fn digits(mut places: Vec<u64>) -> Vec<Box<[u64]>> {
    let mut digits = Vec::new();
    loop {
        let n = places.len();
        let is_digit = |&size: &usize| {
            let low = &places[..size];
            let high = places.iter().step_by(size).fold(0, |bits, by| bits | by);
            changes(low) & high == 0
                && places
                    .chunks(size)
                    .all(|chunk| chunk.iter().zip(low).all(|(place, low)| *place == low ^ chunk[0]))
        };
        let sizes = (2..n).filter(|size| n.is_multiple_of(*size));
        match { sizes }.find(is_digit) {
            Some(size) => {
                digits.push(places[..size].into());
                (0..n / size).for_each(|at| places[at] = places[at * size]);
                places.truncate(n / size);
            }
            None => {
                digits.push(places.into());
                return digits;
            }
        }
    }
}

/// Addresses of all ranks for one port.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    api: Api,
    places: Arc<QueuePlaces>,
    port: PortId,
}

impl Addresses {
    pub(super) fn new(api: Api, places: Arc<QueuePlaces>, port: PortId) -> Self {
        Addresses { api, places, port }
    }

    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    pub(super) fn n_ranks(&self) -> u32 {
        self.places.n_ranks()
    }

    /// The id of a rank's VCQ, with the library's default path.
    ///
    /// # Errors
    /// The library's error for such an id.
    pub(super) fn vcq(&self, rank: Rank) -> Result<VcqId, UtofuError> {
        let place = self.places.place(rank);
        let Queue { tni, cq, extra } =
            self.places.kinds[(place >> KIND_AT) as usize][self.port.index()];
        let coords = std::array::from_fn(|at| (place >> (8 * at)) as u8);
        let component = extra.wrapping_sub(FIRST_EXTRA);
        VcqId::construct(&self.api, coords, tni, cq, component)?.with_default_path(&self.api)
    }

    /// The rank whose VCQ has this id.
    pub(super) fn rank(&self, id: &VcqId) -> Option<Rank> {
        let VcqInfo { coords, tni, cq, extra } = id.info();
        let queue = Queue { tni, cq, extra };
        let node = number(coords);
        let kinds = self.places.kinds.iter().enumerate();
        let may_be = kinds.filter(|(_, queues)| queues[self.port.index()] == queue);
        { may_be }.find_map(|(kind, _)| self.places.rank(node | (kind as u64) << KIND_AT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(coords: [u8; 6], place: u16) -> Vec<VcqInfo> {
        (0..2).map(|tni| VcqInfo { coords, tni, cq: place, extra: 8 }).collect()
    }

    /// Checks that places follow from ranks, and ranks from places; returns the numbers in the tables.
    fn numbers(ids: &[Vec<VcqInfo>]) -> usize {
        let places = QueuePlaces::new(ids.iter().cloned().map(Ok), 0, 2).unwrap();
        for (rank, ports) in ids.iter().enumerate() {
            let place = places.place(rank as Rank);
            assert_eq!(place.to_le_bytes()[..6], ports[0].coords);
            assert_eq!(places.kinds[(place >> KIND_AT) as usize][1].cq, ports[1].cq);
            assert_eq!(places.rank(place), Some(rank as Rank));
        }
        assert_eq!(places.rank(0x77_7777_7777), None);
        places.digits.iter().map(|digit| digit.len()).sum()
    }

    #[test]
    fn places_of_regular_jobs_take_a_few_numbers() {
        // A torus of 6 x 9 x 4: rings through x and a, y and b, z and c, as Fugaku has them.
        let ring = |at: u32, size: u32, short: u32| -> (u8, u8) {
            let long = size / short;
            let (column, row) = (at / short, at % short);
            if short == 2 {
                // Up one side and down the other.
                if at < long { (at as u8, 0) } else { ((size - 1 - at) as u8, 1) }
            } else {
                (column as u8, if column % 2 == 0 { row as u8 } else { (short - 1 - row) as u8 })
            }
        };
        let mut ids = Vec::new();
        for rank in 0..6 * 9 * 4 * 4u32 {
            let (node, place) = (rank / 4, rank % 4);
            let ((x, a), (y, b), (z, c)) =
                (ring(node % 6, 6, 2), ring(node / 6 % 9, 9, 3), ring(node / 54, 4, 2));
            ids.push(id([x + 3, y, z + 1, a, b, c], place as u16));
        }
        assert!(numbers(&ids) <= 4 + 6 + 9 + 4, "{}", numbers(&ids));
        // One rank, two ranks.
        assert_eq!(numbers(&ids[..1]), 1);
        assert_eq!(numbers(&ids[..2]), 2);
    }

    #[test]
    fn places_without_a_rule_are_listed() {
        let mut ids: Vec<_> = (0..64).map(|n| id([n % 8, n / 8, 0, 0, 0, 0], 0)).collect();
        assert!(numbers(&ids) <= 16);
        ids.swap(3, 17);
        ids.swap(9, 60);
        assert_eq!(numbers(&ids), 64);
        ids[5].pop();
        let error = QueuePlaces::new(ids.into_iter().map(Ok), 0, 2).unwrap_err();
        assert!(error.peer == Some(5) && error.reason.contains("rank 5 has 1 ports"), "{error}");
    }
}
