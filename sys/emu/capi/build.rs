//! Gives the shared library a soname: its name, which has no version, as the vendor's has none.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtofucom_emu.so");
}
