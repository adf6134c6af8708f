//! Generates `include/hopbine.h`: cbindgen's output for the source and for declarations of the collectives, which
//! the source defines by a macro.

use std::fmt::Write;
use std::path::Path;

use crate::rows::{Row, rows};

/// The Rust declaration of one function of a collective.
fn declaration(row: &Row, form: usize) -> String {
    let [blocking, ..] = row.functions;
    let doc = match (form, row.is_vector) {
        (0, _) => row.doc.clone(),
        (1, false) => vec!["The buffers must be left alone until the request is done."],
        (1, true) => {
            vec!["The buffers must be left alone until the request is done; the lists need not."]
        }
        (_, false) => {
            vec!["on these buffers, to be started with hopbine_start(), again and again."]
        }
        (_, true) => {
            vec!["on these buffers, with these lists, to be started with hopbine_start()."]
        }
    };
    let begin = match form {
        0 => String::new(),
        1 => format!("Starts {blocking}(). "),
        _ => format!("Prepares {blocking}() "),
    };
    let mut text = format!("/// {begin}{}\n", doc.join("\n/// "));
    write!(text, "#[no_mangle] pub unsafe extern \"C\" fn {}(", row.functions[form]).unwrap();
    for argument in row.arguments_of(form) {
        let of_type = match argument {
            "sendbuf" => "*const c_void",
            "recvbuf" | "buffer" => "*mut c_void",
            "count" => "i64",
            "datatype" | "op" | "root" => "c_int",
            "comm" => "hopbine_comm_t",
            "request" => "*mut hopbine_request_t",
            _ => "*const i64",
        };
        write!(text, "{argument}: {of_type}, ").unwrap();
    }
    text + ") -> c_int {}\n"
}

/// Removes the sections `# Safety`, which are the last ones of their comments: C programs know these rules for
/// pointers.
fn without_safety(text: &str) -> String {
    let (mut kept, mut is_within) = (Vec::new(), false);
    for line in text.lines() {
        if line == "// # Safety" {
            // Also removes the empty line before it.
            kept.pop();
            is_within = true;
        }
        is_within &= line.starts_with("//");
        if !is_within {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

pub fn text() -> String {
    let capi = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(capi.join("cbindgen.toml")).expect("is readable");
    let rows = rows();
    let declarations = (0..3).flat_map(|form| rows.iter().map(move |row| declaration(row, form)));
    let dir = tempfile::tempdir().expect("a directory");
    let source = dir.path().join("collectives.rs");
    std::fs::write(&source, declarations.collect::<String>()).expect("can be written");
    let builder = cbindgen::Builder::new().with_config(config).with_crate(capi).with_src(source);
    let mut text = Vec::new();
    builder.generate().expect("the source can be read").write(&mut text);
    let text = String::from_utf8(text).expect("text");
    // Parentheses, since an operator before the constant would change its value.
    without_safety(&text).replace(" -1\n", " (-1)\n")
}
