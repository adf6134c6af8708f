//! The ranks' parts of a round.

/// One rank's part of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Length of the whole message.
    pub(super) total: u32,
    pub(super) bytes: Vec<u8>,
}

impl Piece {
    pub(super) const HEADER: usize = 8;

    pub(super) fn encode(&self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        [&self.total.to_le_bytes(), &len.to_le_bytes(), self.bytes.as_slice()].concat()
    }

    /// The pieces of all ranks; None if these bytes are something else.
    pub(super) fn all_from(mut bytes: &[u8], n: usize) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        while let Some((&total, rest)) = bytes.split_first_chunk() {
            let (&len, rest) = rest.split_first_chunk()?;
            let (piece, rest) = rest.split_at_checked(u32::from_le_bytes(len) as usize)?;
            pieces.push(Piece { total: u32::from_le_bytes(total), bytes: piece.to_vec() });
            bytes = rest;
        }
        (pieces.len() == n && bytes.is_empty()).then_some(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back() {
        let pieces =
            [Piece { total: 9, bytes: vec![1, 2, 3] }, Piece { total: 0, bytes: Vec::new() }];
        let bytes: Vec<u8> = pieces.iter().flat_map(Piece::encode).collect();
        assert_eq!(Piece::all_from(&bytes, 2).as_deref(), Some(&pieces[..]));
        assert_eq!(Piece::all_from(&bytes, 3), None);
        for cut in 0..bytes.len() {
            assert_eq!(Piece::all_from(&bytes[..cut], 2), None, "cut to {cut}");
        }
    }
}
