//! Generates MPI's calls for the collectives: `include/hopbine_mpi.h`, and the descriptions that the C files of
//! `capi/mpi` include.

use std::fmt::Write;

use crate::rows::{Row, rows};
use crate::text::cut;

/// One of MPI's collectives.
pub struct Call {
    /// For example "allreduce".
    pub name: String,
    /// The parameters by their names in the C files, up to the communicator. Receive parameters are `m`, `to` and
    /// names with the prefix `to_`; send parameters are `n`, `type` and names without a prefix.
    pub parameters: Vec<&'static str>,
    /// Whether the call has a datatype for the send side and one for the receive side.
    pub is_movement: bool,
    /// Whether the send side, and whether the receive side, has lists of counts and displacements.
    pub lists: [bool; 2],
}

impl Call {
    fn of(row: &Row) -> Call {
        let has = |name: &str| row.has(name);
        let is_movement = has("sendbuf") && !has("op");
        let sends_lists =
            row.is_vector && (has("sendcounts") || row.collective == "Scatter" || has("op"));
        let lists = [sends_lists, row.is_vector && is_movement && row.collective != "Scatter"];
        let count = |side: usize| match (lists[side], lists == [true; 2] && side == 1) {
            (false, _) => vec![["n", "m"][side]],
            (true, false) => vec!["counts", "displs"],
            (true, true) => vec!["to_counts", "to_displs"],
        };
        let mut parameters = Vec::new();
        if is_movement {
            for (side, buffer, of_type) in [(0, "send", "type"), (1, "recv", "to")] {
                parameters.push(buffer);
                parameters.extend(count(side));
                parameters.push(of_type);
            }
            parameters.extend(["root"].iter().filter(|root| has(root)));
        } else {
            parameters.extend(row.arguments.iter().map(|argument| match *argument {
                "count" => "n",
                "sendbuf" => "send",
                "recvbuf" => "recv",
                "datatype" => "type",
                other => other,
            }));
        }
        parameters.push("comm");
        let name = row.functions[0].trim_start_matches("hopbine_");
        Call { name: name.to_owned(), parameters, is_movement, lists }
    }

    pub fn has(&self, parameter: &str) -> bool {
        self.parameters.contains(&parameter)
    }

    /// For example "Allreduce".
    pub fn title(&self) -> String {
        let (first, rest) = self.name.split_at(1);
        first.to_uppercase() + rest
    }

    /// The name of a form, for example "Iallreduce" or "Allreduce_init".
    pub fn title_of(&self, form: usize) -> String {
        match form {
            0 => self.title(),
            1 => format!("I{}", self.name),
            _ => format!("{}_init", self.title()),
        }
    }

    /// A parameter's name in the MPI standard.
    pub fn mpis_name(&self, parameter: &'static str) -> &'static str {
        let both = self.lists == [true; 2];
        match parameter {
            "send" => "sendbuf",
            "recv" => "recvbuf",
            "n" if self.is_movement => "sendcount",
            "n" if self.name == "reduce_scatter_block" => "recvcount",
            "n" => "count",
            "m" => "recvcount",
            "counts" if self.lists[0] && self.is_movement => "sendcounts",
            "counts" | "to_counts" => "recvcounts",
            "displs" if both => "sdispls",
            "displs" => "displs",
            "to_displs" => "rdispls",
            "type" if self.is_movement => "sendtype",
            "type" => "datatype",
            "to" => "recvtype",
            "types" => "sendtypes",
            "to_types" => "recvtypes",
            other => other,
        }
    }

    /// The declarations of the parameters, with the names from `name` and these types for counts and displacements.
    fn declarations(
        &self,
        count: &str,
        displacement: &str,
        name: impl Fn(&'static str) -> &'static str,
    ) -> Vec<String> {
        let declared = |parameter: &&'static str| {
            let name = name(parameter);
            match *parameter {
                "send" => format!("const~void~*{name}"),
                "recv" | "buffer" => format!("void~*{name}"),
                "n" | "m" => format!("{count}~{name}"),
                "counts" | "to_counts" => format!("const~{count}~{name}[]"),
                "displs" | "to_displs" => format!("const~{displacement}~{name}[]"),
                "types" | "to_types" => format!("const~MPI_Datatype~{name}[]"),
                "type" | "to" => format!("MPI_Datatype~{name}"),
                "op" => "MPI_Op~op".to_owned(),
                "root" => "int~root".to_owned(),
                _ => "MPI_Comm~comm".to_owned(),
            }
        };
        self.parameters.iter().map(declared).collect()
    }

    /// The members of `struct call` from `send` to `root`.
    fn members(&self) -> String {
        let or = |name: &'static str, none: &'static str| if self.has(name) { name } else { none };
        let recv = if self.has("buffer") { "buffer" } else { or("recv", "NULL") };
        let (sent, received) = match self.is_movement {
            true => ([or("n", "0"), or("type", "NO_TYPE")], [or("m", "0"), or("to", "NO_TYPE")]),
            false => (["0", "NO_TYPE"], [or("n", "0"), or("type", "NO_TYPE")]),
        };
        let second = if self.lists == [true; 2] { "to_" } else { "" };
        let mut lists = Vec::new();
        for (side, prefix) in [("send", ""), ("recv", second)] {
            for list in ["counts", "displs", "types"] {
                let name = format!("{prefix}{list}");
                if self.lists[usize::from(side == "recv")] && self.has(&name) {
                    lists.push(format!(".{side}_{list}~=~{name}"));
                }
            }
        }
        let lists = match lists.is_empty() {
            true => "NULL".to_owned(),
            false => format!("LISTS(N, {})", lists.join(", ")),
        };
        let [sent, received] = [sent, received].map(|side| side.join(", "));
        let (send, op, root) = (or("send", "NULL"), or("op", "NO_OP"), or("root", "0"));
        format!("({send}, {sent}, {recv}, {received}, {lists}, {op}, {root})")
    }

    /// The call's row of `SIGNATURES`.
    fn signature(&self) -> String {
        let mut lines =
            vec![format!("X({}, {}, {},", self.title(), self.name, self.name.to_uppercase())];
        let declarations = format!("({}),", self.declarations("N", "D", |name| name).join(", "));
        let arguments = format!("({}),", self.parameters.join(", "));
        for part in [declarations, arguments, self.members() + ")"] {
            lines.extend(cut(&part, 90).into_iter().map(|line| format!("  {line}")));
        }
        lines.iter().map(|line| format!("    {line:<95}\\\n")).collect()
    }
}

/// MPI's collectives in the order of `enum collective`: first the collectives from the barrier to those with lists,
/// then the reductions of this kind, then the calls that hopbine does not serve.
pub fn calls() -> Vec<Call> {
    const ORDER: [&str; 16] = [
        "allreduce",
        "reduce",
        "reduce_scatter_block",
        "bcast",
        "allgather",
        "gather",
        "scatter",
        "alltoall",
        "barrier",
        "allgatherv",
        "gatherv",
        "scatterv",
        "alltoallv",
        "reduce_scatter",
        "scan",
        "exscan",
    ];
    let mut calls: Vec<Call> = rows().iter().map(Call::of).collect();
    calls.sort_by_key(|call| ORDER.iter().position(|name| *name == call.name).expect("is listed"));
    // MPI has `alltoallw`, hopbine's table does not.
    let mut each_of_its_type =
        rows().iter().map(Call::of).find(|call| call.name == "alltoallv").expect("a row");
    each_of_its_type.name = "alltoallw".to_owned();
    for parameter in &mut each_of_its_type.parameters {
        *parameter = match *parameter {
            "type" => "types",
            "to" => "to_types",
            other => other,
        };
    }
    calls.push(each_of_its_type);
    calls
}

/// The text of `capi/mpi/signatures.h`, from the table.
pub fn signatures() -> String {
    let calls = calls();
    let mut text = String::from(
        "/* MPI's collectives. Generated from src/comm/forms/table.rs: `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi\n \
         * --test generated` writes it. */\n\
         #ifndef HOPBINE_SIGNATURES_H\n#define HOPBINE_SIGNATURES_H\n\nenum collective {\n",
    );
    for call in &calls {
        if call.name == "alltoallw" {
            text += "    N_SERVED, /* From here on all go to MPI. */\n";
        }
        let value = if call.name == "alltoallw" { " = N_SERVED" } else { "" };
        writeln!(text, "    {}{value},", call.name.to_uppercase()).unwrap();
    }
    text += "    N_COLLECTIVES,\n};\n\n\
        /* The prototypes, once: SIGNATURES(X, N, D) calls\n *\n \
        *     X(Name, name, COLLECTIVE, (parameters), (arguments), (members of struct call, `send` to `root`))\n *\n \
        * for each, with counts of type N and displacements of type D: int and int, or MPI_Count and\n \
        * MPI_Aint for the forms whose names end in _c. */\n";
    let with_counts = |call: &&Call| call.name != "barrier";
    text += &format!("{:<99}\\\n", "#define SIGNATURES(X, N, D)");
    let signatures: String = calls.iter().filter(with_counts).map(Call::signature).collect();
    text += signatures.strip_suffix("\\\n").unwrap_or(&signatures).trim_end();
    text += "\n\n/* A barrier has no counts, and so no second form. */\n";
    text += &format!("{:<99}\\\n", "#define BARRIER_SIGNATURE(X)");
    let barrier: String =
        calls.iter().filter(|call| !with_counts(call)).map(Call::signature).collect();
    text += barrier.strip_suffix("\\\n").unwrap_or(&barrier).trim_end();
    text + "\n\n#endif\n"
}

/// The prototypes of one form, with `int` or with large counts.
fn prototypes(form: usize, is_large: bool) -> String {
    let mut text = String::new();
    let (count, displacement) = if is_large { ("MPI_Count", "MPI_Aint") } else { ("int", "int") };
    let mut calls = calls();
    // The barrier first.
    calls.sort_by_key(|call| call.name != "barrier");
    for call in calls.iter().filter(|call| !is_large || call.name != "barrier") {
        let named = |parameter| call.mpis_name(parameter);
        let mut parameters = call.declarations(count, displacement, named);
        if form == 2 {
            parameters.push("MPI_Info~info".to_owned());
        }
        if form > 0 {
            parameters.push("MPI_Request~*request".to_owned());
        }
        let suffix = if is_large { "_c" } else { "" };
        let line = format!("int HB_{}{suffix}({});", call.title_of(form), parameters.join(", "));
        text += &(cut(&line, 98).join("\n    ") + "\n");
    }
    text
}

pub fn header() -> String {
    let [blocking, nonblocking, persistent] = [0, 1, 2].map(|form| prototypes(form, false));
    let [large_blocking, large_nonblocking, large_persistent] =
        [0, 1, 2].map(|form| prototypes(form, true));
    format!(
        "/* MPI's collectives by hopbine: HB_Allreduce in place of MPI_Allreduce, and so on.
 *
 * Arguments, meaning and errors are MPI's. What hopbine does not serve (alltoallw,
 * intercommunicators, ...) MPI does; HOPBINE_REPORT=1 shows at the end what was served by what. hopbine
 * starts in MPI_Init, where this library is linked before MPI. With HOPBINE_START=call it starts with HB_Init,
 * or with the first blocking call on a communicator of all ranks; until then MPI serves everything. It ends with
 * MPI_Finalize. The library is built for one MPI: libhopbine_hb.so.
 *
 * Generated (capi/tests/generated/mpi.rs): `HOPBINE_TEST_BLESS=1 cargo test -p hopbine-capi --test generated`
 * writes it. */
#ifndef HOPBINE_MPI_H
#define HOPBINE_MPI_H

#include <hopbine.h>
#include <mpi.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

/* Starts hopbine, if it has not started yet; all ranks of MPI_COMM_WORLD call it, after MPI_Init. */
int HB_Init(void);

/* hopbine's communicator of the ranks of `comm`, for the calls of hopbine.h: hopbine_allreduce() and so on. All ranks of
 * the intracommunicator `comm` call it. It starts hopbine if that has not started, where `comm` has all ranks of
 * MPI_COMM_WORLD. hopbine_comm_free() frees the communicator, MPI_Finalize ends hopbine. Returns HOPBINE_SUCCESS or
 * another of hopbine.h's codes. */
int hopbine_comm_from_mpi(MPI_Comm comm, hopbine_comm_t *made);

{blocking}
/* Non-blocking: served where libhopbine_preload.so is loaded (LD_PRELOAD), which serves waiting for them; else
 * by MPI. */
{nonblocking}
/* Counts beyond 2^31. Over an MPI that has no such calls (before MPI 4), hopbine serves them alike; one that it
 * does not serve fails (MPI_ERR_COUNT) if it has a number that an int does not hold. */
{large_blocking}
{large_nonblocking}
/* Persistent: as non-blocking. Over an MPI without them, one that hopbine does not serve fails
 * (MPI_ERR_UNSUPPORTED_OPERATION). */
{persistent}{large_persistent}
#ifdef __cplusplus
}}
#endif

#endif
"
    )
}
