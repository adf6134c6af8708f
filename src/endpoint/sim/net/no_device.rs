//! In place of the emulated device, where hopbine is built without it.

/// There is none.
#[derive(Clone, Debug)]
pub(in crate::endpoint::sim) enum Device {}

impl Device {
    pub(in crate::endpoint::sim) fn due(&self) -> Option<u64> {
        match *self {}
    }
}
