//! The emulated device as a source of the function table.

use utofu_emu::c as device;

use crate::{Api, Functions};

/// Makes the table of the device's functions; the device implements the optional ones, too.
macro_rules! functions_of_device {
    (required { $($req:ident)* } optional { $($opt:ident)* }) => {
        Functions { $($req: device::$req,)* $($opt: Some(device::$opt),)* }
    };
}

impl Api {
    /// The Tofu device in software.
    ///
    /// A thread acts as the rank of the job that it has entered (`utofu_emu::Job`), otherwise as the
    /// process's rank in the job that the environment describes.
    #[must_use]
    pub fn emulated() -> Api {
        static FUNCTIONS: Functions = utofu_sys::functions!(functions_of_device);
        Api::new(&FUNCTIONS, "emulated device")
    }
}
