//! Reduces a failing run to a smaller run that still fails.

use std::fmt::Write;

use hopbine_torus::Shape;

use super::run_scenario;
use super::scenario::{SHAPES, Scenario, ScenarioLimits};
use crate::progress;

/// Maximum number of runs.
const MOST_RUNS: u64 = 600;
/// Wire seeds that are tried for each smaller run: with fewer calls, the same seed gives another order of events.
const WIRE_SEEDS: u64 = 12;

/// The smallest failing run found: the command that repeats it, and its events.
pub fn shrink(seed: u64, limits: &ScenarioLimits) -> String {
    let mut search = Search {
        seed,
        left: MOST_RUNS,
        bar: progress::bar_or_lines(MOST_RUNS, "making it smaller"),
    };
    let mut best = limits.clone();
    loop {
        let smaller = search.candidates(&best).into_iter().find_map(|limits| search.fails(&limits));
        match smaller {
            Some(limits) => best = limits,
            None => break,
        }
    }
    drop(search.bar);
    let scenario = Scenario::draw(seed, &best);
    let (run, wrong) = run_scenario(&scenario, true);
    let story = run.map_or_else(|_| String::new(), |run| super::story(&scenario, &run));
    let (again, wrong) = (command(seed, &best), super::listed(&wrong));
    format!("the smallest run found that is wrong:\n  {again}\n{wrong}{story}")
}

struct Search {
    seed: u64,
    left: u64,
    bar: progress::Bar,
}

impl Search {
    /// Returns the limits with a wire seed for which the run fails.
    fn fails(&mut self, limits: &ScenarioLimits) -> Option<ScenarioLimits> {
        let own = limits.wire_seed.unwrap_or(self.seed);
        for wire_seed in (own..).take(WIRE_SEEDS as usize) {
            self.left = self.left.checked_sub(1)?;
            self.bar.advance(1);
            let limits = ScenarioLimits { wire_seed: Some(wire_seed), ..limits.clone() };
            if !run_scenario(&Scenario::draw(self.seed, &limits), false).1.is_empty() {
                return Some(limits);
            }
        }
        None
    }

    /// Stricter limits, each a candidate for a smaller run.
    fn candidates(&self, limits: &ScenarioLimits) -> Vec<ScenarioLimits> {
        let scenario = Scenario::draw(self.seed, limits);
        let mut smaller = Vec::new();
        let steps: Vec<usize> = scenario.steps.iter().map(|(at, _)| *at).collect();
        for part in [steps.len() / 2, 1] {
            if part == 0 || steps.len() < 2 {
                continue;
            }
            for left_out in steps.chunks(part).rev() {
                let only = steps.iter().copied().filter(|at| !left_out.contains(at)).collect();
                smaller.push(ScenarioLimits { only: Some(only), ..limits.clone() });
            }
        }
        for text in SHAPES {
            let shape: Shape = text.parse().expect("a shape");
            if shape.n_ranks() < scenario.shape.n_ranks() {
                smaller.push(ScenarioLimits { shape: Some(shape), ..limits.clone() });
            }
        }
        let longest =
            scenario.steps.iter().flat_map(|(_, step)| &step.calls).map(|call| call.count).max();
        for most in [1, 8, 64, 512] {
            if longest.is_some_and(|longest| longest > most) {
                smaller.push(ScenarioLimits { most_elements: Some(most), ..limits.clone() });
            }
        }
        if scenario.fault.is_some() {
            smaller.push(ScenarioLimits { faults: Vec::new(), ..limits.clone() });
        }
        smaller
    }
}

/// The command that repeats a run.
fn command(seed: u64, limits: &ScenarioLimits) -> String {
    let ScenarioLimits { shape, only, most_elements, wire_seed, faults, wire } = limits;
    let mut text = format!("hopbine chaos --seeds {seed}");
    // Writing to a string cannot fail.
    let mut add =
        |option: &str, value: &dyn std::fmt::Display| _ = write!(text, " --{option} {value}");
    if *wire == hopbine::SimulatedWire::Utofu {
        add("backend", &"sim-utofu");
    }
    if let Some(shape) = shape {
        add("torus", shape);
    }
    if let Some(only) = only {
        let steps: Vec<String> = only.iter().map(usize::to_string).collect();
        add("only", &steps.join(","));
    }
    if let Some(most) = most_elements {
        add("most-elements", most);
    }
    if let Some(wire) = wire_seed {
        add("wire-seed", wire);
    }
    let names: Vec<String> = faults.iter().map(|kind| format!("{kind:?}").to_lowercase()).collect();
    add("faults", &if names.is_empty() { "none".to_owned() } else { names.join(",") });
    text + " --story"
}
