//! Makes the bindings with bindgen; part of the build script, only with the feature `bindgen`.
//!
//! Two things differ from plain bindgen output. Flag macros become `c_ulong`, the type of every
//! `flags` parameter. Prototypes become function *types* of the same names, because the functions
//! are only known at run time: a declaration could be linked against by mistake, a type cannot.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use bindgen::callbacks::{IntKind, ParseCallbacks};

/// Gives every bit mask the C type of the parameters it is meant for.
#[derive(Debug)]
struct FlagTypes;

impl ParseCallbacks for FlagTypes {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        if name.contains("_FLAG_") || name.contains("_CAP_") {
            Some(IntKind::ULong)
        } else if name.starts_with("UTOFU_VERSION_") || name.starts_with("JTOFU_VERSION_") {
            Some(IntKind::Int)
        } else {
            None
        }
    }
}

/// Writes `$OUT_DIR/bindings.rs`, and a copy to `$UTOFU_ABI_COPY` if that is set.
pub fn run() {
    println!("cargo::rerun-if-env-changed=UTOFU_ABI_COPY");
    println!("cargo::rerun-if-changed=generate.rs");
    let own = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../include");
    let utofu = env::var_os("UTOFU_INCLUDE").map_or_else(|| own.clone(), PathBuf::from);
    let utofu_h = header(&utofu, "utofu.h");
    // Not every system installs jTofu: its part of the interface is then taken from our header.
    let jtofu_h = if utofu.join("jtofu.h").is_file() { &utofu } else { &own };
    let jtofu_h = header(jtofu_h, "jtofu.h");

    let bindings = bindgen::Builder::default()
        .header(utofu_h)
        .header(jtofu_h)
        .allowlist_item("utofu_.*|UTOFU_.*|jtofu_.*|JTOFU_.*")
        // Casts to a typedef are beyond bindgen's macro reader: src/lib.rs states these.
        .blocklist_var("UTOFU_VBG_ID_NULL|UTOFU_PATH_COORD_NULL")
        .prepend_enum_name(false)
        .derive_default(true)
        .use_core()
        .ctypes_prefix("::core::ffi")
        .rust_edition(bindgen::RustEdition::Edition2024)
        .disable_header_comment()
        .formatter(bindgen::Formatter::None)
        .parse_callbacks(Box::new(FlagTypes))
        .generate()
        .unwrap_or_else(|e| panic!("bindgen cannot read {}: {e}", utofu.display()));

    let text = types_for_prototypes(&bindings.to_string());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("bindings.rs");
    fs::write(&out, &text).unwrap_or_else(|e| panic!("{}: {e}", out.display()));
    if let Some(copy) = env::var_os("UTOFU_ABI_COPY").map(PathBuf::from) {
        fs::write(&copy, &text).unwrap_or_else(|e| panic!("{}: {e}", copy.display()));
    }
}

fn header(dir: &Path, name: &str) -> String {
    let file = dir.join(name);
    assert!(
        file.is_file(),
        "there is no {}: UTOFU_INCLUDE must name the directory that holds utofu.h",
        file.display()
    );
    println!("cargo::rerun-if-changed={}", file.display());
    file.to_string_lossy().into_owned()
}

/// Replaces each `fn name(..) -> r;` of an extern block by `type name = unsafe extern "C" fn(..) -> r`.
fn types_for_prototypes(text: &str) -> String {
    let mut file = syn::parse_file(text).expect("bindgen writes Rust");
    let mut items = Vec::new();
    for item in file.items {
        let syn::Item::ForeignMod(block) = item else {
            items.push(item);
            continue;
        };
        for foreign in block.items {
            let syn::ForeignItem::Fn(f) = foreign else {
                panic!("the header declares something that is neither type, constant nor function");
            };
            let (attrs, name) = (&f.attrs, &f.sig.ident);
            let (inputs, output) = (&f.sig.inputs, &f.sig.output);
            items.push(syn::parse_quote! {
                #(#attrs)* pub type #name = unsafe extern "C" fn(#inputs) #output;
            });
        }
    }
    file.items = items;
    prettyplease::unparse(&file)
}
