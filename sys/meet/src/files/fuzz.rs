//! Files with arbitrary contents: for hopbine's fuzz targets, whose seeds are replayed here.

use super::piece::{AssembledMessage, RoundPiece};
use super::record::{Collected, FileRecord, HEADER, PAYLOAD, RECORD};

/// Decodes bytes as a record, as the data that rank 0 has collected, and as pieces of messages.
pub fn play(bytes: &[u8]) {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().max(RECORD), 0);
    if let Some(record) = padded.first_chunk().and_then(FileRecord::decode) {
        assert!(record.payload.len() <= PAYLOAD);
    }
    if let Some((head, body)) = padded.split_first_chunk::<HEADER>()
        && let Some(head) = Collected::head(head)
    {
        let body = body[..body.len().min(head.len)].to_vec();
        let collected = head.with(body);
        assert!(collected.is_none_or(|collected| collected.body.len() == head.len));
    }
    // Rounds of two ranks.
    let mut messages = [AssembledMessage::default(), AssembledMessage::default()];
    for round in bytes.chunks(64) {
        let Some(pieces) = RoundPiece::all_from(round, messages.len()) else { return };
        for (message, piece) in messages.iter_mut().zip(&pieces) {
            let before = message.bytes.len();
            if message.add(piece, 16).is_err() {
                return;
            }
            assert!(message.is_complete() || message.bytes.len() > before, "rounds without end");
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_do_no_harm() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/records");
        let files = std::fs::read_dir(seeds).expect("seeds");
        let seeds = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        assert!(seeds.map(|seed| super::play(&seed)).count() > 0);
    }
}
