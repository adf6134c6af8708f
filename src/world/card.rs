//! The first record that the ranks exchange at start-up. Its length is fixed, since a job may have 158,976 ranks.

use hopbine_meet::{Exchange, Records, fnv};
use hopbine_torus::choose::DecisionTable;
use hopbine_torus::geometry::Vertex;

use super::launcher::meeting;
use super::place::Given;
use super::tables;
use crate::Rank;
use crate::endpoint::{check_protocol, with_protocol};
use crate::error::Error;

/// See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// A hash of [`HASH_BYTES`] bytes, the same for ranks of one host that may use the same cores.
    pub(super) cores: u64,
    /// A hash of [`HASH_BYTES`] bytes, the same for ranks of one host.
    pub(super) host: u64,
    pub(super) coords: [u8; 6],
    /// The place of this rank's node, if Fujitsu MPI reports it.
    pub(super) given: Option<Given>,
    /// Hash of the settings and of the decision table, which must be the same on all ranks.
    settings: u64,
}

/// What must be the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    /// All settings except the decision table.
    pub(super) settings: &'a str,
    pub(super) table: &'a DecisionTable,
    /// The table's file, or its name.
    pub(super) path: &'a str,
}

/// Bytes of a hash that distinguishes ranks: of 158,976 different ones, two are the same once in 20,000 jobs.
const HASH_BYTES: usize = 6;

/// Bytes of a card: three hashes, the coordinates, a torus and a node in it.
const BYTES: usize = 3 * HASH_BYTES + 6 + 2 + 4;

/// Marks a node without a place.
const NOWHERE: u32 = u32::MAX;

impl Card {
    /// The card of a rank.
    pub(super) fn new(
        cores: u64,
        host: u64,
        coords: [u8; 6],
        given: Option<Given>,
        Common { settings, table, .. }: Common<'_>,
    ) -> Self {
        let settings = settings.bytes().chain(table.fingerprint().to_le_bytes());
        let settings = fnv::of_bytes(settings);
        let [cores, host, settings] = [cores, host, settings].map(shortened);
        Card { cores, host, coords, given, settings }
    }

    fn encode(&self) -> Vec<u8> {
        let Given { torus, node } = self.given.unwrap_or(Given { torus: 0, node: Vertex(NOWHERE) });
        let hashes = [self.cores, self.host, self.settings].map(u64::to_le_bytes);
        let hashes = hashes.each_ref().map(|hash| &hash[..HASH_BYTES]).concat();
        let (torus, node) = (torus.to_le_bytes(), node.0.to_le_bytes());
        with_protocol(&[&hashes, &self.coords[..], &torus, &node].concat())
    }

    /// Decodes the card of `rank`, as made by [`encode`](Card::encode); `me` is this rank.
    ///
    /// # Errors
    /// What is wrong with the record.
    fn decode(bytes: &[u8], rank: Rank, me: Rank) -> Result<Self, String> {
        let card = check_protocol(bytes, rank, me)?;
        let wrong = || format!("rank {rank} sent a card of {} bytes, not {BYTES}", card.len());
        let card: &[u8; BYTES] = card.try_into().map_err(|_| wrong())?;
        let bytes = card.iter().map(|&byte| u64::from(byte));
        let number = |at, n| bytes.clone().skip(at).take(n).rev().fold(0, |n, byte| n << 8 | byte);
        let hash = |n| number(n * HASH_BYTES, HASH_BYTES);
        let at = 3 * HASH_BYTES;
        let node = Vertex(number(at + 8, 4) as u32);
        let given = Given { torus: number(at + 6, 2) as u16, node };
        Ok(Card {
            cores: hash(0),
            host: hash(1),
            settings: hash(2),
            coords: std::array::from_fn(|dim| card[at + dim]),
            given: (node.0 != NOWHERE).then_some(given),
        })
    }
}

/// The lower [`HASH_BYTES`] bytes of a number.
fn shortened(number: u64) -> u64 {
    number & ((1 << (8 * HASH_BYTES)) - 1)
}

/// The cards of all ranks.
pub(super) struct Cards(Records);

impl Cards {
    /// Exchanges the cards; collective. `card` has the hash of `common`.
    ///
    /// # Errors
    /// [`Error::Meeting`]; on all ranks [`Error::Layout`] if their settings differ, [`Error::Tuning`] if their
    /// decision tables differ.
    pub(super) fn of_all(
        exchange: &mut dyn Exchange,
        card: &Card,
        common: Common<'_>,
    ) -> Result<Self, Error> {
        let rank = exchange.rank() as Rank;
        let failed = |error| meeting(rank, &error);
        let records = exchange.allgather(&card.encode()).map_err(failed)?;
        let mut differs = false;
        for (other, record) in (0..).zip(records.iter()) {
            let theirs = Card::decode(record, other, rank)
                .map_err(|reason| Error::Meeting { rank: Some(rank), reason })?;
            differs |= theirs.settings != card.settings;
        }
        if differs {
            // All ranks get here: if two cards differ, each rank's card differs from one of them.
            let settings = common.settings;
            let all = exchange.allgather(settings.as_bytes()).map_err(failed)?;
            let Some(other) = all.iter().position(|theirs| theirs != settings.as_bytes()) else {
                let Common { table, path, .. } = common;
                return Err(tables::differ(exchange, table, path).unwrap_or_else(failed));
            };
            let theirs = String::from_utf8_lossy(&all[other]);
            let reason =
                format!("here {settings}, but rank {other} has {theirs}; all ranks need the same");
            return Err(Error::Layout { rank, reason });
        }
        Ok(Cards(records))
    }

    /// The cards, by rank.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Card> + Clone {
        // `of_all` has decoded all cards.
        let decode = |record| Card::decode(record, 0, 0).expect("it could be decoded before");
        self.0.iter().map(decode)
    }
}

#[cfg(feature = "fuzzing")]
/// A card that another process may have sent.
pub(crate) fn check_card(bytes: &[u8]) {
    if let Ok(card) = Card::decode(bytes, 1, 0) {
        assert_eq!(Card::decode(&card.encode(), 1, 0).map(|card| card.cores), Ok(card.cores));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;

    use super::*;
    use crate::comm::choice::tuning::Tuning;

    fn common(settings: &str) -> Common<'_> {
        Common { settings, table: Tuning::tofu_d().table(), path: "tofu-d" }
    }

    #[test]
    fn cards_round_trip() {
        for given in [None, Some(Given { torus: 7, node: Vertex(158_975) })] {
            let card =
                Card::new(5 << 46, 7, [1, 2, 3, 0, 1, 2], given, common("HOPBINE_TORUS=2x2"));
            assert_eq!(Card::decode(&card.encode(), 1, 0), Ok(card));
            let (mut cut, mut long) = (card.encode(), card.encode());
            cut.truncate(20);
            long.push(0xff);
            for (bytes, reason) in [(&cut[..], "12 bytes"), (&long, "31 bytes"), (b"", "protocol")]
            {
                let refusal = Card::decode(bytes, 1, 0).unwrap_err();
                assert!(refusal.contains("rank 1") && refusal.contains(reason), "{refusal}");
            }
        }
    }

    #[test]
    fn who_differs_is_named_with_what_it_has() {
        let group = LocalExchange::group(3, Duration::from_secs(20));
        let errors = hopbine_testing::ranks::ranks(group, |rank, mut exchange| {
            let settings = if rank == 2 { "A=2" } else { "A=1" };
            let card = Card::new(0, 0, [0; 6], None, common(settings));
            Cards::of_all(&mut exchange, &card, common(settings)).map(drop).unwrap_err().to_string()
        });
        for (rank, error) in errors.iter().enumerate() {
            let (mine, other, theirs) = if rank == 2 { (2, 0, 1) } else { (1, 2, 2) };
            let expected = format!("here A={mine}, but rank {other} has A={theirs}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}
