//! The first record that the ranks exchange at start-up. Its length is fixed, since a job may have 158,976 ranks.

use hopbine_meet::{Exchange, Records, fnv};
use hopbine_torus::choose::DecisionTable;
use hopbine_torus::geometry::Vertex;

use super::launcher::meeting_error;
use super::placement::TorusPlace;
use super::tables;
use crate::Rank;
use crate::endpoint::{check_protocol, with_protocol};
use crate::error::Error;

/// See the module documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartupRecord {
    /// A hash of [`HASH_BYTES`] bytes, the same for ranks of one host that may use the same cores.
    pub(super) cores: u64,
    /// A hash of [`HASH_BYTES`] bytes, the same for ranks of one host.
    pub(super) host: u64,
    pub(super) coords: [u8; 6],
    /// The place of this rank's node, if Fujitsu MPI reports it.
    pub(super) torus_place: Option<TorusPlace>,
    /// Hash of the settings and of the decision table, which must be the same on all ranks.
    settings: u64,
}

/// What must be the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommonSettings<'a> {
    /// All settings except the decision table.
    pub(super) settings: &'a str,
    pub(super) table: &'a DecisionTable,
    /// The table's file, or its name.
    pub(super) path: &'a str,
}

/// Bytes of a hash that distinguishes ranks: of 158,976 different ones, two are the same once in 20,000 jobs.
const HASH_BYTES: usize = 6;

/// Bytes of a record: three hashes, the coordinates, a torus and a node in it.
const BYTES: usize = 3 * HASH_BYTES + 6 + 2 + 4;

/// Marks a node without a place.
const NO_PLACE: u32 = u32::MAX;

impl StartupRecord {
    /// The record of a rank.
    pub(super) fn new(
        cores: u64,
        host: u64,
        coords: [u8; 6],
        torus_place: Option<TorusPlace>,
        CommonSettings { settings, table, .. }: CommonSettings<'_>,
    ) -> Self {
        let settings = settings.bytes().chain(table.fingerprint().to_le_bytes());
        let settings = fnv::of_bytes(settings);
        let [cores, host, settings] = [cores, host, settings].map(shortened);
        StartupRecord { cores, host, coords, torus_place, settings }
    }

    fn encode(&self) -> Vec<u8> {
        let TorusPlace { torus, node } =
            self.torus_place.unwrap_or(TorusPlace { torus: 0, node: Vertex(NO_PLACE) });
        let hashes = [self.cores, self.host, self.settings].map(u64::to_le_bytes);
        let hashes = hashes.each_ref().map(|hash| &hash[..HASH_BYTES]).concat();
        let (torus, node) = (torus.to_le_bytes(), node.0.to_le_bytes());
        with_protocol(&[&hashes, &self.coords[..], &torus, &node].concat())
    }

    /// Decodes the record of `rank`, as made by [`encode`](StartupRecord::encode); `me` is this rank.
    ///
    /// # Errors
    /// What is wrong with the record.
    fn decode(bytes: &[u8], rank: Rank, me: Rank) -> Result<Self, String> {
        let record = check_protocol(bytes, rank, me)?;
        let wrong = || format!("rank {rank} sent a record of {} bytes, not {BYTES}", record.len());
        let record: &[u8; BYTES] = record.try_into().map_err(|_| wrong())?;
        let bytes = record.iter().map(|&byte| u64::from(byte));
        let number = |at, n| bytes.clone().skip(at).take(n).rev().fold(0, |n, byte| n << 8 | byte);
        let hash = |n| number(n * HASH_BYTES, HASH_BYTES);
        let at = 3 * HASH_BYTES;
        let node = Vertex(number(at + 8, 4) as u32);
        let torus_place = TorusPlace { torus: number(at + 6, 2) as u16, node };
        Ok(StartupRecord {
            cores: hash(0),
            host: hash(1),
            settings: hash(2),
            coords: std::array::from_fn(|dim| record[at + dim]),
            torus_place: (node.0 != NO_PLACE).then_some(torus_place),
        })
    }
}

/// The lower [`HASH_BYTES`] bytes of a number.
fn shortened(number: u64) -> u64 {
    number & ((1 << (8 * HASH_BYTES)) - 1)
}

/// The records of all ranks.
pub(super) struct StartupRecords(Records);

impl StartupRecords {
    /// Exchanges the records; collective. `own` has the hash of `common`.
    ///
    /// # Errors
    /// [`Error::Meeting`]; on all ranks [`Error::Layout`] if their settings differ, [`Error::Tuning`] if their
    /// decision tables differ.
    pub(super) fn gather(
        exchange: &mut dyn Exchange,
        own: &StartupRecord,
        common: CommonSettings<'_>,
    ) -> Result<Self, Error> {
        let rank = exchange.rank() as Rank;
        let failed = |error| meeting_error(rank, &error);
        let records = exchange.allgather(&own.encode()).map_err(failed)?;
        let mut differs = false;
        for (other, record) in (0..).zip(records.iter()) {
            let theirs = StartupRecord::decode(record, other, rank)
                .map_err(|reason| Error::Meeting { rank: Some(rank), reason })?;
            differs |= theirs.settings != own.settings;
        }
        if differs {
            // All ranks get here: if two records differ, each rank's record differs from one of them.
            let settings = common.settings;
            let all = exchange.allgather(settings.as_bytes()).map_err(failed)?;
            let Some(other) = all.iter().position(|theirs| theirs != settings.as_bytes()) else {
                let CommonSettings { table, path, .. } = common;
                return Err(tables::first_difference(exchange, table, path).unwrap_or_else(failed));
            };
            let theirs = String::from_utf8_lossy(&all[other]);
            let reason =
                format!("here {settings}, but rank {other} has {theirs}; all ranks need the same");
            return Err(Error::Layout { rank, reason });
        }
        Ok(StartupRecords(records))
    }

    /// The records, by rank.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = StartupRecord> + Clone {
        // `gather` has decoded all records.
        let decode =
            |record| StartupRecord::decode(record, 0, 0).expect("it could be decoded before");
        self.0.iter().map(decode)
    }
}

#[cfg(feature = "fuzzing")]
/// A record that another process may have sent.
pub(crate) fn check_startup_record(bytes: &[u8]) {
    if let Ok(record) = StartupRecord::decode(bytes, 1, 0) {
        assert_eq!(
            StartupRecord::decode(&record.encode(), 1, 0).map(|record| record.cores),
            Ok(record.cores)
        );
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;

    use super::*;
    use crate::comm::choice::tuning::Tuning;

    fn common(settings: &str) -> CommonSettings<'_> {
        CommonSettings { settings, table: Tuning::tofu_d().table(), path: "tofu-d" }
    }

    #[test]
    fn cards_round_trip() {
        for torus_place in [None, Some(TorusPlace { torus: 7, node: Vertex(158_975) })] {
            let record = StartupRecord::new(
                5 << 46,
                7,
                [1, 2, 3, 0, 1, 2],
                torus_place,
                common("HOPBINE_TORUS=2x2"),
            );
            assert_eq!(StartupRecord::decode(&record.encode(), 1, 0), Ok(record));
            let (mut cut, mut long) = (record.encode(), record.encode());
            cut.truncate(20);
            long.push(0xff);
            for (bytes, reason) in [(&cut[..], "12 bytes"), (&long, "31 bytes"), (b"", "protocol")]
            {
                let refusal = StartupRecord::decode(bytes, 1, 0).unwrap_err();
                assert!(refusal.contains("rank 1") && refusal.contains(reason), "{refusal}");
            }
        }
    }

    #[test]
    fn who_differs_is_named_with_what_it_has() {
        let group = LocalExchange::group(3, Duration::from_secs(20));
        let errors = hopbine_testing::ranks::ranks(group, |rank, mut exchange| {
            let settings = if rank == 2 { "A=2" } else { "A=1" };
            let record = StartupRecord::new(0, 0, [0; 6], None, common(settings));
            StartupRecords::gather(&mut exchange, &record, common(settings))
                .map(drop)
                .unwrap_err()
                .to_string()
        });
        for (rank, error) in errors.iter().enumerate() {
            let (mine, other, theirs) = if rank == 2 { (2, 0, 1) } else { (1, 2, 2) };
            let expected = format!("here A={mine}, but rank {other} has A={theirs}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}
