//! Gives the shared library its soname, and tells the tests. Before 1.0 every minor version may change the interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let part =
        |name: &str| std::env::var(format!("CARGO_PKG_VERSION_{name}")).expect("cargo sets it");
    let (major, minor) = (part("MAJOR"), part("MINOR"));
    let compatible = if major == "0" { format!("0.{minor}") } else { major };
    let soname = format!("libhopbine.so.{compatible}");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    println!("cargo::rustc-env=SONAME={soname}");
}
