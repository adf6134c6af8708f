//! The ranks of one node among those of many: they speak with each other through its memory,
//! whatever carries messages between nodes.

use hopbine_meet::Exchange;

use crate::endpoint::Endpoint;
use crate::endpoint::router::Router;
use crate::endpoint::shm::{Reading, ShmConfig, connect};
use crate::error::WireError;

use super::backend::{Layout, Near};

/// The ports over `far`, beside those in the node's memory if the layout has them, and whether ranks of the node read each
/// other's memory; collective over `exchange`, where all or none have such ports.
///
/// # Errors
/// [`WireError`]; the same on all ranks.
pub(super) fn beside<F: Endpoint + 'static>(
    layout: &Layout<'_>,
    far: Vec<F>,
    exchange: &mut dyn Exchange,
) -> Result<(Vec<Box<dyn Endpoint>>, Reading), WireError> {
    let Some(Near { node, may_read }) = layout.near else {
        let ports = far.into_iter().map(|far| Box::new(far) as Box<dyn Endpoint>);
        return Ok((ports.collect(), Reading::Unused));
    };
    let config = ShmConfig { n_ports: far.len(), node, may_read, own_cores: layout.own_cores };
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
