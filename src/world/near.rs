//! The ranks of one node among those of many: they speak with each other through its memory,
//! whatever carries messages between nodes.

use hopbine_meet::Exchange;

use crate::endpoint::Endpoint;
use crate::endpoint::router::Router;
use crate::endpoint::shm::{Reading, ShmConfig, connect};
use crate::error::WireError;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// The same for the ranks of a node, and different for those of different nodes of one host.
    pub(super) node: u64,
    /// Whether long messages may be read from the memory of their senders.
    pub(super) may_read: bool,
}

/// The ports over `far`, and whether near ranks read each other's memory, with the ranks of the node as near as `near` says; collective over
/// `exchange`, with all or none having a `near`.
///
/// # Errors
/// [`WireError`]; the same on all ranks.
pub(super) fn beside<F: Endpoint + 'static>(
    near: Option<Near>,
    far: Vec<F>,
    exchange: &mut dyn Exchange,
) -> Result<(Vec<Box<dyn Endpoint>>, Reading), WireError> {
    let Some(Near { node, may_read }) = near else {
        let ports = far.into_iter().map(|far| Box::new(far) as Box<dyn Endpoint>);
        return Ok((ports.collect(), Reading::Unused));
    };
    let config = ShmConfig { n_ports: far.len(), node, may_read };
    let opened = connect(exchange, config).map_err(|error| WireError {
        reason: format!("{} (HOPBINE_SHM=off avoids it)", error.reason),
        ..error
    })?;
    let ports = opened.endpoints.into_iter().zip(far).map(|(near, far)| {
        let ranks: Vec<_> = near.ranks().collect();
        Box::new(Router::new(near, ranks, far)) as Box<dyn Endpoint>
    });
    Ok((ports.collect(), opened.reading))
}
