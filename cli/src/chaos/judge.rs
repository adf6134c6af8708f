//! Decides whether a run was correct.

use std::collections::HashMap;

use hopbine::{Error, Fault, Simulation};

use super::memory::RankResult;
use super::scenario::{FaultKind, InjectedFault, Scenario};
use crate::run::{Reference, verify};

/// Descriptions of the faults of a run; empty if the run was correct.
pub type Violations = Vec<String>;

/// Maximum number of faults that are reported.
const MOST: usize = 12;

/// Checks a run.
pub fn judge(scenario: &Scenario, run: &Result<Simulation<RankResult>, Error>) -> Violations {
    let run = match run {
        Ok(run) => run,
        Err(error) => return vec![format!("the run has failed: {error}")],
    };
    let mut wrong: Violations = run.violations.clone();
    for (rank, rank_result) in run.results.iter().enumerate() {
        if !rank_result.is_untouched() {
            wrong.push(format!("rank {rank}: a buffer was written after its call was over"));
        }
    }
    wrong.extend(wrong_results(run));
    for (rank, rank_result) in (0..).zip(&run.results) {
        for (step, error) in &rank_result.failures {
            if !run.dead.contains(&rank) && !is_expected(scenario, run, rank, *step, error) {
                wrong.push(format!("rank {rank}, step {step}: {error}"));
            }
        }
        let end = &run.ends[rank as usize];
        if let Err(error) = end
            && rank_result.failures.is_empty()
            && !run.dead.contains(&rank)
            && !is_expected(scenario, run, rank, usize::MAX, error)
        {
            wrong.push(format!("rank {rank}, at the end: {error}"));
        }
    }
    if is_undetected(scenario, run) {
        wrong.push("no rank has noticed that one made another call".to_owned());
    }
    wrong.truncate(MOST);
    wrong
}

/// Results that differ from the reference.
fn wrong_results(run: &Simulation<RankResult>) -> Violations {
    let mut wrong = Vec::new();
    // All ranks of a call share one reference.
    let mut references: HashMap<(usize, u64, u32), Reference> = HashMap::new();
    let living = (0..).zip(&run.results).filter(|(rank, _)| !run.dead.contains(rank));
    for (_, rank_result) in living {
        for done in &rank_result.done {
            let data = done.case.data;
            let key = (done.step, data.seed, data.n_ranks);
            let reference = references.entry(key).or_insert_with(|| Reference::new(done.case));
            if let Some(found) = verify(reference, done.rank, done.result()) {
                wrong.push(format!("step {}, {}: {found}", done.step, done.case.collective));
            }
        }
    }
    wrong
}

/// Whether the injected fault permits this error on this rank.
fn is_expected(
    scenario: &Scenario,
    run: &Simulation<RankResult>,
    rank: u32,
    step: usize,
    error: &Error,
) -> bool {
    let Some(InjectedFault { kind, victim, step: of_fault, .. }) = scenario.fault else {
        return false;
    };
    let error = match error {
        Error::Poisoned(reason) => reason,
        error => error,
    };
    match kind {
        FaultKind::Kill => run.dead.contains(&victim) && names(error, victim, false),
        // Other ranks may have given up in the meantime; the victim then learns of this from any of them.
        FaultKind::Stop | FaultKind::Late => {
            let gives_up = scenario.on_timeout == hopbine::OnTimeout::Fail;
            gives_up && (rank == victim || names(error, victim, false))
        }
        FaultKind::Mismatch => {
            let found = match error {
                Error::Lost { blame, .. } | Error::Timeout { cause: Some(blame), .. } => {
                    blame.fault
                }
                _ => Fault::Unreachable,
            };
            // If a call fails alone, the error names the rank from which the failing rank received data that depend
            // on the difference.
            let is_alone = scenario.fails_alone && found == Fault::Elsewhere && step == of_fault;
            // Barrier gates do not report which rank differs.
            let is_at_gates = matches!(error, Error::GatesMismatch { .. }) && step >= of_fault;
            // In a circle of waits, the error may name any of its ranks.
            names(error, victim, true) || is_alone || is_at_gates || found == Fault::Circle
        }
        FaultKind::Memory => rank == victim || names(error, victim, false),
    }
}

/// Whether an error names the victim as the cause or, if `or_by`, as the rank that found the cause.
fn names(error: &Error, victim: u32, or_by: bool) -> bool {
    match error {
        Error::Lost { blame, .. } | Error::Timeout { cause: Some(blame), .. } => {
            blame.rank == victim || or_by && blame.by == victim
        }
        Error::Wire { rank, source, .. } => source.peer == Some(victim) || or_by && *rank == victim,
        Error::Disagree { rank, peer, .. } => *peer == victim || or_by && *rank == victim,
        _ => false,
    }
}

/// Whether the call that differs has another operator, not another collective.
fn differs_in_operator(scenario: &Scenario) -> bool {
    let Some(call) = differing(scenario) else { return false };
    call.collective.is_reduction() && !call.dtype.is_complex()
}

fn differing(scenario: &Scenario) -> Option<&super::scenario::ScenarioCall> {
    let fault = scenario.fault.filter(|fault| fault.kind == FaultKind::Mismatch)?;
    let (_, step) = scenario.steps.iter().find(|(at, _)| *at == fault.step)?;
    step.calls.first()
}

/// Whether no rank has detected a call with another operator, although its ranks exchange data.
fn is_undetected(scenario: &Scenario, run: &Simulation<RankResult>) -> bool {
    let Some(call) = differing(scenario) else { return false };
    let n_ranks = scenario.shape.n_ranks();
    let is_shared = call.comm == 0 && n_ranks > 1;
    let fails = run.results.iter().any(|rank_result| !rank_result.failures.is_empty())
        || run.ends.iter().any(Result::is_err);
    is_shared && differs_in_operator(scenario) && call.count > 0 && call.counts.is_none() && !fails
}
