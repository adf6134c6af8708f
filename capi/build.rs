//! Gives the shared library the name that it is installed under.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhopbine.so.0");
}
