//! Ranks of one node in a job on several nodes: they communicate through the memory of the node, whatever carries
//! messages between nodes.

use hopbine_meet::Exchange;

use crate::endpoint::Endpoint;
use crate::endpoint::router::Router;
use crate::endpoint::shm::{Reading, ShmConfig, connect};
use crate::error::WireError;

use super::backend::{Layout, NodeMemory};

/// Combines the ports `far` with ports in the node's memory, if the layout asks for these. Also returns whether
/// ranks of the node read each other's memory. Collective over `exchange`: all ranks have ports in memory, or none
/// has.
///
/// # Errors
/// [`WireError`]; the same on all ranks.
pub(super) fn with_node_memory<F: Endpoint + 'static>(
    layout: &Layout<'_>,
    far: Vec<F>,
    exchange: &mut dyn Exchange,
) -> Result<(Vec<Box<dyn Endpoint>>, Reading), WireError> {
    let Some(NodeMemory { node, may_read }) = layout.node_memory else {
        let ports = far.into_iter().map(|far| Box::new(far) as Box<dyn Endpoint>);
        return Ok((ports.collect(), Reading::Unused));
    };
    let Layout { own_cores, limits, .. } = *layout;
    let config = ShmConfig { n_ports: far.len(), node, may_read, own_cores, limits };
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
