//! The engines of one rank, which help each other.
//!
//! Without workers only waiting threads drive ports. A thread that waits for an operation of
//! one engine may be what a peer needs to move on with an operation of another: one rank waits
//! for the first of two operations first, another for the second. So whoever has nothing to do
//! drives the ports of all engines of its rank.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::endpoint::Endpoint;
use crate::error::Error;

use super::port::Port;
use super::workers::{Engine, EngineConfig};

/// The ports of an engine.
pub(super) type Ports = Arc<[Arc<Port>]>;

/// See the module documentation.
#[derive(Default)]
pub(super) struct Company {
    engines: RwLock<Vec<Ports>>,
    /// How many there are, for those who are mostly alone.
    size: AtomicUsize,
}

impl Company {
    pub(super) fn join(&self, ports: &Ports) {
        self.change(|engines| engines.push(ports.clone()));
    }

    pub(super) fn leave(&self, ports: &Ports) {
        self.change(|engines| engines.retain(|other| !Arc::ptr_eq(other, ports)));
    }

    fn change(&self, f: impl FnOnce(&mut Vec<Ports>)) {
        // The list is consistent between any two statements.
        let engines = &mut *self.engines.write().unwrap_or_else(PoisonError::into_inner);
        f(engines);
        // Relaxed: a hint; who misses a newcomer sees it in the next round.
        self.size.store(engines.len(), Ordering::Relaxed);
    }

    /// Number of engines.
    pub(super) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Moves on the engines other than the one with these ports; returns whether anything
    /// happened.
    pub(super) fn help_others(&self, ports: &Ports) -> bool {
        if self.size() < 2 {
            return false;
        }
        let engines = self.engines.read().unwrap_or_else(PoisonError::into_inner);
        let others = engines.iter().filter(|other| !Arc::ptr_eq(other, ports));
        let active = others.flat_map(|other| other.iter()).filter(|port| port.is_active());
        active.fold(false, |moved, port| moved | port.try_drive())
    }

    /// Drives all ports of all engines once: after a failure every port ends its runs and tells
    /// its peers.
    pub(super) fn drive_all(&self) {
        let engines = self.engines.read().unwrap_or_else(PoisonError::into_inner);
        for port in engines.iter().flat_map(|ports| ports.iter()) {
            port.drive();
        }
    }
}

impl Engine {
    /// Another engine of this rank: they fail together, and whoever waits for one of them
    /// without workers drives both.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn beside(
        &self,
        endpoints: Vec<Box<dyn Endpoint>>,
        config: EngineConfig,
    ) -> Result<Self, Error> {
        Engine::join(self.rank, endpoints, config, self.poison.clone(), self.company.clone())
    }

    /// Engines of this rank that help each other, this one included.
    pub fn n_beside(&self) -> usize {
        self.company.size()
    }
}
