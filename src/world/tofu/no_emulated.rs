//! Replaces the emulated device in a build without it.

#[cfg(feature = "sim")]
use hopbine_meet::Exchange;

use super::Tofu;
#[cfg(feature = "sim")]
use super::chains::OpenedGates;
#[cfg(feature = "sim")]
use crate::WireError;
use crate::error::Error;
use crate::memory::CacheConfig;
use crate::world::EmulationConfig;
#[cfg(feature = "sim")]
use crate::world::backend::Layout;

const WHY: &str = "hopbine was built without the emulated device (cargo feature `emu`); `hopbine info` lists the backends";

/// An emulated job, which cannot exist in this build.
pub(in crate::world) enum Emulation {}

impl Emulation {
    /// # Errors
    /// [`Error::Backend`].
    pub(in crate::world) fn new(_: &EmulationConfig) -> Result<Self, Error> {
        Err(missing())
    }

    /// # Errors
    /// [`Error::Backend`].
    #[cfg(feature = "sim")]
    pub(in crate::world) fn under(
        _: &crate::endpoint::sim::SimWire,
        _: &hopbine_torus::geometry::Shape,
        _: &hopbine_torus::geometry::RankMap,
    ) -> Result<(), Error> {
        Err(missing())
    }

    pub(in crate::world) fn enter(&self, _: u32) {
        match *self {}
    }

    pub(in crate::world) fn device(&self, _: Option<CacheConfig>) -> Tofu {
        match *self {}
    }
}

fn missing() -> Error {
    let tried = vec![("emu".to_owned(), WHY.to_owned())];
    Error::Backend { wanted: "emu".to_owned(), tried }
}

/// # Errors
/// Always.
pub(in crate::world) fn of_environment(_: CacheConfig) -> Result<Tofu, String> {
    Err(WHY.to_owned())
}

/// The gates of a rank of the device under a simulated wire.
///
/// # Errors
/// Never: there are no gates, and the result says so.
#[cfg(feature = "sim")]
pub(in crate::world) fn gates_under(
    _: &mut dyn Exchange,
    _: &Layout<'_>,
) -> Result<OpenedGates, WireError> {
    Ok((Err(WHY.to_owned()), None))
}
