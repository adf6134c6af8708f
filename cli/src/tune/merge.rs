//! Rows of a decision table for one shape: those of a reference table, except for calls with a faster choice.

use std::fmt::Write as _;

use hopbine::Tuning;
use hopbine_torus::choose::{Features, Fit, Knowledge, Row, Rule, Segmentation, Template, Uses};
use hopbine_torus::{Collective, Shape, sizes};

use super::cover::half_way;

/// An algorithm, its number of ports, and the longest message in bytes.
pub type Choice<'a> = (&'a str, u32, u64);

/// Formats a size as in tables, such as 64KiB.
pub fn short(bytes: u64) -> String {
    sizes::show(bytes).replace(" B", "").replace(' ', "")
}

/// Largest exponent of the sizes, powers of two in bytes, for which rows are looked up.
const POWERS: u32 = 40;

/// The rules of a new table for one shape and number of ports: those of a reference table, except for calls for which
/// `faster`, by ascending size in bytes of all data of a rank, has a choice. `copies_all`: also rules without such
/// calls.
pub fn rules<'a>(
    (reference_table, copies_all): (&Tuning, bool),
    shape: &Shape,
    ports: u32,
    faster: impl Fn(Collective) -> Vec<(u64, Option<Choice<'a>>)>,
) -> String {
    let mut text = String::new();
    for collective in Collective::ALL {
        for knowledge in Knowledge::ALL.into_iter().filter(|known| known.is_of(collective)) {
            let mut calls = Vec::new();
            let mut sizes = String::new();
            match knowledge {
                Knowledge::Known => calls = faster(collective),
                _ => sizes = format!("sizes = \"{}\"\n", knowledge.name()),
            }
            if !copies_all && calls.iter().all(|(_, faster)| faster.is_none()) {
                continue;
            }
            if calls.is_empty() {
                calls.push((0, None));
            }
            let rule = reference_rule(reference_table, (collective, knowledge), shape, ports);
            let blocks = u64::from(collective.n_blocks(shape.n_ranks()));
            let (bytes, faster): (Vec<u64>, Vec<_>) = calls.into_iter().unzip();
            let rows = rows(&rule, blocks, &bytes, &faster);
            let _ = write!(
                text,
                "\n[[rule]]\ncollective = \"{collective}\"\n{sizes}class = \"{shape}\"\nports = {ports}\nrows = [\n{rows}]\n"
            );
        }
    }
    text
}

/// The rule of a table for calls on a shape. If the table chooses by its model, the result has the rows chosen at
/// each power of two. It contains only algorithms that support the shape.
fn reference_rule(
    reference_table: &Tuning,
    kind: (Collective, Knowledge),
    shape: &Shape,
    ports: u32,
) -> Rule {
    let (collective, of) = (kind.0, Features::of(shape));
    let find = |bytes: u64| reference_table.find(kind, (shape, &of), bytes, ports);
    let first = find(0);
    let mut rule = first.rule.clone();
    if first.fit == Fit::Fastest {
        // If the payload has blocks, `find` takes the size of a block.
        rule.is_of_block = true;
        let row = |power: u32| Row {
            line: 0,
            above: if power == 0 { 0 } else { 1 << (power - 1) },
            up_to: (power < POWERS).then(|| 1 << power),
            ..find(1 << power).row.clone()
        };
        rule.rows = (0..=POWERS).map(row).collect();
        rule.rows.dedup_by(|next, row| {
            let is_same = Row { above: row.above, up_to: row.up_to, ..next.clone() } == *row;
            if is_same {
                row.up_to = next.up_to;
            }
            is_same
        });
    }
    for row in &mut rule.rows {
        let mut used = ports;
        if let Uses::Only(only) = &mut row.ports {
            // More than the call has are no error only in a rule without a last number of ports.
            *only = ports.min(*only);
            used = *only;
        }
        let serves = |name: &Template| {
            name.on(collective, &of)
                .is_ok_and(|algorithm| algorithm.is_for(used) && algorithm.serves(shape).is_ok())
        };
        let served = row.candidates.on(collective, (shape, &of), used).name;
        row.candidates.if_unfolded.take_if(|name| !serves(name));
        row.candidates.first_of.retain(serves);
        if row.candidates.first_of.is_empty() {
            row.candidates.first_of.push(Template(served.into_owned()));
        }
    }
    rule
}

/// The rows of a rule for calls of these ascending sizes, in bytes of all data of a rank; the rows of `reference` may
/// count the bytes of one of `n_blocks` blocks. Between two sizes the choice changes at their geometric mean.
pub fn rows(
    reference: &Rule,
    n_blocks: u64,
    sizes: &[u64],
    faster: &[Option<Choice<'_>>],
) -> String {
    let mut text = String::new();
    let (mut at, mut above) = (0, 0);
    while at < sizes.len() {
        let end = at + faster[at..].iter().take_while(|other| **other == faster[at]).count();
        let up_to = (end < sizes.len()).then(|| half_way(sizes[end - 1], sizes[end]));
        match faster[at] {
            Some((algorithm, ports, segment_bytes)) => {
                let how = format!("algorithm = \"{algorithm}\", ports = {ports}");
                line(&mut text, (above, up_to), &how, &segment(Segmentation::bytes(segment_bytes)));
            }
            None => {
                let scale = if reference.is_of_block { n_blocks } else { 1 };
                for row in &reference.rows {
                    let from = row.above.saturating_mul(scale).max(above);
                    let to = row.up_to.map(|up_to| up_to.saturating_mul(scale));
                    let to = to.into_iter().chain(up_to).min();
                    if to.is_none_or(|to| to > from) {
                        line(&mut text, (from, to), &how(row), &segment(row.segment));
                    }
                }
            }
        }
        above = up_to.unwrap_or(above);
        at = end;
    }
    text
}

fn line(text: &mut String, (above, up_to): (u64, Option<u64>), how: &str, segment: &str) {
    let (above, up_to) = (short(above), up_to.map_or(String::new(), short));
    let _ = writeln!(text, "    {{ bytes = \"{above}..{up_to}\", {how}, segment = {segment} }},");
}

/// The contents of a row, without its sizes and segmentation.
fn how(row: &Row) -> String {
    let names: Vec<String> =
        row.candidates.first_of.iter().map(|name| format!("\"{name}\"")).collect();
    let unfolded = row.candidates.if_unfolded.as_ref();
    let unfolded = unfolded.map_or(String::new(), |name| format!("if_unfolded = \"{name}\", "));
    let ports = match row.ports {
        Uses::All => "\"all\"".to_owned(),
        Uses::AllAbove(bytes) => format!("{{ all_above = \"{}\" }}", short(bytes)),
        Uses::Only(used) => used.to_string(),
    };
    format!("{unfolded}algorithm = [{}], ports = {ports}", names.join(", "))
}

fn segment(segment: Segmentation) -> String {
    match segment {
        Segmentation::Whole => "\"whole\"".to_owned(),
        Segmentation::Parts { least: u64::MAX, .. } => "\"whole\"".to_owned(),
        Segmentation::Parts { parts: 1, least, most } if least == most => {
            format!("\"{}\"", short(most))
        }
        Segmentation::Parts { parts, least, most } => format!(
            "{{ parts = {parts}, least = \"{}\", most = \"{}\" }}",
            short(least),
            short(most)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's rules for calls whose sizes not all ranks know are copied like those for others.
    #[test]
    fn rules_for_unknown_sizes_are_copied() {
        let rule = |collective: &str, sizes: &str, rows: &str| {
            format!(
                "[[rule]]\ncollective = \"{collective}\"\n{sizes}class = \"any\"\nrows = [{rows}]\n"
            )
        };
        let mut mine = "version = 1\nname = \"mine\"\nwire = \"network\"\notherwise = \"network\"\n[class.any]\n"
            .to_owned();
        let row = |bytes: &str, algorithm: &str| {
            format!(
                "{{ bytes = \"{bytes}\", algorithm = \"{algorithm}\", ports = 6, segment = \"8KiB\" }},"
            )
        };
        mine += &rule("gather", "sizes = \"unknown\"\n", &row("0..", "direct"));
        mine += &rule("alltoall", "sizes = \"unknown\"\n", &row("0..", "bruck:3"));
        let learnt = row("0..64", "bruck:3") + &row("64..", "pairwise-nonblocking");
        mine += &rule("alltoall", "sizes = \"learnt\"\nbytes_of = \"block\"\n", &learnt);
        let mine: Tuning = mine.parse().unwrap();
        let shape: Shape = "4".parse().unwrap();
        let rules = rules((&mine, true), &shape, 2, |_| Vec::new());
        let text = format!(
            "version = 1\nname = \"t\"\nwire = \"network\"\notherwise = \"network\"\nnearest = false\n\
             [class.\"4\"]\nlike = [\"4\"]\n{rules}"
        );
        let copy: Tuning = text.parse().unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let of = Features::of(&shape);
        for collective in Collective::ALL {
            for knowledge in Knowledge::ALL.into_iter().filter(|known| known.is_of(collective)) {
                for bytes in [1, 64, 65, 1 << 20] {
                    let [new, old] = [&copy, &mine].map(|table| {
                        let found = table.find((collective, knowledge), (&shape, &of), bytes, 2);
                        let choice = found.on(collective, &shape, &of);
                        (choice.algorithm.name, choice.ports, choice.segment_bytes)
                    });
                    assert_eq!(new, old, "{collective} of {bytes}, {knowledge:?}:\n{text}");
                }
            }
        }
    }

    /// Rows without a faster choice agree with the reference table; rows with one contain it.
    #[test]
    fn rows_are_those_before_but_where_something_is_faster() {
        let sizes = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20];
        let fast = ("bruck", 2, 64 << 10);
        // With shape 3, table tofu-d chooses by its model.
        for (name, ranks) in [("network", 4), ("memory", 4), ("tofu-d", 4), ("tofu-d", 3)] {
            let shape: Shape = ranks.to_string().parse().unwrap();
            let reference_table = Tuning::named(name).unwrap();
            for collective in Collective::ALL {
                let blocks = u64::from(collective.n_blocks(ranks));
                let rule =
                    reference_rule(reference_table, (collective, Knowledge::Known), &shape, 2);
                let is_faster = collective == Collective::Allgather;
                let faster = [None, None, is_faster.then_some(fast), None, None];
                let rows = rows(&rule, blocks, &sizes, &faster);
                let wire = reference_table.table().wire().name();
                let text = format!(
                    "version = 1\nname = \"t\"\nwire = \"{wire}\"\notherwise = \"{name}\"\n[class.own]\n\
                     like = [\"{shape}\"]\n[[rule]]\ncollective = \"{collective}\"\nclass = \"own\"\nrows = [\n{rows}]\n"
                );
                let table: Tuning = text.parse().unwrap_or_else(|error| panic!("{error}:\n{text}"));
                for power in 3..32 {
                    let bytes = 1u64 << power;
                    let [new, old] = [&table, reference_table]
                        .map(|table| table.choose(collective, &shape, bytes / blocks, 2));
                    let chosen = |choice: &hopbine_torus::choose::Choice| {
                        (choice.algorithm.name.to_string(), choice.ports, choice.segment_bytes)
                    };
                    if is_faster && (8 << 10..=256 << 10).contains(&bytes) && bytes > 8 << 10 {
                        assert_eq!(chosen(&new), ("bruck".to_owned(), 2, 64 << 10), "{bytes}");
                    } else {
                        assert_eq!(
                            chosen(&new),
                            chosen(&old),
                            "{name}, {collective} of {bytes}: {text}"
                        );
                    }
                }
            }
        }
    }
}
