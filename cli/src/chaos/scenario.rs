//! The calls and faults of a run of chaos, drawn from its seed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use hopbine::reduce::{Dtype, Op};
use hopbine::{OnTimeout, SimulatedWire};
use hopbine_torus::collectives::Payload;
use hopbine_torus::{Collective, Shape};
use rand::seq::{IndexedMutRandom, IndexedRandom};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::counts::CountsArg;

/// A random generator with the same numbers on every machine.
pub type Random = Xoshiro256PlusPlus;

/// What may happen to one rank of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FaultKind {
    /// Its process is killed
    Kill,
    /// Its process is stopped for a while
    Stop,
    /// It comes late to a call
    Late,
    /// It makes another call than the others
    Mismatch,
    /// Its memory cannot be registered at first
    Memory,
}

/// A fault of one rank.
#[derive(Clone, Copy, Debug)]
pub struct InjectedFault {
    pub kind: FaultKind,
    pub victim: u32,
    /// The step in which the fault happens.
    pub step: usize,
    /// Time from the start of the step to the fault.
    pub after: Duration,
    /// Duration of a stop or of a delay.
    pub duration: Duration,
}

/// Communicators besides the world's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubCommunicator {
    /// A duplicate of the world.
    Duplicate,
    /// The ranks that differ only in their coordinate of this dimension.
    Line(usize),
    /// A split into even and odd ranks.
    Parity,
}

/// How a step makes its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepForm {
    Blocking,
    /// All calls are started. Each rank then waits for them in its own order, by tests or waits.
    Requests,
    /// Each call is a persistent one, started this many times.
    Persistent(u32),
}

/// One call.
#[derive(Clone, Debug)]
pub struct ScenarioCall {
    /// Index of the communicator: 0 is the world, 1 the first of the parts.
    pub comm: usize,
    pub collective: Collective,
    pub dtype: Dtype,
    pub op: Op,
    /// Taken modulo the size of the communicator.
    pub root: u32,
    pub count: usize,
    pub counts: Option<CountsArg>,
    pub only_root_knows: bool,
    pub in_place: bool,
    /// Selects one of the algorithms that support the shape; None leaves the choice to the library.
    pub algorithm: Option<u32>,
    pub ports: Option<u32>,
    pub segment: Option<u64>,
    pub data_seed: u64,
}

/// A group of calls.
#[derive(Clone, Debug)]
pub struct ScenarioStep {
    pub form: StepForm,
    pub calls: Vec<ScenarioCall>,
}

/// Limits of what is drawn, to repeat a run with less.
#[derive(Clone, Debug, Default)]
pub struct ScenarioLimits {
    pub shape: Option<Shape>,
    /// The steps to make; None for all.
    pub only: Option<Vec<usize>>,
    /// Maximum number of elements of a vector or block.
    pub most_elements: Option<usize>,
    /// The seed of the wire, if it differs from the run's seed.
    pub wire_seed: Option<u64>,
    pub faults: Vec<FaultKind>,
    pub wire: SimulatedWire,
}

impl ScenarioLimits {
    fn most(&self) -> usize {
        self.most_elements.unwrap_or(usize::MAX)
    }
}

/// A run as drawn from its seed: shape, communicators, steps, fault and settings.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub wire_seed: u64,
    pub wire: SimulatedWire,
    pub shape: Shape,
    pub ports: u32,
    pub parts: Vec<SubCommunicator>,
    /// The steps with their numbers.
    pub steps: Vec<(usize, ScenarioStep)>,
    pub fault: Option<InjectedFault>,
    pub on_timeout: OnTimeout,
    pub timeout: Duration,
    /// A call that differs between ranks fails alone instead of failing the world.
    pub fails_alone: bool,
    /// Bound of the unexpected messages that a port stores, in bytes.
    pub unexpected_bytes: usize,
}

/// Small shapes, from the smallest on, among them odd ones, primes and rectangles.
pub const SHAPES: [&str; 16] = [
    "1", "2", "3", "4", "2x2", "5", "3x2", "7", "2x2x2", "8m", "3x3", "5x2", "4x3m", "2x2+2",
    "3x2x2", "4x4",
];

/// Lengths of vectors and blocks, in elements.
const COUNTS: [usize; 12] = [0, 1, 2, 3, 5, 8, 17, 40, 130, 300, 1000, 3000];

/// Maximum number of segments of a vector, which bounds the duration of a run.
const MOST_SEGMENTS: u64 = 24;

/// On at most `MOST_BURST_RANKS` ranks, a call may have `BURST` messages of `BURST_BYTES` bytes in flight from one rank
/// to another. Only some of the simulated wires send messages of this length eagerly.
const MOST_BURST_RANKS: u32 = 4;
const BURST: usize = 160;
const BURST_BYTES: usize = 2304;

/// Chooses the seeds that draw [`Extras`]. The value leaves out the seeds named in `cli/tests/command/chaos.rs`, so
/// that these still make the runs that once failed.
const EXTRAS_SEED: u64 = 0x6c61_7465_8b2d;

const TYPES: [Dtype; 6] =
    [Dtype::U64, Dtype::I32, Dtype::U8, Dtype::F64, Dtype::F32, Dtype::ComplexF32];

fn pick<T: Clone>(rng: &mut Random, of: &[T]) -> T {
    of.choose(rng).expect("some to choose from").clone()
}

impl Scenario {
    /// The scenario of a seed, within limits.
    pub fn draw(seed: u64, limits: &ScenarioLimits) -> Self {
        let mut rng = Random::seed_from_u64(seed ^ 0x6368_616f_7321);
        let drawn = Shape::from_str(pick(&mut rng, &SHAPES)).expect("a shape");
        let shape = limits.shape.clone().unwrap_or(drawn);
        let n_ranks = shape.n_ranks();
        let most = hopbine_torus::plan::max_ports(&shape);
        let ports = rng.random_range(1..=4).min(most);
        let line = rng.random_range(0..8) % shape.n_dims();
        let parts: Vec<SubCommunicator> =
            [SubCommunicator::Duplicate, SubCommunicator::Line(line), SubCommunicator::Parity]
                .into_iter()
                .filter(|_| rng.random_bool(0.25))
                .collect();
        let fails_alone = rng.random_bool(0.25);
        let extras = Extras::draw(seed, n_ranks);
        let n_steps = rng.random_range(3..=9);
        let steps: Vec<(usize, ScenarioStep)> = (0..n_steps)
            .map(|at| {
                // Each step has a generator of its own, so that omitting a step does not change the others.
                let mut rng = Random::seed_from_u64(seed.wrapping_mul(64) + at as u64);
                let mut step = step(&mut rng, parts.len() + 1, limits);
                extras.apply(at, &mut step, limits.most());
                (at, step)
            })
            .filter(|(at, _)| limits.only.as_ref().is_none_or(|only| only.contains(at)))
            .collect();
        let fault = match limits.faults.as_slice() {
            [] => None,
            kinds if rng.random_bool(0.6) => Some(InjectedFault {
                kind: pick(&mut rng, kinds),
                victim: rng.random_range(0..1000) % n_ranks,
                step: steps
                    .get(rng.random_range(0..64) % steps.len().max(1))
                    .map_or(0, |step| step.0),
                after: Duration::from_nanos(1 << rng.random_range(0..24)),
                duration: Duration::from_micros(1 << rng.random_range(0..26)),
            }),
            _ => None,
        };
        // With several communicators in use, a circle of waits does not prove that calls differ, and a rank that only
        // warns would wait for ever.
        let is_open =
            !parts.is_empty() && fault.is_some_and(|fault| fault.kind == FaultKind::Mismatch);
        let warns = rng.random_bool(0.5) && !is_open;
        Scenario {
            seed,
            wire_seed: limits.wire_seed.unwrap_or(seed),
            wire: limits.wire,
            shape,
            ports,
            parts,
            steps,
            fault,
            on_timeout: if warns { OnTimeout::Warn } else { OnTimeout::Fail },
            timeout: Duration::from_secs(pick(&mut rng, &[10, 30, 60])),
            unexpected_bytes: pick(&mut rng, &[1, 256, 4096, 1 << 20]),
            fails_alone,
        }
    }
}

fn step(rng: &mut Random, n_comms: usize, limits: &ScenarioLimits) -> ScenarioStep {
    let form = match rng.random_range(0..5) {
        0..=1 => StepForm::Blocking,
        2..=3 => StepForm::Requests,
        _ => StepForm::Persistent(rng.random_range(1..=3)),
    };
    let n_calls = match form {
        // Sometimes more calls than can be in progress at once.
        StepForm::Requests if rng.random_bool(0.02) => rng.random_range(60..=140),
        StepForm::Requests => rng.random_range(1..=6),
        _ => rng.random_range(1..=2),
    };
    let most = if n_calls > 10 { 3 } else { limits.most() };
    let calls = (0..n_calls).map(|_| one_call(rng, n_comms, most, form)).collect();
    ScenarioStep { form, calls }
}

fn one_call(rng: &mut Random, n_comms: usize, most: usize, form: StepForm) -> ScenarioCall {
    let collective = pick(rng, &Collective::ALL);
    let dtype = pick(rng, &TYPES);
    let ops: Vec<Op> = Op::ALL.into_iter().filter(|op| op.defined_for(dtype)).collect();
    let has_blocks = matches!(collective.payload(), Payload::Blocks | Payload::Pairs);
    let counts =
        [CountsArg::Uniform, CountsArg::Power(4.0), CountsArg::Sparse(0.3), CountsArg::Zipf(1.0)];
    let counts = (has_blocks && rng.random_bool(0.3)).then(|| pick(rng, &counts));
    let is_rooted = matches!(collective, Collective::Gather | Collective::Scatter);
    let only_root_knows = counts.is_some() && is_rooted && rng.random();
    // A persistent reduction of an empty vector has no operation to repeat.
    let least = usize::from(matches!(form, StepForm::Persistent(_)));
    let mut call = ScenarioCall {
        comm: rng.random_range(0..n_comms),
        collective,
        dtype,
        op: pick(rng, &ops),
        root: rng.random_range(0..64),
        count: pick(rng, &COUNTS).min(most).max(least),
        counts,
        only_root_knows,
        in_place: false,
        algorithm: rng.random_bool(0.4).then(|| rng.random()),
        ports: rng.random_bool(0.2).then(|| rng.random_range(1..=4)),
        segment: rng.random_bool(0.3).then(|| pick(rng, &[8, 64, 1024, 8192])),
        data_seed: rng.random(),
    };
    let least = (call.count * dtype.size_bytes()) as u64 / MOST_SEGMENTS;
    call.segment = call.segment.map(|segment| segment.max(least));
    call
}

/// Probabilities of kinds of calls that were added later. They use separate generators, since drawing their numbers
/// from the other generators would change the runs of all seeds.
#[derive(Clone, Copy, Debug)]
struct Extras {
    seed: u64,
    in_place: f64,
    bursts: f64,
}

impl Extras {
    fn draw(seed: u64, n_ranks: u32) -> Self {
        let seed = seed ^ EXTRAS_SEED;
        let mut rng = Random::seed_from_u64(seed);
        let is_drawn = rng.random::<bool>();
        let mut often = |of: [f64; 2], may: bool| if may { pick(&mut rng, &of) } else { 0.0 };
        Extras {
            seed,
            in_place: often([0.1, 0.6], is_drawn),
            bursts: often([0.05, 0.3], is_drawn && n_ranks <= MOST_BURST_RANKS),
        }
    }

    fn apply(self, at: usize, step: &mut ScenarioStep, most: usize) {
        let mut rng = Random::seed_from_u64(self.seed.wrapping_mul(64) + at as u64);
        for call in &mut step.calls {
            call.in_place = rng.random_bool(self.in_place);
        }
        if rng.random_bool(self.bursts)
            && let Some(call) = step.calls.choose_mut(&mut rng)
        {
            call.count = (BURST * BURST_BYTES / call.dtype.size_bytes()).min(most);
            (call.segment, call.ports) = (Some(BURST_BYTES as u64), Some(1));
        }
    }
}

impl fmt::Display for ScenarioCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioCall { comm, collective, dtype, op, root, count, counts, in_place, .. } = self;
        write!(f, "{collective} of {count} {dtype} on communicator {comm}")?;
        if collective.is_reduction() {
            write!(f, ", {op}")?;
        }
        if collective.is_rooted() {
            write!(f, ", root {root}")?;
        }
        if let Some(counts) = counts {
            write!(f, ", blocks {counts:?}")?;
        }
        if *in_place {
            write!(f, ", in place")?;
        }
        Ok(())
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, wire_seed, shape, ports, parts, steps, fault, .. } = self;
        writeln!(f, "seed {seed}, wire {wire_seed}: {shape}, {ports} ports, world and {parts:?}")?;
        writeln!(
            f,
            "  a wait is too long after {:?}: {:?}; calls that differ fail {}",
            self.timeout,
            self.on_timeout,
            if self.fails_alone { "alone" } else { "the world" }
        )?;
        match fault {
            None => writeln!(f, "  no fault")?,
            Some(InjectedFault { kind, victim, step, after, duration }) => writeln!(
                f,
                "  {kind:?} of rank {victim}, {after:?} after the start of step {step}, for {duration:?}"
            )?,
        }
        for (at, ScenarioStep { form, calls }) in steps {
            writeln!(f, "  step {at}, {form:?}:")?;
            for call in calls.iter().take(8) {
                writeln!(f, "    {call}")?;
            }
            if calls.len() > 8 {
                writeln!(f, "    and {} more", calls.len() - 8)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_draw_calls_of_every_kind() {
        let scenarios: Vec<Scenario> =
            (1..=2000).map(|seed| Scenario::draw(seed, &ScenarioLimits::default())).collect();
        let calls = || {
            let steps = scenarios.iter().flat_map(|scenario| &scenario.steps);
            steps.flat_map(|(_, step)| step.calls.iter().map(|call| (step.form, call)))
        };
        let forms = [StepForm::Blocking, StepForm::Requests, StepForm::Persistent(2)];
        for (collective, form) in Collective::ALL.iter().flat_map(|of| forms.map(|form| (of, form)))
        {
            for (in_place, has_counts) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let is_vector =
                    collective.payload() == Payload::Vector || *collective == Collective::Barrier;
                let like = calls().filter(|(of, call)| {
                    (of, call.collective, call.in_place, call.counts.is_some())
                        == (&form, *collective, in_place, has_counts)
                });
                assert!(
                    like.count() > 0 || has_counts && is_vector,
                    "{collective}, {form:?}, in place {in_place}, blocks that differ {has_counts}"
                );
            }
        }
        let n_bursts =
            calls().filter(|(_, call)| call.count * call.dtype.size_bytes() >= BURST * BURST_BYTES);
        assert!(n_bursts.count() > 50);
    }
}
