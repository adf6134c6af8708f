//! What the start-up of every wire exchanges with the other ranks, and its failures.

use utofu::bootstrap::{BootstrapError, Exchange};

use super::{Rank, WireError};

/// Everyone's bytes, by rank, if no rank has failed before this point; else the same error on all
/// ranks, of `call`, with the first rank that failed as its peer. Collective.
///
/// # Errors
/// [`WireError`] if a rank has failed, or the exchange does.
pub(super) fn agree(
    exchange: &mut dyn Exchange,
    call: &'static str,
    mine: Result<&[u8], String>,
) -> Result<Vec<Vec<u8>>, WireError> {
    exchange.agree(mine).map_err(|error| lost(&error))?.map_err(|refusal| WireError {
        call,
        reason: refusal.to_string(),
        peer: Some(refusal.rank as Rank),
    })
}

/// The exchange itself has failed.
pub(super) fn lost(error: &BootstrapError) -> WireError {
    WireError { call: "exchange of addresses", reason: error.to_string(), peer: None }
}
