//! Generates MPI's calls in Fortran: the procedures of the modules behind `hopbine_mpi`, for any form, kind of
//! handles and kind of counts (`fortran/mpi`).

use crate::mpi::{Call, calls};
use crate::text::statement;

/// Columns of a generated line, before macros make it longer; Fortran allows 132 characters.
const WIDTH: usize = 100;

const GENERATED: &str = "! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`\n\
    ! writes it.\n";

/// Declares the listed parameters.
fn declare(call: &Call, attributes: &str, which: &[&str], suffix: &str) -> String {
    let names: Vec<String> = (call.parameters.iter().filter(|parameter| which.contains(parameter)))
        .map(|parameter| format!("{}{suffix}", call.mpis_name(parameter)))
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => statement(WIDTH, 4, &format!("{attributes} :: {}", names.join(", "))),
    }
}

/// The component of `hb_call` for a parameter.
fn component(call: &Call, parameter: &'static str) -> String {
    let name = call.mpis_name(parameter);
    match parameter {
        "send" | "recv" => format!("{parameter}=ADDRESS({name})"),
        "buffer" => "recv=ADDRESS(buffer)".to_owned(),
        "type" | "to" | "op" | "comm" => format!("{parameter}={name}~HANDLE_VALUE"),
        "n" | "m" | "root" => format!("{parameter}={name}"),
        list => format!("{list}=c_loc({name})"),
    }
}

fn procedure(call: &Call) -> String {
    let names: Vec<_> = call.parameters.iter().map(|parameter| call.mpis_name(parameter)).collect();
    let head =
        format!("subroutine {}({}~REQUEST_ARGUMENTS,~ierror)~BOUND", call.name, names.join(", "));
    let mut text = statement(WIDTH, 2, &head);
    for (attributes, which, suffix) in [
        ("type(*), dimension(..), BUFFER, intent(in)", &["send"][..], ""),
        ("type(*), dimension(..), BUFFER", &["recv", "buffer"], ""),
        ("integer(count_kind), intent(in)", &["n", "m"], ""),
        ("integer(c_int), intent(in)", &["root"], ""),
        ("integer(count_kind), intent(in), LIST", &["counts", "to_counts"], "(*)"),
        ("integer(displ_kind), intent(in), LIST", &["displs", "to_displs"], "(*)"),
        ("DATATYPE_HANDLE, intent(in), LIST", &["types", "to_types"], "(*)"),
        ("DATATYPE_HANDLE, intent(in)", &["type", "to"], ""),
        ("OP_HANDLE, intent(in)", &["op"], ""),
        ("COMM_HANDLE, intent(in)", &["comm"], ""),
    ] {
        text += &declare(call, attributes, which, suffix);
    }
    text += "    REQUEST_DECLARATIONS\n    integer(c_int), intent(out), optional :: ierror\n";
    let mut members = vec!["is_large".to_owned(), format!("do_{}", call.name)];
    members.extend(call.parameters.iter().map(|parameter| component(call, parameter)));
    let call =
        format!("call MAKE(hb_call({}~INFO_VALUE)~REQUEST_VALUE, ierror)", members.join(", "));
    text + &statement(WIDTH, 4, &call) + "  end subroutine\n"
}

/// The procedures of one form, with the names of MPI's blocking calls.
pub fn procedures() -> String {
    let mut calls = calls();
    calls.sort_by_key(|call| call.name == "barrier");
    let mut text = format!(
        "! The procedures of one form, of one kind of handles and one of counts.\n{GENERATED}"
    );
    for call in &calls {
        let text_of_call = procedure(call);
        text += &match call.name == "barrier" {
            // The barrier has no counts, so one kind of counts suffices.
            true => format!("\n#ifndef HB_LARGE\n{text_of_call}#endif\n"),
            false => format!("\n{text_of_call}"),
        };
    }
    text
}

/// The module of one form.
pub fn module(form: usize) -> String {
    let what = ["blocking", "non-blocking", "persistent"][form];
    // With `bind(C)` the compiler passes an array section itself, not a copy, which would be freed when the call
    // returns.
    let values = match form {
        0 => ["make", "at", "contiguous, target", "target", "", "", "", "", ""],
        _ => [
            if form == 1 { "begin" } else { "prepare" },
            "kept",
            "target, asynchronous",
            "target, asynchronous",
            "bind(C, name=\"\")",
            if form == 1 { ", request" } else { ", info, request" },
            if form == 1 {
                "REQUEST_HANDLE, intent(out) :: request"
            } else {
                "INFO_HANDLE, intent(in) :: info; REQUEST_HANDLE, intent(out) :: request"
            },
            if form == 1 { "" } else { ", info=info HANDLE_VALUE" },
            ", request HANDLE_VALUE",
        ],
    };
    let macros = [
        "MAKE",
        "ADDRESS",
        "BUFFER",
        "LIST",
        "BOUND",
        "REQUEST_ARGUMENTS",
        "REQUEST_DECLARATIONS",
        "INFO_VALUE",
        "REQUEST_VALUE",
    ];
    let mut text = format!(
        "! The {what} calls of one kind of handles and one of counts: the module MODULE.\n{GENERATED}"
    );
    for (name, value) in macros.iter().zip(values) {
        text += format!("#define {name} {value}").trim_end();
        text += "\n";
    }
    text += "module MODULE\n#include \"kinds.inc\"\n";
    let mut calls = calls();
    let numbers: Vec<String> = (calls.iter().enumerate())
        .map(|(number, call)| format!("do_{}~=~{number}", call.name))
        .collect();
    text += "  ! `enum collective` of capi/mpi/signatures.h.\n";
    text += &statement(118, 2, &format!("integer(c_int), parameter :: {}", numbers.join(", ")));
    calls.sort_by_key(|call| call.name == "barrier");
    for call in calls {
        let name = format!("HB_{}", call.title_of(form));
        let line = format!(
            "  public :: {name}; interface {name}; procedure {}; end interface\n",
            call.name
        );
        text += &match call.name == "barrier" {
            true => format!("#ifndef HB_LARGE\n{line}#endif\n"),
            false => line,
        };
    }
    text += "\ncontains\n\n#include \"procedures.inc\"\nend module MODULE\n#undef MODULE\n";
    macros.iter().for_each(|name| text += &format!("#undef {name}\n"));
    text
}
