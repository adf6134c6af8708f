//! The first record that the ranks exchange at start-up.

use super::place::Logical;

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
        bytes
    }

    /// What `encode` made; whatever else comes differs in its settings.
    pub(super) fn decode(mut rest: &[u8]) -> Self {
        let [cores, host] = [(); 2].map(|()| u64::from_le_bytes(take(&mut rest)));
        let [sizes, at] = [(); 2].map(|()| [(); 3].map(|()| u32::from_le_bytes(take(&mut rest))));
        let logical = (sizes[0] > 0).then_some(Logical { sizes, at });
        let coords = take(&mut rest);
        let settings = String::from_utf8_lossy(rest).into_owned();
        Card { cores, host, coords, logical, settings }
    }
}

/// The next `N` bytes; zeros if there are not as many, and nothing is left then.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, left) = rest.split_first_chunk().map_or(([0; N], &[][..]), |(b, left)| (*b, left));
    *rest = left;
    bytes
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
            assert_eq!(Card::decode(&card.encode()), card);
        }
        let short = Card::decode(b"short");
        assert!(short.settings.is_empty() && short.logical.is_none());
    }
}
