//! Finds where the decision tables of two ranks begin to differ.

use hopbine_meet::{BootstrapError, Exchange, Records};
use hopbine_torus::choose::{DecisionTable, TableProblem};

use crate::Rank;
use crate::error::Error;

/// The error that names the first rank whose table differs from that of rank 0, and the first line of both files
/// that differs, on all ranks. Collective; called only if some table differs. A table has thousands of rows and a
/// job 158,976 ranks, so the line is found by bisection, with one hash of each rank at a time. `path` is the table's
/// file, or its name.
///
/// # Errors
/// [`BootstrapError`].
pub(super) fn first_difference(
    exchange: &mut dyn Exchange,
    table: &DecisionTable,
    path: &str,
) -> Result<Error, BootstrapError> {
    let marks = table.marks();
    // A shorter table goes on with its last row.
    let mark = |at: usize| marks[at.min(marks.len() - 1)];
    let pair = |numbers: [u64; 2]| numbers.map(u64::to_le_bytes).concat();
    let mine = pair([table.fingerprint(), marks.len() as u64]);
    let all = exchange.allgather(&mine)?;
    let other = (0..all.len()).find(|&rank| number(&all, rank, 0) != number(&all, 0, 0));
    let other = other.unwrap_or(0);
    let differs = |all: &Records| number(all, other, 0) != number(all, 0, 0);
    let (mut first, mut end) = (0, number(&all, other, 1).max(number(&all, 0, 1)));
    while first + 1 < end {
        // Compares the hashes of all rows before the middle.
        let middle = first.midpoint(end);
        let (_, hash) = mark(middle as usize - 1);
        if differs(&exchange.allgather(&pair([hash, 0]))?) { end = middle } else { first = middle }
    }
    let (line, _) = mark(first as usize);
    let all = exchange.allgather(&[&pair([line.into(), 0])[..], path.as_bytes()].concat())?;
    let path_and_line = |rank: usize| {
        let path = all[rank].get(WORDS..).unwrap_or_default();
        (String::from_utf8_lossy(path).into_owned(), number(&all, rank, 0) as u32)
    };
    let ((table, line), (theirs, their_line)) = (path_and_line(other), path_and_line(0));
    let problem = TableProblem::Differs { rank: 0, table: theirs, line: their_line };
    Ok(Error::Tuning { rank: Some(other as Rank), table, source: Box::new(problem.at(line)) })
}

/// Bytes of two numbers.
const WORDS: usize = 16;

/// A number of a rank's record; 0 if the record is too short.
fn number(all: &Records, rank: usize, at: usize) -> u64 {
    let bytes = all[rank].get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hopbine_meet::LocalExchange;
    use hopbine_testing::ranks::ranks;

    use super::*;
    use crate::comm::choice::tuning::Tuning;

    #[test]
    fn all_ranks_name_the_first_line_that_differs() {
        let (_, text) = Tuning::BUILT_IN[1];
        let line_of = |text: &str, part: &str| {
            let before = &text[..text.find(part).unwrap_or_else(|| panic!("no {part}"))];
            1 + before.matches('\n').count()
        };
        let row = "{ bytes = \"128KiB..\"";
        let moved = "{ bytes = \"0..\"";
        assert!(text.matches(row).count() == 1 && text.matches(moved).count() > 2);
        // With a comment before it, and what follows changed as well.
        let longer = format!("# Mine.\n{text}").replace("\"128KiB", "\"256KiB");
        let longer = longer.replace("..128KiB\"", "..256KiB\"");
        let cut = &text[..text.rfind("[[rule]]").unwrap()];
        let last_row = cut.rfind("{ bytes").unwrap();
        for (mine, line, theirs) in [
            (text.replacen("name = \"memory\"", "name = \"mine\"", 1), 1, 1),
            (longer.clone(), line_of(&longer, "..256KiB\""), line_of(text, "..128KiB\"")),
            (
                cut.to_owned(),
                line_of(cut, &cut[last_row..]),
                text[..text.rfind("[[rule]]").unwrap()].matches('\n').count() + 1,
            ),
        ] {
            let group = LocalExchange::group(4, Duration::from_secs(20));
            let errors = ranks(group, |rank, mut exchange| {
                let own = if rank == 2 { &mine } else { text };
                let tuning: Tuning = own.parse().unwrap();
                first_difference(&mut exchange, tuning.table(), &format!("table-{rank}"))
                    .unwrap()
                    .to_string()
            });
            let expected = format!(
                "rank 2: decision table table-2, line {line}: from here on rank 0 has something else (table-0, \
                 line {theirs}); all ranks need the same table"
            );
            assert_eq!(errors, [&*expected; 4]);
        }
    }
}
