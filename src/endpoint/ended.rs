//! What a port has in place of its endpoint after the end of the world.

use super::{Endpoint, Event, Posted, RecvPost, SendPost, WireError, given_up};
use crate::Rank;

/// No wire: posts fail, and polls report nothing.
pub(crate) struct Ended;

impl Endpoint for Ended {
    unsafe fn post_send(&mut self, _: Rank, _: SendPost) -> Result<Posted, WireError> {
        Err(given_up())
    }

    unsafe fn post_recv(&mut self, _: Rank, _: RecvPost) -> Result<Posted, WireError> {
        Err(given_up())
    }

    fn poll(&mut self, _: &mut Vec<Event>) -> Result<(), WireError> {
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn abandon(&mut self) {}
}
