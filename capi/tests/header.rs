//! The header that is checked in is the one of the source.

use std::path::Path;

/// What cbindgen makes of the source.
fn generated() -> String {
    let capi = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(capi.join("cbindgen.toml")).expect("is readable");
    let mut text = Vec::new();
    cbindgen::generate_with_config(capi, config).expect("the source can be read").write(&mut text);
    String::from_utf8(text).expect("text")
}

/// `HOPBINE_TEST_BLESS=1` writes it in place of comparing.
#[test]
fn the_header_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include/hopbine.h");
    let text = generated();
    if std::env::var_os("HOPBINE_TEST_BLESS").is_some() {
        std::fs::write(&path, &text).expect("can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let diff = similar::TextDiff::from_lines(&there, &text);
    let diff = diff.unified_diff().to_string();
    assert!(
        there == text,
        "include/hopbine.h is not what cbindgen makes of capi/src; HOPBINE_TEST_BLESS=1 cargo test \
         -p hopbine-capi --test header writes it:\n{diff}"
    );
}
