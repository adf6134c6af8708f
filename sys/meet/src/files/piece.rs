//! The ranks' parts of a round.

/// One rank's part of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoundPiece {
    /// Length of the whole message, in bytes.
    pub(super) total: u32,
    pub(super) bytes: Vec<u8>,
}

impl RoundPiece {
    pub(super) const HEADER: usize = 8;

    pub(super) fn encode(&self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        [&self.total.to_le_bytes(), &len.to_le_bytes(), self.bytes.as_slice()].concat()
    }

    /// Decodes the pieces of all `n` ranks; `None` if the bytes are not `n` pieces.
    pub(super) fn all_from(mut bytes: &[u8], n: usize) -> Option<Vec<RoundPiece>> {
        let mut pieces = Vec::new();
        while let Some((&total, rest)) = bytes.split_first_chunk() {
            let (&len, rest) = rest.split_first_chunk()?;
            let (piece, rest) = rest.split_at_checked(u32::from_le_bytes(len) as usize)?;
            pieces.push(RoundPiece { total: u32::from_le_bytes(total), bytes: piece.to_vec() });
            bytes = rest;
        }
        (pieces.len() == n && bytes.is_empty()).then_some(pieces)
    }
}

/// A rank's message, assembled from the pieces of several rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct AssembledMessage {
    /// The bytes received so far.
    pub(super) bytes: Vec<u8>,
    /// Length of the message, from its first piece.
    total: Option<u32>,
}

impl AssembledMessage {
    /// Appends the piece of a round, of at most `most` bytes. Every piece but the last has the largest possible
    /// length; a rank whose message is complete sends empty pieces while other ranks continue.
    ///
    /// # Errors
    /// A description of the fault: with this piece the message could never be completed.
    pub(super) fn add(&mut self, piece: &RoundPiece, most: usize) -> Result<(), String> {
        let total = *self.total.get_or_insert(piece.total);
        let due = (total as usize - self.bytes.len()).min(most);
        if (piece.total, piece.bytes.len()) != (total, due) {
            return Err(format!(
                "{} bytes of a message of {}, where {due} of {total} are due",
                piece.bytes.len(),
                piece.total
            ));
        }
        self.bytes.extend_from_slice(&piece.bytes);
        Ok(())
    }

    /// Returns whether the message is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.bytes.len() == total as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back() {
        let pieces = [
            RoundPiece { total: 9, bytes: vec![1, 2, 3] },
            RoundPiece { total: 0, bytes: Vec::new() },
        ];
        let bytes: Vec<u8> = pieces.iter().flat_map(RoundPiece::encode).collect();
        assert_eq!(RoundPiece::all_from(&bytes, 2).as_deref(), Some(&pieces[..]));
        assert_eq!(RoundPiece::all_from(&bytes, 3), None);
        for cut in 0..bytes.len() {
            assert_eq!(RoundPiece::all_from(&bytes[..cut], 2), None, "cut to {cut}");
        }
    }

    #[test]
    fn pieces_that_make_up_no_message_are_refused() {
        let piece = |total, len| RoundPiece { total, bytes: vec![7; len] };
        for (pieces, is_complete) in [
            (vec![piece(0, 0)], Ok(true)),
            (vec![piece(5, 4)], Ok(false)),
            (vec![piece(5, 4), piece(5, 1), piece(5, 0)], Ok(true)),
            // Messages that never end, or that exceed their length.
            (vec![piece(5, 0)], Err(())),
            (vec![piece(u32::MAX, 0)], Err(())),
            (vec![piece(5, 4), piece(9, 4)], Err(())),
            (vec![piece(5, 4), piece(5, 4)], Err(())),
            (vec![piece(5, 5)], Err(())),
        ] {
            let mut message = AssembledMessage::default();
            let added = pieces.iter().try_for_each(|piece| message.add(piece, 4));
            let found = added.map(|()| message.is_complete()).map_err(drop);
            assert_eq!(found, is_complete, "{pieces:?}");
        }
    }
}
