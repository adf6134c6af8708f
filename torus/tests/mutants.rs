//! Mutants: valid plans, corrupted at random. The checker must reject every mutant with a different effect. A
//! mutant that it accepts is executed with numbers, by code that shares nothing with the checker, and must give the
//! right results.

use std::collections::{BTreeMap, HashMap};

use hopbine_torus::collectives::{Action, Payload, Share, Sums};
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{
    Expect, Flow, Listed, Plan, Run, Space, Step, Transfer, check, max_ports,
};
use hopbine_torus::{Position, Rank, Request, registry};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Random numbers, the same in every run.
struct Dice(SmallRng);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// A random index of a list; `None` if the list is empty.
    fn index<T>(&mut self, list: &[T]) -> Option<usize> {
        (!list.is_empty()).then(|| self.below(list.len()))
    }
}

const SHAPES: [&str; 9] = ["2", "3", "5", "8", "2x3", "4x2", "3x3", "2x2x2", "2x2+3"];

fn plans(dice: &mut Dice) -> Vec<Plan> {
    loop {
        let all = registry::all();
        let algorithm = &all[dice.below(all.len())];
        let shape: Shape = SHAPES[dice.below(SHAPES.len())].parse().unwrap();
        let n = shape.n_ranks();
        let root = if algorithm.collective.is_rooted() { dice.below(n as usize) as u32 } else { 0 };
        let ports = Some(1 + dice.below(max_ports(&shape) as usize) as u32);
        let request = Request { shape, map: RankMap::RowMajor, root: Rank(root), ports };
        if let Ok(schedule) = algorithm.schedule(&request) {
            let expansion = schedule.expand().unwrap();
            return Rank::first(n).map(|rank| expansion.plan(rank)).collect();
        }
    }
}

/// The kinds of corruption.
const WAYS: [&str; 17] = [
    "drop a message",
    "drop a send",
    "drop a receive",
    "drop a lane",
    "empty a step",
    "duplicate a step",
    "redirect a send and its receive",
    "redirect a send",
    "change the port of a send",
    "swap two steps",
    "swap two steps on one rank",
    "shift a message",
    "shift a send",
    "truncate a message",
    "change an action",
    "change the own operand's place",
    "swap two blocks",
];

/// A random step with a send, or `None` after 50 attempts: (rank, lane, step, send).
fn pick(dice: &mut Dice, plans: &[Plan]) -> Option<(usize, usize, usize, usize)> {
    (0..50).find_map(|_| {
        let rank = dice.index(plans)?;
        let lane = dice.index(&plans[rank].lanes)?;
        let step = dice.index(&plans[rank].lanes[lane].steps)?;
        let send = dice.index(&plans[rank].lanes[lane].steps[step].sends)?;
        Some((rank, lane, step, send))
    })
}

fn step_of(plans: &mut [Plan], rank: Rank, lane: usize, step: usize) -> &mut Step {
    &mut plans[rank.index()].lanes[lane].steps[step]
}

/// Changes both ends of a message.
fn change_both(
    plans: &mut [Plan],
    (rank, lane, step, send): (usize, usize, usize, usize),
    change: impl Fn(&mut Transfer),
) {
    let from = Rank(rank as u32);
    let to = plans[rank].lanes[lane].steps[step].sends[send].peer;
    change(&mut step_of(plans, from, lane, step).sends[send]);
    let recvs = &mut step_of(plans, to, lane, step).recvs;
    recvs.iter_mut().filter(|recv| recv.peer == from).for_each(change);
}

/// Corrupts the plans in one way; `None` if the plans do not allow it.
fn mutate(dice: &mut Dice, way: &str, plans: &mut [Plan]) -> Option<()> {
    let n_ranks = plans.len();
    let at @ (rank, lane, step, send) = pick(dice, plans)?;
    let from = Rank(rank as u32);
    let to = plans[rank].lanes[lane].steps[step].sends[send].peer;
    let n_positions = plans[rank].lanes[lane].space.n_positions;
    let other = Rank(dice.below(n_ranks) as u32);
    let shift = |transfer: &mut Transfer| {
        let run = &mut transfer.runs[0];
        run.start = if run.start > 0 { run.start - 1 } else { run.start + 1 };
    };
    match way {
        "drop a message" => {
            step_of(plans, from, lane, step).sends.remove(send);
            step_of(plans, to, lane, step).recvs.retain(|recv| recv.peer != from);
        }
        "drop a send" => drop(step_of(plans, from, lane, step).sends.remove(send)),
        "drop a receive" => {
            step_of(plans, to, lane, step).recvs.retain(|recv| recv.peer != from);
        }
        "drop a lane" => plans.iter_mut().for_each(|plan| drop(plan.lanes.remove(lane))),
        "empty a step" => plans.iter_mut().for_each(|plan| {
            let step = &mut plan.lanes[lane].steps[step];
            step.sends.clear();
            step.recvs.clear();
        }),
        "duplicate a step" => plans.iter_mut().for_each(|plan| {
            let steps = &mut plan.lanes[lane].steps;
            steps.insert(step, steps[step].clone());
        }),
        "redirect a send and its receive" => {
            let transfer = step_of(plans, from, lane, step).sends.remove(send);
            step_of(plans, to, lane, step).recvs.retain(|recv| recv.peer != from);
            let redirected = Transfer { peer: other, ..transfer.clone() };
            step_of(plans, from, lane, step).sends.insert(send, redirected);
            let received = Transfer { peer: from, ..transfer };
            step_of(plans, other, lane, step).recvs.push(received);
        }
        "redirect a send" => step_of(plans, from, lane, step).sends[send].peer = other,
        "change the port of a send" => {
            step_of(plans, from, lane, step).sends[send].port.0 += 1;
        }
        "swap two steps" | "swap two steps on one rank" => {
            let second = dice.below(plans[rank].lanes[lane].steps.len());
            let all = way == "swap two steps";
            let swapped = plans.iter_mut().filter(|plan| all || plan.rank == from);
            swapped.for_each(|plan| plan.lanes[lane].steps.swap(step, second));
        }
        "shift a message" => change_both(plans, at, shift),
        "shift a send" => shift(&mut step_of(plans, from, lane, step).sends[send]),
        "truncate a message" => {
            if plans[rank].lanes[lane].steps[step].sends[send].runs[0].len < 2 {
                return None;
            }
            change_both(plans, at, |transfer| transfer.runs[0].len -= 1);
        }
        "change an action" => {
            let action = &mut step_of(plans, to, lane, step).action;
            *action = if *action == Action::Copy { Action::Reduce } else { Action::Copy };
        }
        "change the own operand's place" => {
            let step = step_of(plans, to, lane, step);
            let n_places = step.recvs.len() as u32 + 2;
            step.own_at = (step.own_at + 1 + dice.below(n_places as usize - 1) as u32) % n_places;
        }
        "swap two blocks" => {
            let (a, b) = (dice.below(n_positions as usize), dice.below(n_positions as usize));
            let swap = |run: &mut Run| {
                if run.len == 1 {
                    run.start = match run.start as usize {
                        start if start == a => b as u32,
                        start if start == b => a as u32,
                        _ => run.start,
                    };
                }
            };
            change_both(plans, at, |transfer| transfer.runs.iter_mut().for_each(swap));
        }
        _ => unreachable!("no such way"),
    }
    Some(())
}

/// The input of `rank` at a position of the whole vector, or at each of its blocks, in part `part`.
fn given(rank: Rank, block: u32, part: u32) -> u64 {
    let number = u64::from(rank.0) << 40 | u64::from(block) << 20 | u64::from(part);
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// The contents of a position, as numbers.
#[derive(Clone, Copy)]
struct Held {
    sum: u64,
    /// The result of an operator that identifies the whole expression.
    expression: u64,
    /// A function x -> a x + b: composition is an associative operator that identifies the order of its operands.
    function: (u64, u64),
    /// The set of ranks that have contributed.
    heard: u64,
}

impl Held {
    /// The contribution of one rank.
    fn of(value: u64, rank: Rank) -> Self {
        let function = (value | 1, value.rotate_left(17));
        Held { sum: value, expression: value, function, heard: 1 << rank.0 }
    }

    fn combined(self, other: Held) -> Held {
        let mixed = (self.expression ^ (self.expression >> 31)).wrapping_mul(0x2545_f491_4f6c_dd1d);
        let ((a, b), (c, d)) = (self.function, other.function);
        Held {
            sum: self.sum.wrapping_add(other.sum),
            expression: mixed.wrapping_add(other.expression),
            function: (a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)),
            heard: self.heard | other.heard,
        }
    }
}

/// Executes plans step by step with numbers. Returns true if every rank ends with the result that the collective
/// defines.
fn gives_the_right_results(plans: &[Plan]) -> bool {
    let (collective, root) = (plans[0].collective, plans[0].root);
    let mut state: HashMap<(Rank, u32, u32), Held> = HashMap::new();
    let space = |rank: Rank, part: u32| -> &Space {
        let lanes = &plans[rank.index()].lanes;
        &lanes.iter().find(|lane| lane.part.start == part).expect("the checker saw all parts").space
    };
    let parts = plans[0].lanes[0].part.units;
    let content = |rank: Rank, part: u32, position: u32| {
        let block = space(rank, part).block_at_start(rank, Position(position)).unwrap().0;
        given(rank, block, part)
    };
    for plan in plans {
        for part in 0..parts {
            for position in space(plan.rank, part)
                .positions(collective.gives(plan.rank, root, plan.n_ranks), plan.rank, false)
                .into_iter()
                .flatten()
            {
                let value = content(plan.rank, part, position);
                state.insert((plan.rank, part, position), Held::of(value, plan.rank));
            }
        }
    }
    let n_steps = plans.iter().map(Plan::n_steps).max().unwrap_or(0);
    for step in 0..n_steps {
        for lane in 0..plans[0].lanes.len() {
            let part = plans[0].lanes[lane].part.start;
            let before = state.clone();
            for plan in plans {
                let Some(own) = plan.lanes[lane].steps.get(step) else { continue };
                let mut operands: BTreeMap<u32, Vec<Held>> = BTreeMap::new();
                for recv in &own.recvs {
                    for run in &recv.runs {
                        for position in run.start..run.end() {
                            let Some(value) = before.get(&(recv.peer, part, position)) else {
                                return false;
                            };
                            operands.entry(position).or_default().push(*value);
                        }
                    }
                }
                for (position, mut values) in operands {
                    let key = (plan.rank, part, position);
                    if own.action == Action::Reduce {
                        let Some(value) = before.get(&key) else { return false };
                        values.insert(own.own_at as usize, *value);
                    }
                    let folded = values.into_iter().reduce(Held::combined);
                    state.insert(key, folded.expect("something was received"));
                }
            }
        }
    }
    let all = || Rank::first(plans.len() as u32);
    let mut seen: HashMap<(u32, u32), u64> = HashMap::new();
    for rank in all() {
        for part in 0..parts {
            let own = space(rank, part);
            let gets = collective.gets(rank, root, plans.len() as u32);
            for position in own.positions(gets, rank, true).into_iter().flatten() {
                let block = own.block_at_end(rank, Position(position)).unwrap();
                let want = if collective.is_reduction() {
                    let end = collective.contributors(rank, plans.len() as u32);
                    let some = all().filter(|from| from.0 < end);
                    some.map(|from| content(from, part, position)).fold(0, u64::wrapping_add)
                } else if own.payload == Payload::Pairs {
                    given(Rank(block.0), rank.0, part)
                } else if collective.gives(Rank(0), Rank(1), 2) == Share::Own {
                    given(Rank(block.0), block.0, part)
                } else {
                    content(root, part, position)
                };
                let Some(&Held { sum, expression, function, heard }) =
                    state.get(&(rank, part, position))
                else {
                    return false;
                };
                let is_same = *seen.entry((part, position)).or_insert(expression) == expression;
                if own.payload == Payload::Token {
                    // A rank that has heard of all ranks may leave; it may have heard of some ranks twice.
                    if heard.count_ones() as usize != plans.len() {
                        return false;
                    }
                    continue;
                }
                if sum != want || collective.gets_copies() && !is_same {
                    return false;
                }
                // A scan combines the ranks in rank order.
                if collective.sums() != Sums::Everyone {
                    let end = collective.contributors(rank, plans.len() as u32);
                    let some = all().filter(|from| from.0 < end);
                    let in_order = some
                        .map(|from| Held::of(content(from, part, position), from))
                        .reduce(Held::combined);
                    if in_order.map(|held| held.function) != Some(function) {
                        return false;
                    }
                }
            }
        }
    }
    true
}

#[test]
fn accepted_mutants_do_the_same() {
    let mut dice = Dice(SmallRng::seed_from_u64(7));
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for round in 0..6000 {
        let mut plans = plans(&mut dice);
        let original = plans.clone();
        let way = WAYS[round % WAYS.len()];
        if mutate(&mut dice, way, &mut plans).is_none() || plans == original {
            continue;
        }
        let text = || plans.iter().map(Plan::to_string).collect::<Vec<_>>().join("\n");
        let is_accepted = match Listed::new(plans.clone()) {
            Ok(listed) => check(&listed, Expect::default()).is_empty(),
            Err(_) => false,
        };
        let (rejected, accepted) = counts.entry(way).or_default();
        if is_accepted {
            *accepted += 1;
            assert!(gives_the_right_results(&plans), "{way}: accepted\n{}", text());
        } else {
            *rejected += 1;
        }
    }
    let mut total = (0, 0);
    for (way, (rejected, accepted)) in &counts {
        println!("{way}: {rejected} rejected, {accepted} do the same");
        total = (total.0 + rejected, total.1 + accepted);
    }
    println!("{} mutants rejected, {} do the same", total.0, total.1);
    assert!(total.0 > 5 * total.1, "most mutants are no equivalents: {counts:?}");
    assert_eq!(counts.len(), WAYS.len(), "every way was taken: {counts:?}");
}

/// Tests the oracle itself: valid plans give right results.
#[test]
fn valid_plans_give_the_right_results() {
    let mut dice = Dice(SmallRng::seed_from_u64(7));
    for _ in 0..300 {
        let plans = plans(&mut dice);
        assert!(gives_the_right_results(&plans), "{}", plans[0]);
    }
}
