//! One record of the rendezvous file: a fixed number of bytes that one rank writes and other ranks read.
//!
//! Over a network file system a reader may see a half-written record. Each record therefore has a checksum; a record
//! whose checksum does not match counts as not yet written.

use crate::fnv;

/// Size of a record in bytes: a page, so that no two ranks write to one page of the file, which
/// clients of a network file system cache and lock as a whole.
pub const RECORD: usize = 4096;

/// Bytes of a record before its payload, and of [`Collected`] before its body.
pub const HEADER: usize = 48;

/// Largest payload of one record, in bytes.
pub const PAYLOAD: usize = RECORD - HEADER;

/// First bytes of every record in every protocol; the protocol's number follows.
const MARK: [u8; 7] = *b"hopbine";

/// Number of the protocol, which changes whenever the meaning of records changes.
pub const PROTOCOL: u8 = 1;

const MAGIC: u64 = {
    let [a, b, c, d, e, f, g] = MARK;
    u64::from_le_bytes([a, b, c, d, e, f, g, PROTOCOL])
};

/// The contents of a record. `bootstrap.rs` defines the meaning of `session` and `round`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// Distinguishes the records of different jobs.
    pub session: u64,
    /// Distinguishes the records of one job.
    pub round: u64,
    /// Number of ranks of the job, according to the writer.
    pub size: u32,
    /// Length of the whole message of which this record holds a piece.
    pub total: u32,
    /// The piece, at most [`PAYLOAD`] bytes.
    pub payload: Vec<u8>,
}

impl FileRecord {
    /// Returns the record's bytes in the file.
    pub fn encode(&self) -> [u8; RECORD] {
        assert!(self.payload.len() <= PAYLOAD, "a record holds {PAYLOAD} bytes");
        let mut b = [0; RECORD];
        b[0..8].copy_from_slice(&MAGIC.to_le_bytes());
        b[8..16].copy_from_slice(&self.session.to_le_bytes());
        b[16..24].copy_from_slice(&self.round.to_le_bytes());
        b[24..28].copy_from_slice(&self.size.to_le_bytes());
        b[28..32].copy_from_slice(&self.total.to_le_bytes());
        b[32..36].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        b[HEADER..HEADER + self.payload.len()].copy_from_slice(&self.payload);
        let sum = checksum(&b, self.payload.len());
        b[40..48].copy_from_slice(&sum.to_le_bytes());
        b
    }

    /// Returns the protocol's number of a record that starts with `head`, if it differs from [`PROTOCOL`].
    pub fn other_protocol(head: &[u8; HEADER]) -> Option<u8> {
        let (mark, rest) = head.split_first_chunk()?;
        (*mark == MARK && rest[0] != PROTOCOL).then_some(rest[0])
    }

    /// Returns the record in these bytes, or `None` if there is no complete record.
    pub fn decode(b: &[u8; RECORD]) -> Option<FileRecord> {
        let word = |at: usize| u64::from_le_bytes(b[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().expect("4 bytes"));
        let len = half(32) as usize;
        if word(0) != MAGIC || len > PAYLOAD || word(40) != checksum(b, len) {
            return None;
        }
        Some(FileRecord {
            session: word(8),
            round: word(16),
            size: half(24),
            total: half(28),
            payload: b[HEADER..HEADER + len].to_vec(),
        })
    }
}

/// Data that rank 0 has collected and publishes to all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// As in [`FileRecord`].
    pub session: u64,
    /// As in [`FileRecord`].
    pub round: u64,
    /// The bytes collected; `bootstrap.rs` defines their meaning.
    pub body: Vec<u8>,
}

/// Header of a [`Collected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// As in [`FileRecord`].
    pub session: u64,
    /// As in [`FileRecord`].
    pub round: u64,
    /// Length of the body.
    pub len: usize,
    sum: u64,
}

const COLLECTED: u64 = u64::from_le_bytes(*b"hopbine\x02");

impl Collected {
    fn sum(session: u64, round: u64, body: &[u8]) -> u64 {
        let numbers = [session, round, body.len() as u64];
        fnv::of_bytes(numbers.into_iter().flat_map(u64::to_le_bytes).chain(body.iter().copied()))
    }

    /// Returns header and body.
    pub fn encode(&self) -> Vec<u8> {
        let Collected { session, round, ref body } = *self;
        let sum = Collected::sum(session, round, body);
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        for word in [COLLECTED, session, round, body.len() as u64, sum, 0] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend_from_slice(body);
        bytes
    }

    /// Decodes a header; `None` if the bytes are not one.
    pub fn head(bytes: &[u8; HEADER]) -> Option<RecordHead> {
        let word = |n: usize| {
            let bytes = bytes[8 * n..8 * n + 8].try_into().expect("8 bytes");
            u64::from_le_bytes(bytes)
        };
        let len = usize::try_from(word(3)).ok()?;
        let is_ours = (word(0), word(5)) == (COLLECTED, 0);
        is_ours.then(|| RecordHead { session: word(1), round: word(2), len, sum: word(4) })
    }
}

impl RecordHead {
    /// Returns the complete value, if `body` matches this header.
    pub fn with(self, body: Vec<u8>) -> Option<Collected> {
        let RecordHead { session, round, len, sum } = self;
        let is_complete = body.len() == len && Collected::sum(session, round, &body) == sum;
        is_complete.then_some(Collected { session, round, body })
    }
}

/// Returns the checksum of all bytes but the checksum itself.
fn checksum(b: &[u8; RECORD], len: usize) -> u64 {
    fnv::of_bytes(b[..40].iter().chain(&b[HEADER..HEADER + len]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(len: usize) -> FileRecord {
        let payload = (0..len).map(|i| i as u8).collect();
        FileRecord { session: 7, round: 9, size: 4, total: 9000, payload }
    }

    #[test]
    fn records_survive_the_file() {
        for len in [0, 1, 1000, PAYLOAD] {
            assert_eq!(FileRecord::decode(&record(len).encode()), Some(record(len)));
        }
    }

    #[test]
    fn a_damaged_or_empty_record_is_not_there() {
        assert_eq!(FileRecord::decode(&[0; RECORD]), None);
        for at in [0, 8, 16, 24, 28, 32, 40, HEADER, HEADER + 99] {
            let mut b = record(100).encode();
            b[at] ^= 1;
            assert_eq!(FileRecord::decode(&b), None, "byte {at} changed");
        }
    }

    #[test]
    fn a_record_of_another_protocol_is_known_as_one() {
        let head = |bytes: [u8; RECORD]| *bytes.first_chunk().expect("a header");
        let mut bytes = record(0).encode();
        assert_eq!(FileRecord::other_protocol(&head(bytes)), None);
        bytes[MARK.len()] = PROTOCOL + 1;
        assert_eq!(FileRecord::other_protocol(&head(bytes)), Some(PROTOCOL + 1));
        assert_eq!(FileRecord::decode(&bytes), None);
        assert_eq!(FileRecord::other_protocol(&[0; HEADER]), None);
    }

    #[test]
    fn what_was_collected_survives_the_file_and_damage_is_seen() {
        let collected = Collected { session: 7, round: 9, body: (0..100).collect() };
        let bytes = collected.encode();
        let (head, body) = bytes.split_first_chunk().expect("a header");
        let head = Collected::head(head).expect("whole");
        assert_eq!(head.with(body.to_vec()), Some(collected));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let (head, body) = damaged.split_first_chunk().expect("a header");
            let read = Collected::head(head).and_then(|head| head.with(body.to_vec()));
            assert_eq!(read, None, "byte {at} changed");
        }
    }

    use proptest::prelude::*;

    proptest! {
        /// Arbitrary contents of the files are a valid record or count as absent.
        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), RECORD), len: u32, ours: bool) {
            let mut bytes: [u8; RECORD] = bytes.try_into().expect("as long");
            if ours {
                bytes[0..8].copy_from_slice(&MAGIC.to_le_bytes());
                bytes[32..36].copy_from_slice(&len.to_le_bytes());
            }
            prop_assert_eq!(FileRecord::decode(&bytes), None);
            let (head, body) = bytes.split_first_chunk().expect("a header");
            let read = Collected::head(head).and_then(|head| head.with(body.to_vec()));
            prop_assert_eq!(read, None);
        }
    }
}
