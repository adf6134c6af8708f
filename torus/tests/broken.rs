//! Broken plans, one text file each: the plans of all ranks, and after `# expect:` words of the
//! violation that must be found. Adding a case is adding a file.

use std::collections::BTreeSet;
use std::path::Path;

use hopbine_torus::plan::{Expect, Fault, Listed, Mixed, Plan, Violation, check};

/// The plans of a file, which begin with `plan` lines.
fn plans(text: &str) -> Vec<Plan> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with("plan ") {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    parts.iter().map(|part| part.parse().unwrap_or_else(|e| panic!("{e} in\n{part}"))).collect()
}

fn violations(plans: Vec<Plan>) -> Vec<Violation> {
    match Listed::new(plans) {
        Ok(listed) => check(&listed, Expect::default()),
        Err(Mixed { rank, what }) => {
            let fault = Fault::Inconsistent { what };
            vec![Violation { rank, lane: None, step: None, position: None, fault }]
        }
    }
}

/// The name of the variant: `UnmatchedSend`, or `Local(Bounds`.
fn kind(fault: &Fault) -> String {
    let debug = format!("{fault:?}");
    let end = debug.find([' ', '{']).unwrap_or(debug.len());
    debug[..end].trim_end_matches(')').to_owned()
}

/// All that can be wrong with plans from files; `Volume` needs a promise, `DifferentFlow` a
/// flow that is no listing.
const KINDS: [&str; 26] = [
    "BelowMinimum",
    "CountedTwice",
    "DifferentOrder",
    "DifferentRuns",
    "Inconsistent",
    "Local(Bounds",
    "Local(MissingPart",
    "Local(NoBlocks",
    "Local(NoRoom",
    "Local(NoRoot",
    "Local(NoSuchRank",
    "Local(NotAReduction",
    "Local(Order",
    "Local(Overlap",
    "Local(OwnAt",
    "Local(Part",
    "Local(Peer",
    "Local(PeerTwice",
    "Local(Shared",
    "Local(Space",
    "Local(Spaces",
    "Overwritten",
    "SentEmpty",
    "UnmatchedRecv",
    "UnmatchedSend",
    "WrongResult",
];

#[test]
fn every_broken_plan_is_found_out() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut met = BTreeSet::new();
    let mut n_files = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let found = violations(plans(&text));
        let expected: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# expect: ")).collect();
        assert!(!expected.is_empty(), "{}: no `# expect:` line", path.display());
        for words in expected {
            let hit = found.iter().find(|violation| violation.to_string().contains(words));
            let all: Vec<String> = found.iter().map(Violation::to_string).collect();
            let hit = hit.unwrap_or_else(|| {
                panic!("{}: `{words}` is not among\n{}", path.display(), all.join("\n"))
            });
            met.insert(kind(&hit.fault));
        }
        n_files += 1;
    }
    println!("{n_files} broken plans, {} kinds of faults", met.len());
    let missing: Vec<_> = KINDS.iter().filter(|kind| !met.contains(**kind)).collect();
    assert!(missing.is_empty(), "no broken plan for {missing:?}");
}
