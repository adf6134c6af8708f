//! Broken plans, one text file each: the plans of all ranks and, after `# expect:`, words of the violation that the
//! check must find. To add a case, add a file.

use std::collections::BTreeSet;
use std::path::Path;

use std::num::NonZeroU32;
use std::sync::Arc;

use hopbine_torus::collectives::Action;
use hopbine_torus::plan::{
    BlockOrder, BlockPermutation, Expect, Flow, InconsistentPlans, Lane, LaneHeader, Listed, Part,
    Plan, PlanFault, Space, Step, Tile, Violation, Visit, check,
};
use hopbine_torus::{Block, Collective, LaneId, PortId, Position, Rank, Request, StepId, registry};

/// The plans of a file, each of which begins with a `plan` line.
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
        Err(InconsistentPlans { rank, what, .. }) => {
            let fault = PlanFault::Inconsistent { what };
            vec![Violation { rank, lane: None, step: None, position: None, fault }]
        }
    }
}

/// The name of the fault's variant, such as `UnmatchedSend` or `Local(Bounds`.
fn kind(fault: &PlanFault) -> String {
    let debug = format!("{fault:?}");
    let end = debug.find([' ', '{']).unwrap_or(debug.len());
    debug[..end].trim_end_matches(')').to_owned()
}

/// All faults that plans from files can have. `Volume` needs a promise, and `DifferentFlow` a flow that is no
/// listing.
const KINDS: [&str; 28] = [
    "BelowMinimum",
    "CountedTwice",
    "DifferentOrder",
    "DifferentPorts",
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
    "Local(Port",
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

/// Lanes that share a space of 2^32 - 1 positions are checked by their runs: a table of positions would need 34 GB.
#[test]
fn lanes_of_a_vast_space_are_checked() {
    let lane = |port: u32, runs: &str| {
        format!(
            "lane port {port}, part 0 of 1, 4294967295 positions of vector\nstep copy\n  send to 1: {runs}\n"
        )
    };
    let plan = |runs: [&str; 2]| {
        let header = "plan bcast\nrank 0 of 2\nroot 0\n";
        let text = format!("{header}{}{}", lane(0, runs[0]), lane(1, runs[1]));
        text.parse::<Plan>().unwrap()
    };
    assert_eq!(plan(["0..5 9..4294967295", "5..9"]).validate(), Ok(()));
    for runs in [["0..6 9..4294967295", "5..9"], ["5..9", "0..6 9..4294967295"]] {
        let found = plan(runs).validate().unwrap_err();
        let [defect] = &found[..] else { panic!("{found:?}") };
        let expected = "lane 1 step 0: position 5 is touched by lane 0, too";
        assert!(defect.to_string().starts_with(expected), "{defect}");
    }
}

/// A flow whose executed plans differ from its listed plans.
struct Other {
    executed: Listed,
    listed: Vec<Plan>,
    /// Positions of each lane that are executed.
    n_positions: u32,
}

impl Flow for Other {
    fn collective(&self) -> Collective {
        self.executed.collective()
    }

    fn n_ranks(&self) -> u32 {
        self.executed.n_ranks()
    }

    fn root(&self) -> Rank {
        self.executed.root()
    }

    fn lanes(&self) -> &[LaneHeader] {
        self.executed.lanes()
    }

    fn space(&self, lane: LaneId, rank: Rank) -> &Space {
        self.executed.space(lane, rank)
    }

    fn port(&self, lane: LaneId, step: StepId, from: Rank, to: Rank) -> PortId {
        self.executed.port(lane, step, from, to)
    }

    fn action(&self, lane: LaneId, step: StepId, rank: Rank) -> Action {
        self.executed.action(lane, step, rank)
    }

    fn own_at(&self, lane: LaneId, step: StepId, rank: Rank) -> u32 {
        self.executed.own_at(lane, step, rank)
    }

    fn tiles(&self, lane: LaneId, most: u32) -> Vec<Tile> {
        let n_positions = self.lanes()[lane.index()].space.n_positions.min(self.n_positions);
        Tile::ranges(n_positions, most)
    }

    fn messages(&self, lane: LaneId, step: StepId, tile: &Tile, visit: Visit<'_>) {
        self.executed.messages(lane, step, tile, visit);
    }

    fn plan(&self, rank: Rank) -> Plan {
        self.listed[rank.index()].clone()
    }
}

/// The check compares the executed flow with the plans in everything that the engine reads from plans.
#[test]
fn a_flow_executes_its_plans() {
    type Change = fn(&mut Plan);
    let cases: [(&str, &str, &str, Change); 13] = [
        ("gather linear", "root", "collective, ranks or root", |plan| plan.root = Rank(1)),
        ("allreduce mixed", "a lane more", "the number of lanes", |plan| {
            plan.lanes.push(Lane { steps: Vec::new(), ..plan.lanes[0].clone() });
        }),
        ("allreduce mixed", "port", "port, part or window", |plan| plan.lanes[0].port = PortId(3)),
        ("allreduce mixed", "part", "port, part or window", |plan| {
            plan.lanes[0].part = Part::equal(1, 2);
            plan.lanes[1].part = Part::equal(0, 2);
        }),
        ("allreduce mixed", "window", "port, part or window", |plan| {
            plan.lanes[1].window = NonZeroU32::new(1);
        }),
        ("allgather mixed", "space", "positions or the order of their blocks", |plan| {
            let Space { payload, n_positions, .. } = *plan.lanes[0].space;
            let blocks = Position::first(n_positions).map(|at| Block(n_positions - 1 - at.0));
            let order = BlockPermutation::new(blocks.collect()).expect("a permutation");
            let order = BlockOrder::Listed(Arc::new(order));
            plan.lanes[0].space = Arc::new(Space { payload, n_positions, order });
        }),
        ("allreduce mixed", "a step more", "the number of steps", |plan| {
            plan.lanes[0].steps.push(Step::default());
        }),
        ("allreduce mixed", "a step less", "the number of steps", |plan| {
            plan.lanes[1].steps.pop();
        }),
        ("allreduce mixed", "action", "the action", |plan| {
            plan.lanes[1].steps[0].action = Action::Copy;
        }),
        ("allreduce direct-l", "own operand", "the own operand's place", |plan| {
            plan.lanes[0].steps[0].own_at = (plan.lanes[0].steps[0].own_at + 1) % 3;
        }),
        ("allreduce direct-l", "receives", "its messages or their order", |plan| {
            plan.lanes[0].steps[0].recvs.reverse();
        }),
        ("allreduce mixed", "port of a message", "the port of a message", |plan| {
            let Lane { port, steps, .. } = &mut plan.lanes[1];
            steps[0].sends[0].port = PortId(port.0 - 1);
        }),
        ("allreduce mixed", "runs", "its messages or their order", |plan| {
            let steps = &mut plan.lanes[0].steps;
            let first = &mut steps[0];
            for transfer in first.sends.iter_mut().chain(&mut first.recvs) {
                transfer.runs[0].start ^= 2;
            }
        }),
    ];
    for (algorithm, name, expected, change) in cases {
        let (collective, family) = algorithm.split_once(' ').unwrap();
        let algorithm = registry::find(collective.parse().unwrap(), family).unwrap();
        let shape = if family == "direct-l" { "3" } else { "4" };
        let request = Request {
            shape: shape.parse().unwrap(),
            map: Default::default(),
            root: Rank(0),
            ports: Some(2),
        };
        let expansion = algorithm.schedule(&request).unwrap().expand().unwrap();
        let plans: Vec<Plan> =
            Rank::first(expansion.n_ranks()).map(|rank| expansion.plan(rank)).collect();
        let mut listed = plans.clone();
        listed.iter_mut().for_each(change);
        assert_ne!(listed, plans, "{name}");
        let executed = Listed::new(plans).unwrap();
        let found = check(&Other { executed, listed, n_positions: u32::MAX }, Expect::default());
        let fault = |what| PlanFault::DifferentFlow { what };
        let is_found = found.iter().any(|violation| violation.fault == fault(expected));
        let all: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert!(is_found, "{name}: `{expected}` is not among\n{}", all.join("\n"));
    }
}

/// Of two positions only the first is executed; the second is not touched.
#[test]
fn all_positions_are_executed() {
    let plan = |rank: u32| -> Plan {
        let other = 1 - rank;
        let transfers = format!("  send to {other}: 0..1\n  recv from {other}: 0..1\n");
        let text = format!(
            "plan allreduce\nrank {rank} of 2\nroot 0\n\
             lane port 0, part 0 of 1, 2 positions of vector\n\
             step reduce own {rank}\n{transfers}step copy\n{transfers}"
        );
        text.parse().unwrap()
    };
    let listed = vec![plan(0), plan(1)];
    let executed = Listed::new(listed.clone()).unwrap();
    let found = check(&Other { executed, listed, n_positions: 1 }, Expect::default());
    let faults: Vec<&PlanFault> = found.iter().map(|violation| &violation.fault).collect();
    let what = "the positions that its tiles cover";
    assert_eq!(faults, [&PlanFault::DifferentFlow { what }]);
}
