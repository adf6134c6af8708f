//! The exchanges that the start-up of every wire has in common, and their failures.

use hopbine_meet::{BootstrapError, Exchange, Records};

use super::{Rank, WireError};

/// The bytes of all ranks, by rank, if no rank has failed before this point. Otherwise all ranks get the same error
/// of `call`, with the first failed rank as its peer. Collective.
///
/// # Errors
/// [`WireError`] if a rank has failed, or if the exchange fails.
pub(super) fn agree(
    exchange: &mut dyn Exchange,
    call: &'static str,
    mine: Result<&[u8], String>,
) -> Result<Records, WireError> {
    exchange
        .agree(mine)
        .map_err(|error| exchange_error(&error))?
        .map_err(|refusal| WireError::new(call, &refusal).at(refusal.rank as Rank))
}

/// The version of the protocol: of the records exchanged at start-up, and of what ranks write to each other on the
/// wires. It changes with every release in which bytes have another meaning than in the release before.
pub(crate) const PROTOCOL: u32 = 1;

/// The first bytes of every start-up record; the protocol's version follows.
const MAGIC: [u8; 4] = *b"hopb";

/// `record`, the first that a rank sends to the others, after the mark and the protocol's version.
pub(crate) fn with_protocol(record: &[u8]) -> Vec<u8> {
    [&MAGIC, &PROTOCOL.to_le_bytes(), record].concat()
}

/// The payload of the [`with_protocol`] record of `rank`; `me` is this rank.
///
/// # Errors
/// Names the protocols of both ranks, if they differ.
pub(crate) fn check_protocol(bytes: &[u8], rank: Rank, me: Rank) -> Result<&[u8], String> {
    let theirs = match bytes.split_first_chunk::<4>() {
        Some((&MAGIC, rest)) => rest.split_first_chunk::<4>(),
        _ => None,
    };
    let theirs = theirs.map(|(number, record)| (u32::from_le_bytes(*number), record));
    let other = match theirs {
        Some((PROTOCOL, record)) => return Ok(record),
        Some((number, _)) => format!("protocol {number}"),
        None => "no hopbine protocol, or one without a number".to_owned(),
    };
    Err(format!(
        "rank {rank} uses {other}, rank {me} protocol {PROTOCOL}: all ranks of a job need the same \
         release of hopbine, and the same HOPBINE_BACKEND"
    ))
}

/// The error of a failed exchange.
pub(crate) fn exchange_error(error: &BootstrapError) -> WireError {
    WireError::new("exchange of addresses", error)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;

    use super::*;

    /// The errors of three ranks, if the third has no device, or does not take part at all.
    fn learnt(comes: bool) -> Vec<WireError> {
        let patience = Duration::from_millis(if comes { 60_000 } else { 100 });
        let mut ranks = LocalExchange::group(3, patience);
        ranks.truncate(if comes { 3 } else { 2 });
        std::thread::scope(|threads| {
            let agrees = |mut exchange: LocalExchange| {
                let mine: Result<&[u8], _> = match exchange.rank() {
                    2 => Err("no device".to_owned()),
                    _ => Ok(b"record"),
                };
                threads.spawn(move || agree(&mut exchange, "opening", mine).unwrap_err())
            };
            let agree: Vec<_> = ranks.into_iter().map(agrees).collect();
            agree.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_ranks_learn_who_cannot_start_and_that_somebody_does_not_come() {
        let refusals = learnt(true);
        assert_eq!(refusals.len(), 3);
        for refusal in refusals {
            assert_eq!((refusal.call, refusal.peer), ("opening", Some(2)));
            assert!(refusal.reason.contains("no device"), "{refusal}");
        }
        for error in learnt(false) {
            assert_eq!((error.call, error.peer), ("exchange of addresses", None), "{error}");
        }
    }

    #[test]
    fn another_protocol_is_named_with_both_ranks() {
        assert_eq!(check_protocol(&with_protocol(b"record"), 3, 0), Ok(&b"record"[..]));
        let mut newer = with_protocol(b"record");
        newer[4] += 1;
        let refusal = check_protocol(&newer, 3, 0).unwrap_err();
        assert!(refusal.contains("rank 3 uses protocol 2, rank 0 protocol 1"), "{refusal}");
        for none in [&b""[..], b"hopb", b"hopb\x01\0\0", b"something else"] {
            let refusal = check_protocol(none, 3, 0).unwrap_err();
            assert!(refusal.contains("rank 3") && refusal.contains("HOPBINE_BACKEND"), "{refusal}");
        }
    }
}
