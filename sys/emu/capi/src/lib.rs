//! The emulated device under its C symbol names: `libtofucom_emu.so` and `libtofucom_emu.a`.
//!
//! Link a C program with `-I sys/include -ltofucom_emu`. A program that is already linked to the vendor's library
//! runs unchanged if a symbolic link `libtofucom.so` to this library stands first in `LD_LIBRARY_PATH`: the binary
//! interface is the same. The `HOPBINE_*` variables (see `utofu_emu::env`) or calls of `utofu_emu_enter_as_thread`
//! (`sys/include/utofu_emu.h`) set the number of ranks and their coordinates.
//!
//! This crate, not `utofu-emu`, defines the symbols: a Rust program that contains the emulated device can then load
//! the vendor's library at the same time without a clash of names. This crate holds only the names; the functions
//! themselves are in `utofu_emu::c`.

mod threads;

pub use threads::utofu_emu_enter_as_thread;

/// Instruction of a tail jump to another function, which finds the arguments and the return address unchanged.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp {}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b {}"
    };
}

/// Defines each function as a C symbol that jumps to the function of the same name in `utofu_emu::c`, which has the
/// header's signature.
macro_rules! export {
    (required { $($req:ident)* } optional { $($opt:ident)* }) => {
        export! { $($req)* $($opt)* }
    };
    ($($name:ident)*) => {$(
        #[doc = concat!("C symbol; see [`utofu_emu::c::", stringify!($name), "`].")]
        ///
        /// # Safety
        /// To be called from C, as the header declares it.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(jump!(), sym utofu_emu::c::$name)
        }
    )*};
}

utofu_sys::functions!(export);
