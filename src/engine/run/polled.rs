//! A wire for tests of ports that post nothing.

use crate::Rank;
use crate::endpoint::{Endpoint, Event, Posted, RecvPost, Registry, SendPost, WireError};

/// See the module documentation.
pub(super) struct Polled {
    /// The outcome of each poll, which reports no events.
    pub(super) poll: Box<dyn FnMut() -> Result<(), WireError> + Send>,
    pub(super) registry: Option<Box<dyn Registry + Send>>,
}

impl Endpoint for Polled {
    unsafe fn post_send(&mut self, _: Rank, _: SendPost) -> Result<Posted, WireError> {
        unreachable!()
    }

    unsafe fn post_recv(&mut self, _: Rank, _: RecvPost) -> Result<Posted, WireError> {
        unreachable!()
    }

    fn poll(&mut self, _: &mut Vec<Event>) -> Result<(), WireError> {
        (self.poll)()
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn abandon(&mut self) {}

    fn registry(&mut self) -> Option<&mut dyn Registry> {
        match &mut self.registry {
            Some(registry) => Some(&mut **registry),
            None => None,
        }
    }
}
