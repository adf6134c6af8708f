//! The program of one rank in a run.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

use hopbine::reduce::Op;
use hopbine::{Blocks, CallOptions, Communicator, Error, Fate, Simulated, SimulatedWire};
use hopbine::{Call, Form, Repeated, Started};
use hopbine_torus::plan::max_ports;
use hopbine_torus::{Collective, registry};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::memory::{Buffers, CompletedCall, RankResult};
use super::scenario::{
    FaultKind, InjectedFault, Random, Scenario, ScenarioCall, ScenarioStep, StepForm,
    SubCommunicator,
};
use crate::run::{CollectiveCase, Data, Lists};

/// Probabilities, in sixteenths, that a buffer of a completed call is unmapped: between steps, and while other calls
/// are in progress.
const UNMAPS: [u32; 2] = [4, 8];

/// Initial contents of receive buffers.
const STALE: u8 = 0xa5;

/// Cache of the algorithms that support a shape.
#[derive(Default)]
pub struct AlgorithmCache(RefCell<HashMap<OnShape, Vec<Arc<str>>>>);

/// A collective, and a shape as text.
type OnShape = (Collective, String);

impl AlgorithmCache {
    fn one(&self, collective: Collective, comm: &Communicator, pick: u32) -> Option<Arc<str>> {
        let key = (collective, comm.shape().to_string());
        let known = &mut *self.0.borrow_mut();
        let names = known.entry(key).or_insert_with(|| {
            let all = registry::algorithms(collective).into_iter();
            let serving = all.filter(|algorithm| algorithm.serves(comm.shape()).is_ok());
            serving.map(|algorithm| algorithm.name.as_ref().into()).collect()
        });
        names.get(pick as usize % names.len().max(1)).cloned()
    }
}

/// A call with its buffers.
struct PreparedCall {
    case: CollectiveCase,
    rank: u32,
    step: usize,
    buffers: Buffers,
    lists: Lists,
    comm: Communicator,
    /// This rank makes another call than the other ranks.
    differs: bool,
}

impl PreparedCall {
    fn new(
        spec: &ScenarioCall,
        step: usize,
        comm: &Communicator,
        sim: &Simulated,
        algorithms: &AlgorithmCache,
        differs: bool,
    ) -> Self {
        let (rank, n_ranks) = (comm.rank(), comm.size());
        let op = spec.collective.is_reduction().then_some(spec.op);
        let data = Data { dtype: spec.dtype, op, n_ranks, seed: spec.data_seed };
        let case = CollectiveCase {
            collective: spec.collective,
            data,
            root: spec.root % n_ranks,
            count: spec.count,
            counts: spec.counts,
            only_root_knows: spec.only_root_knows,
            in_place: spec.in_place,
        };
        let size = spec.dtype.size_bytes();
        let words = |elements: usize| sim.map((elements * size).div_ceil(8).max(1));
        let send = words(case.input_len(rank));
        // In an exscan rank 0 has a buffer but no result. A rank that makes another call may receive more.
        let most = case.result_len(rank).max(if case.is_vector() { case.count } else { 0 });
        let is_only = case.has_one_buffer(rank);
        let recv = words(if is_only { most.max(case.input_len(rank)) } else { most });
        let algorithm = spec
            .algorithm
            .and_then(|pick| algorithms.one(spec.collective, comm, pick))
            .filter(|_| !differs);
        let mut options = CallOptions::new();
        options.algorithm = algorithm;
        options.ports =
            spec.ports.map(|ports| ports.min(comm.n_ports()).min(max_ports(comm.shape())));
        options.segment_bytes = spec.segment;
        let comm = comm.with(options);
        let lists = Lists::new(&case, rank);
        let mut prepared = {
            let buffers = Buffers::new(send, recv);
            PreparedCall { case, rank, step, buffers, lists, comm, differs }
        };
        prepared.fill();
        prepared
    }

    /// Ends the call: from now on nothing may access its buffers.
    fn end(self, sim: &Simulated, outcome: &Result<(), Error>, rank_result: &mut RankResult) {
        let PreparedCall { case, rank, step, buffers, differs, .. } = self;
        let memory = buffers.forbid_access(sim);
        match outcome {
            Ok(()) if !differs => rank_result.done.push(CompletedCall { case, rank, step, memory }),
            _ => rank_result.failed_buffers.push(memory),
        }
    }

    /// Writes the input to the buffer that the call reads.
    fn fill(&mut self) {
        let PreparedCall { case, rank, buffers, .. } = self;
        let size = case.data.dtype.size_bytes();
        let send = bytemuck::cast_slice_mut::<u64, u8>(&mut buffers.send);
        let recv = bytemuck::cast_slice_mut::<u64, u8>(&mut buffers.recv);
        send.fill(STALE);
        recv.fill(STALE);
        let input = if case.has_one_buffer(*rank) { recv } else { send };
        let [at, _] = case.starts(*rank);
        case.data.fill(*rank, &mut input[at * size..][..case.input_len(*rank) * size]);
    }

    /// The call and its communicator.
    fn call(&mut self) -> (&Communicator, Call<'_>) {
        let PreparedCall { case, rank, buffers, lists, comm, .. } = self;
        let is_only = case.has_one_buffer(*rank);
        let (own, only) = (buffers.send.as_ptr().cast(), buffers.recv.as_mut_ptr().cast::<u8>());
        // A call in place gets a null pointer for the buffer that it must not need.
        let (send, recv) = match case.collective {
            Collective::Scatter if is_only => (only.cast_const(), ptr::null_mut()),
            _ if is_only => (ptr::null(), only),
            _ => (own, only),
        };
        let mut call = Call::new(case.collective, case.count as u64, case.data.dtype);
        (call.op, call.root, call.in_place) = (case.data.op, case.root, is_only);
        if case.counts.is_none() {
            return (comm, call.at(comm, send, recv));
        }
        let is_rooted = matches!(case.collective, Collective::Gather | Collective::Scatter);
        let is_known = is_rooted && !case.only_root_knows;
        call.form = if is_known { Form::VectorKnown } else { Form::Vector };
        call.count = case.block(*rank, 0) as u64;
        (call.send, call.recv) = (send, recv);
        let [input, result] = [case.input_len(*rank), case.result_len(*rank)];
        let lens = if is_only { [input.max(result); 2] } else { [input, result] };
        [call.send_count, call.recv_count] = lens.map(|len| len as u64);
        call.send_blocks = Some(Blocks::new(&lists.send));
        call.recv_blocks = Some(Blocks::new(&lists.recv));
        (comm, call)
    }
}

/// Runs a scenario on one rank.
pub fn program(
    scenario: &Scenario,
    algorithms: &AlgorithmCache,
    world: &Communicator,
    sim: &Simulated,
) -> RankResult {
    let mut rank_result = RankResult::default();
    if scenario.fails_alone {
        world.spare();
    }
    let comms = match communicators(scenario, world) {
        Ok(comms) => comms,
        Err(error) => {
            rank_result.failures.push((0, error));
            return rank_result;
        }
    };
    let own_seed = scenario.seed << 16 ^ u64::from(world.rank());
    let mut rng = Random::seed_from_u64(own_seed);
    let mut of_memory = Random::seed_from_u64(own_seed ^ 0x6d65_6d6f_7279 << 16);
    for (at, step) in &scenario.steps {
        let fault =
            scenario.fault.filter(|fault| (fault.step, fault.victim) == (*at, world.rank()));
        let mut differs = false;
        if let Some(InjectedFault { kind, after, duration, .. }) = fault {
            match kind {
                FaultKind::Kill => sim.meets(Fate::Dies, after),
                FaultKind::Stop => sim.meets(Fate::Stops(duration), after),
                FaultKind::Late => sim.sleep(duration),
                FaultKind::Mismatch => {
                    differs = true;
                    sim.leaves_messages();
                }
                FaultKind::Memory => sim.refuses_memory(of_memory.random_range(1..=3)),
            }
        }
        let mut all = calls_of_step(scenario, (*at, step), &comms, sim, algorithms, differs);
        sim.note(format!("step {at} begins"));
        let outcome = match step.form {
            StepForm::Blocking => blocking(&mut all, sim, &mut rank_result),
            StepForm::Requests => {
                requests(&mut all, sim, &mut rank_result, (&mut rng, &mut of_memory))
            }
            StepForm::Persistent(n) => persistent(&mut all, n, sim, &mut rng),
        };
        all.into_iter().for_each(|prepared| prepared.end(sim, &outcome, &mut rank_result));
        rank_result.unmap_some(UNMAPS[0], sim, &mut of_memory);
        if let Err(error) = outcome {
            sim.note(format!("step {at} fails: {error}"));
            // After a failure that is not limited to its call, all later calls are refused.
            let is_over = matches!(error, Error::Poisoned(_) | Error::Closed);
            rank_result.failures.push((*at, error));
            if is_over {
                break;
            }
        }
    }
    rank_result
}

fn communicators(scenario: &Scenario, world: &Communicator) -> Result<Vec<Communicator>, Error> {
    let mut comms = vec![world.with(CallOptions::new())];
    for part in &scenario.parts {
        let derived = match part {
            SubCommunicator::Duplicate => world.duplicate()?,
            SubCommunicator::Line(dim) => world.sub_box(&[*dim])?,
            SubCommunicator::Parity => {
                let half = world.split(Some(world.rank() % 2), 0)?;
                half.expect("a colour was given")
            }
        };
        comms.push(derived);
    }
    Ok(comms)
}

fn calls_of_step(
    scenario: &Scenario,
    (at, step): (usize, &ScenarioStep),
    comms: &[Communicator],
    sim: &Simulated,
    algorithms: &AlgorithmCache,
    differs: bool,
) -> Vec<PreparedCall> {
    let make = |(index, spec): (usize, &ScenarioCall)| {
        let mut spec = spec.clone();
        // Only the first call of the step differs.
        let is_other = differs && index == 0;
        if is_other {
            spec = mismatched_call(&spec, scenario.wire);
        }
        PreparedCall::new(&spec, at, &comms[spec.comm], sim, algorithms, is_other)
    };
    step.calls.iter().enumerate().map(make).collect()
}

/// A call that does not match `spec`, whatever their signatures.
fn mismatched_call(spec: &ScenarioCall, wire: SimulatedWire) -> ScenarioCall {
    let mut other = spec.clone();
    let ops = match wire {
        SimulatedWire::Messages => [Op::Min, Op::Max],
        // Barrier gates execute minimum and maximum as the same operation.
        SimulatedWire::Utofu => [Op::Sum, Op::Max],
    };
    match spec.collective.is_reduction() && !spec.dtype.is_complex() {
        true => other.op = if spec.op == ops[0] { ops[1] } else { ops[0] },
        false => {
            other.collective = match spec.collective {
                Collective::Barrier => Collective::Allgather,
                _ => Collective::Barrier,
            };
            (other.counts, other.only_root_knows, other.count) = (None, false, 1);
        }
    }
    other
}

/// Makes a call, and repeats it while registration of its memory is refused: a refused call has no effect.
fn with_memory<R>(sim: &Simulated, call: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
    loop {
        match call() {
            Err(_) if sim.has_refused_memory() => {}
            outcome => return outcome,
        }
    }
}

fn blocking(
    all: &mut Vec<PreparedCall>,
    sim: &Simulated,
    rank_result: &mut RankResult,
) -> Result<(), Error> {
    let mut failure = Ok(());
    for mut prepared in std::mem::take(all) {
        let (comm, call) = prepared.call();
        // SAFETY: the buffers have the lengths of the case, and only this call uses them until it returns.
        let outcome = with_memory(sim, || unsafe { comm.call(&call) });
        prepared.end(sim, &outcome, rank_result);
        // The call may have failed alone, so the later calls are made as well.
        failure = failure.and(outcome);
    }
    failure
}

/// Starts all calls and waits for them. Calls that succeed are removed from the list, and their memory may be
/// unmapped while other calls are in progress.
fn requests(
    all: &mut Vec<PreparedCall>,
    sim: &Simulated,
    rank_result: &mut RankResult,
    (rng, of_memory): (&mut Random, &mut Random),
) -> Result<(), Error> {
    let mut running = Vec::new();
    let mut failure = Ok(());
    let mut calls: Vec<Option<PreparedCall>> = std::mem::take(all).into_iter().map(Some).collect();
    for (at, prepared) in calls.iter_mut().enumerate() {
        let prepared = prepared.as_mut().expect("not taken yet");
        let (comm, call) = prepared.call();
        // SAFETY: the buffers have the lengths of the case, and only this call uses them until the wait below.
        match with_memory(sim, || unsafe { comm.started(&call) }) {
            Ok(started) => running.push((at, started)),
            Err(error) => failure = failure.and(Err(error)),
        }
    }
    // Each rank waits in its own random order.
    running.shuffle(rng);
    for (at, started) in running {
        let by_tests = rng.random_range(0..20);
        let outcome = wait_started(started, by_tests);
        if outcome.is_ok()
            && let Some(prepared) = calls[at].take()
        {
            prepared.end(sim, &outcome, rank_result);
            rank_result.unmap_some(UNMAPS[1], sim, of_memory);
        }
        failure = failure.and(outcome);
    }
    *all = calls.into_iter().flatten().collect();
    failure
}

fn persistent(
    all: &mut [PreparedCall],
    n_times: u32,
    sim: &Simulated,
    rng: &mut Random,
) -> Result<(), Error> {
    let mut failure = Ok(());
    let mut repeated = Vec::new();
    for prepared in all.iter_mut() {
        let (comm, call) = prepared.call();
        // SAFETY: the buffers have the lengths of the case, and outlive `repeated`.
        repeated.push(with_memory(sim, || unsafe { comm.repeated(&call) })?);
    }
    for round in 0..n_times {
        if round > 0 {
            all.iter_mut().for_each(PreparedCall::fill);
        }
        for one in &mut repeated {
            failure = failure.and(one.start());
        }
        let mut order: Vec<usize> = (0..repeated.len()).collect();
        order.shuffle(rng);
        for at in order {
            let by_tests = rng.random_range(0..20);
            failure = failure.and(wait_repeated(&mut repeated[at], by_tests));
        }
    }
    failure
}

/// Waits for the end, after up to `by_tests` tests.
fn wait_started(mut started: Started, by_tests: u32) -> Result<(), Error> {
    let _ = (0..by_tests).any(|_| started.test());
    started.wait()
}

fn wait_repeated(repeated: &mut Repeated, by_tests: u32) -> Result<(), Error> {
    for _ in 0..by_tests {
        if repeated.test()? {
            return Ok(());
        }
    }
    repeated.wait()
}
