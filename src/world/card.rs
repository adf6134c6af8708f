//! The first record that the ranks exchange at start-up.

use super::place::Logical;
use crate::Rank;
use crate::endpoint::{stamped, unstamped};

/// See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    /// The same number for ranks of one host that may use the same cores.
    pub(super) cores: u64,
    /// The same number for ranks of one host.
    pub(super) host: u64,
    pub(super) coords: [u8; 6],
    /// What Fujitsu MPI says of this rank's node, if it is there.
    pub(super) logical: Option<Logical>,
    /// The settings that must be the same everywhere.
    pub(super) settings: String,
}

impl Card {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = [self.cores, self.host].map(u64::to_le_bytes).concat();
        let Logical { sizes, at } = self.logical.unwrap_or(Logical { sizes: [0; 3], at: [0; 3] });
        bytes.extend([sizes, at].iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes.extend_from_slice(&self.coords);
        bytes.extend_from_slice(self.settings.as_bytes());
        stamped(&bytes)
    }

    /// What [`encode`](Card::encode) made at `rank`; `me` is this one.
    ///
    /// # Errors
    /// What it is instead.
    pub(super) fn decode(bytes: &[u8], rank: Rank, me: Rank) -> Result<Self, String> {
        let card = unstamped(bytes, rank, me)?;
        let short =
            || format!("rank {rank} sent a card of {} bytes, which is too short", card.len());
        let (&fixed, settings) = card.split_first_chunk::<FIXED_BYTES>().ok_or_else(short)?;
        let ([cores, host, ..], _) = fixed.as_chunks::<8>() else { return Err(short()) };
        let numbers: [u32; 6] = std::array::from_fn(|at| {
            let at = 16 + 4 * at;
            u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        });
        let [x, y, z, at @ ..] = numbers;
        let sizes = [x, y, z];
        Ok(Card {
            cores: u64::from_le_bytes(*cores),
            host: u64::from_le_bytes(*host),
            coords: std::array::from_fn(|at| fixed[40 + at]),
            logical: (x > 0).then_some(Logical { sizes, at }),
            settings: String::from_utf8(settings.to_vec())
                .map_err(|_| format!("rank {rank} sent settings that are no text"))?,
        })
    }
}

/// Bytes of a card before its settings: two numbers of 8 bytes, six of 4, coordinates.
const FIXED_BYTES: usize = 46;

#[cfg(any(test, feature = "fuzzing"))]
/// A card that another process may have sent.
pub(crate) fn check_card(bytes: &[u8]) {
    if let Ok(card) = Card::decode(bytes, 1, 0) {
        assert_eq!(Card::decode(&card.encode(), 1, 0), Ok(card));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_round_trip() {
        for logical in [None, Some(Logical { sizes: [4, 6, 0], at: [3, 5, 0] })] {
            let settings = "HOPBINE_TORUS=2x2".to_owned();
            let card =
                Card { cores: 1 << 60, host: 7, coords: [1, 2, 3, 0, 1, 2], logical, settings };
            assert_eq!(Card::decode(&card.encode(), 1, 0), Ok(card.clone()));
            let (mut cut, mut torn) = (card.encode(), card.encode());
            cut.truncate(20);
            torn.push(0xff);
            for (bytes, reason) in [(&cut[..], "too short"), (&torn, "no text"), (b"", "protocol")]
            {
                let refusal = Card::decode(bytes, 1, 0).unwrap_err();
                assert!(refusal.contains("rank 1") && refusal.contains(reason), "{refusal}");
            }
        }
    }
}
