//! The emulated device as the library behind the table.

use utofu_emu::c as device;

use crate::api::functions_of;
use crate::{Api, Functions};

impl Api {
    /// The device in software.
    ///
    /// A thread acts as the rank of the job that it has entered (`utofu_emu::Job`), otherwise as the
    /// process's rank in the job that the environment describes.
    #[must_use]
    pub fn emulated() -> Api {
        static FUNCTIONS: Functions = functions_of!(device);
        Api::new(&FUNCTIONS, "emulated device")
    }
}
