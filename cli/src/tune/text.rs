//! Decision tables as text, from predictions.

use std::fmt::Write as _;

use hopbine_torus::choose::{Features, Knowledge};
use hopbine_torus::sim::Machine;
use hopbine_torus::{Shape, sizes};

use super::merge::{self, short};
use super::{Args, SizeInterval, Tuned, fallback_table, segment};
use crate::simulate::file::quoted;

/// The text of a table, with the comment `summary` at its head.
pub fn table(name: &str, args: &Args, machine: &Machine, tuned: &[Tuned], summary: &str) -> String {
    let sizes: Vec<u64> = super::all_sizes(args).collect();
    let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
    let mut text = format!(
        "# A decision table of hopbine, for HOPBINE_TUNING=FILE.\n\
         #\n\
         # Predicted, not measured, by `hopbine tune`: machine {} of the network model, profile hopbine, repeated calls,\n\
         # {} sizes from {} to {} of all data of a rank. Between two sizes the choice changes half-way, and only to an\n\
         # algorithm that takes over 2 % less time.\n\
         #\n",
        machine.name.escape_debug(),
        sizes.len(),
        sizes::show(first),
        sizes::show(last),
    );
    for line in summary.lines() {
        let _ = writeln!(text, "# {line}");
    }
    let _ = write!(
        text,
        "\nversion = 1\nname = {}\nwire = \"network\"\n\
         # For calls in which not all ranks know the sizes, and for collectives that were not tuned\n\
         otherwise = \"{}\"\n",
        quoted(name),
        fallback_table().table().name()
    );
    let mut classes: Vec<&Shape> = Vec::new();
    for Tuned { shape, .. } in tuned {
        if !classes.contains(&shape) {
            classes.push(shape);
            let _ = write!(text, "\n[class.\"{shape}\"]\nlike = [\"{shape}\"]\n");
        }
    }
    for of in tuned {
        rules(&mut text, of);
    }
    text
}

/// A rule for each number of ports, or for consecutive numbers with the same rows.
fn rules(text: &mut String, Tuned { collective, shape, by_ports }: &Tuned) {
    let of = Features::of(shape);
    let rows_of = |(ports, intervals): &(u32, Option<Vec<SizeInterval>>)| match intervals {
        Some(intervals) => (*ports, rows(intervals)),
        None => {
            let kind = (*collective, Knowledge::Known);
            let rule = fallback_table().find(kind, (shape, &of), 0, *ports).rule;
            let blocks = u64::from(collective.n_blocks(shape.n_ranks()));
            (*ports, merge::rows(rule, blocks, &[0], &[None]))
        }
    };
    let by_ports: Vec<(u32, String)> = by_ports.iter().map(rows_of).collect();
    let mut at = 0;
    while at < by_ports.len() {
        let (first, rows) = &by_ports[at];
        let same = by_ports[at..].iter().take_while(|(_, other)| other == rows).count();
        let last = by_ports[at + same - 1].0;
        // The last rule also covers more ports than were predicted.
        let ports = match (first, at + same == by_ports.len()) {
            (first, true) => format!("\"{first}..\""),
            (first, false) if *first == last => first.to_string(),
            (first, false) => format!("\"{first}..{last}\""),
        };
        let _ = write!(
            text,
            "\n[[rule]]\ncollective = \"{collective}\"\nclass = \"{shape}\"\nports = {ports}\nrows = [\n{rows}]\n"
        );
        at += same;
    }
}

fn rows(intervals: &[SizeInterval]) -> String {
    let row = |interval: &SizeInterval| {
        let up_to = interval.up_to.map_or(String::new(), short);
        let algorithm = match interval.algorithm == interval.everywhere {
            true => format!("\"{}\"", interval.algorithm),
            false => format!("[\"{}\", \"{}\"]", interval.algorithm, interval.everywhere),
        };
        let SizeInterval { above, ports, .. } = interval;
        let (above, segment) = (short(*above), short(segment(interval)));
        format!(
            "    {{ bytes = \"{above}..{up_to}\", algorithm = {algorithm}, ports = {ports}, segment = \"{segment}\" }},\n"
        )
    };
    intervals.iter().map(row).collect()
}
