//! Chooses the bindings: the checked-in ones, or fresh ones made from a header.
//!
//! An ordinary build does nothing here. With the feature `bindgen` the bindings are made from
//! `$UTOFU_INCLUDE/utofu.h` (a system's own header) or from `sys/include/utofu.h`.

#[cfg(feature = "bindgen")]
#[path = "generate.rs"]
mod generate;

fn main() {
    println!("cargo::rerun-if-env-changed=UTOFU_INCLUDE");
    println!("cargo::rerun-if-changed=build.rs");

    #[cfg(feature = "bindgen")]
    generate::run();

    #[cfg(not(feature = "bindgen"))]
    if let Some(dir) = std::env::var_os("UTOFU_INCLUDE") {
        println!(
            "cargo::error=UTOFU_INCLUDE={} asks for bindings of another utofu.h, which needs the \
             feature `bindgen` of utofu-sys (and libclang): enable it, or unset UTOFU_INCLUDE to \
             use the checked-in bindings",
            dir.to_string_lossy()
        );
    }
}
