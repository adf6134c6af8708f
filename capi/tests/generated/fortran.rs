//! Generates the modules `hopbine_c_calls`, `hopbine_calls` and `hopbine_vector`.

use std::fmt::Write;

use crate::rows::{Row, rows};
use crate::text::statement;

/// Columns of a generated line; Fortran allows 132 characters.
const WIDTH: usize = 118;

const GENERATED: &str = "! Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`\n\
    ! writes it.\n";

/// Declares the arguments that `which` selects.
fn declare(
    text: &mut String,
    arguments: &[&'static str],
    attributes: &str,
    which: impl Fn(&str) -> bool,
    suffix: &str,
) {
    let names: Vec<String> = (arguments.iter().filter(|argument| which(argument)))
        .map(|argument| format!("{argument}{suffix}"))
        .collect();
    if !names.is_empty() {
        *text += &statement(
            WIDTH,
            attributes_indent(attributes),
            &format!("{} :: {}", attributes.trim(), names.join(", ")),
        );
    }
}

fn attributes_indent(attributes: &str) -> usize {
    attributes.len() - attributes.trim_start().len()
}

fn is_buffer(argument: &str) -> bool {
    matches!(argument, "sendbuf" | "recvbuf" | "buffer")
}

fn is_list(argument: &str) -> bool {
    argument.ends_with("counts") || argument.ends_with("displs")
}

fn is_number(argument: &str) -> bool {
    matches!(argument, "datatype" | "op" | "root")
}

fn list(arguments: &[&'static str]) -> String {
    arguments.join(", ")
}

/// The arguments of a C function, by the names in its interface.
fn arguments_in_c(row: &Row, form: usize) -> Vec<&'static str> {
    let named = |argument| if argument == "buffer" { "recvbuf" } else { argument };
    row.arguments_of(form).into_iter().map(named).collect()
}

/// The interface of all C functions with this function's arguments; it has the name of this function.
fn interface(row: &Row, form: usize) -> String {
    let arguments = arguments_in_c(row, form);
    let head = format!(
        "integer(c_int) function like_{}({}) bind(C)",
        row.functions[form],
        list(&arguments)
    );
    let mut text = statement(WIDTH, 4, &head) + "      import\n";
    declare(&mut text, &arguments, "      type(c_ptr), value", is_buffer, "");
    declare(&mut text, &arguments, "      integer(c_int64_t), intent(in)", is_list, "(*)");
    let is_wide = |argument: &str| matches!(argument, "count" | "comm");
    declare(&mut text, &arguments, "      integer(c_int64_t), value", is_wide, "");
    declare(&mut text, &arguments, "      integer(c_int), value", is_number, "");
    declare(&mut text, &arguments, "      integer(c_int64_t)", |a| a == "request", "");
    text + "    end function\n"
}

/// The interfaces of all C functions: one interface for all functions with the same arguments.
pub fn interfaces() -> String {
    let rows = rows();
    let all: Vec<(&Row, usize)> =
        rows.iter().flat_map(|row| (0..3).map(move |form| (row, form))).collect();
    let first_like = |(row, form): (&Row, usize)| {
        let arguments = arguments_in_c(row, form);
        let is_like = |(row, form): &&(&Row, usize)| arguments_in_c(row, *form) == arguments;
        *all.iter().find(is_like).expect("it is like itself")
    };
    let mut text = format!(
        "! The collectives of the C interface as they are: blocking, non-blocking, persistent. Part of hopbine_c.\n\
         {GENERATED}module hopbine_c_calls\n  \
           use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr\n  \
           implicit none\n  public\n\n  abstract interface\n"
    );
    for &(row, form) in &all {
        let (first, of_first) = first_like((row, form));
        if first.functions[of_first] == row.functions[form] {
            text += &interface(row, form);
        }
    }
    text += "  end interface\n\n";
    for &(row, form) in &all {
        let (first, of_first) = first_like((row, form));
        let (name, like) = (row.functions[form], first.functions[of_first]);
        let declared = format!("procedure(like_{like}), bind(C,~name=\"{name}\") :: {name}_c");
        text += &statement(WIDTH, 2, &declared);
    }
    text + "end module hopbine_c_calls\n"
}

/// One procedure of the module `hopbine`.
fn procedure(row: &Row, form: usize) -> String {
    let name = row.functions[form];
    let arguments = row.arguments_of(form);
    let has_buffers = arguments.iter().any(|argument| is_buffer(argument));
    // With `bind(C)` the compiler passes an array section itself, not a copy.
    let bound = if form > 0 && has_buffers { " bind(C,~name=\"\")" } else { "" };
    let mut text =
        statement(WIDTH, 2, &format!("subroutine {name}({}, ierror){bound}", list(&arguments)));
    let buffer = match form {
        0 => "    type(*), dimension(..), contiguous, target",
        _ => "    type(*), dimension(..), target, asynchronous",
    };
    declare(&mut text, &arguments, &format!("{buffer}, intent(in)"), |a| a == "sendbuf", "");
    declare(&mut text, &arguments, buffer, |a| matches!(a, "recvbuf" | "buffer"), "");
    declare(&mut text, &arguments, "    integer(hopbine_count), intent(in)", |a| a == "count", "");
    declare(&mut text, &arguments, "    integer(hopbine_count), intent(in)", is_list, "(*)");
    declare(&mut text, &arguments, "    integer(c_int), intent(in)", is_number, "");
    text += "    integer(hopbine_handle), intent(in) :: comm\n";
    if form > 0 {
        text += "    integer(hopbine_handle), intent(out) :: request\n";
    }
    text += "    integer(c_int), intent(out), optional :: ierror\n";
    let address = if form == 0 { "at" } else { "kept" };
    let passed: Vec<String> = (arguments.iter())
        .map(|argument| match *argument {
            buffer if is_buffer(buffer) => format!("{address}({buffer})"),
            other => other.to_owned(),
        })
        .collect();
    text += &statement(WIDTH, 4, &format!("call done({name}_c({}), ierror)", passed.join(", ")));
    text + "  end subroutine\n"
}

/// The module with the procedures for blocks of one size, or with the procedures for blocks of different sizes.
pub fn procedures(of_vectors: bool) -> String {
    let (module, what) = match of_vectors {
        true => (
            "hopbine_vector",
            "The vector forms of the module hopbine, whose blocks may differ in size.",
        ),
        false => {
            ("hopbine_calls", "The collectives of the module hopbine whose blocks have one size.")
        }
    };
    let rows = rows().into_iter().filter(|row| row.is_vector == of_vectors).collect::<Vec<_>>();
    let mut text = format!(
        "! {what}\n{GENERATED}module {module}\n  \
           use, intrinsic :: iso_c_binding, only: c_int\n  \
           use hopbine_base, only: at, done, hopbine_count, hopbine_handle, kept\n  \
           use hopbine_c_calls\n  implicit none\n  private\n"
    );
    for row in &rows {
        text += &statement(WIDTH, 2, &format!("public :: {}", row.functions.join(", ")));
    }
    text += "\ncontains\n";
    for row in &rows {
        write!(text, "\n  ! {}\n", row.comment).unwrap();
        let all: Vec<_> = (0..3).map(|form| procedure(row, form)).collect();
        text += &all.join("\n");
    }
    text + &format!("\nend module {module}\n")
}
