//! `hopbine tune --measure`: measures a decision table on this machine.
//!
//! Ranks are processes: on this host, started by the command itself, or started by `mpirun`, a batch system or
//! `hopbine launch`. Each call (a collective at one size) gets its share of the time. All candidates take turns, and
//! those that are far slower are dropped. The fastest remaining candidate is measured again in turn with the choice
//! of the reference table. It gets a row only if it is faster with 99 % confidence.

mod cell;
mod median;
mod report;
mod staging;
mod state;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hopbine::reduce::{Dtype, Op};
use hopbine::{Communicator, Tuning, World};
use hopbine_meet::print_remark;
use hopbine_meet::variables::{BACKEND, from_environment};
use hopbine_torus::choose::ShmLimits;
use hopbine_torus::{Collective, Shape, sizes as units};

use super::merge;
use super::{Args, cases::SEGMENTS};
use crate::args::{BackendArg, MapArg, Place};
use crate::error::{CliError, Outcome};
use crate::output::OutputArg;
use crate::report::{Format, RowsArg};
use crate::run::{self, CollectiveCase, Data};
use crate::simulate::file::quoted;
use crate::{launch, progress};
use cell::{Bench, CellCandidate, CellResult, agreed, measure};
use report::{compared, log};
use staging::{StagingRatios, staging};
use state::MeasureState;

/// Default time limit.
const BUDGET: Duration = Duration::from_secs(600);

/// A call that is measured.
#[derive(Clone, Copy)]
struct Call {
    case: CollectiveCase,
    bytes: u64,
}

/// Starts the ranks if this process is not a rank; otherwise measures, and rank 0 writes the table.
pub fn run(args: &Args) -> Result<Outcome, CliError> {
    let [torus] = &args.torus[..] else {
        return Err(CliError::Usage("--measure needs --torus with one shape".to_owned()));
    };
    if torus.n_ranks() < 2 {
        return Err(CliError::Usage(format!(
            "--torus: {torus} has one rank, which sends no messages"
        )));
    }
    let Some(table) = args.output.path() else {
        return Err(CliError::Usage("--measure needs a file for the table: -o FILE".to_owned()));
    };
    if hopbine::n_ranks_said().map_err(CliError::World)? == 1 {
        args.output.check([&args.log])?;
        for call in calls(args, torus) {
            run::check_memory(&call.case, 0..torus.n_ranks())?;
        }
        let is_unset = BACKEND.get(&from_environment).is_none();
        let backend = args.backend.or(is_unset.then_some(BackendArg::Shm));
        return launch::this_program(torus, backend);
    }
    let place = Place { torus: torus.clone(), map: MapArg::ColumnMajor };
    let world = run::join_world(&place, None, None, args.backend)?;
    let outcome = on_rank(args, &world, table);
    run::finish_world(world, outcome)
}

fn on_rank(args: &Args, world: &World, table: &Path) -> Result<Outcome, CliError> {
    let start = Instant::now();
    let comm = world.communicator();
    if comm.rank() == 0 {
        args.output.check([&args.log])?;
    }
    let reference_table = reference_table(args, comm)?;
    let calls = calls(args, comm.shape());
    for call in &calls {
        run::check_memory(&call.case, comm.rank()..comm.rank() + 1)?;
    }
    let is_first = comm.rank() == 0;
    let settings = settings(world, &reference_table, args);
    let mut state = is_first.then(|| MeasureState::of(table, &settings)).transpose()?;
    let budget = args.budget.map_or(BUDGET, |budget| budget.0);
    let bar = is_first.then(|| progress::bar_or_lines(calls.len() as u64, "measuring"));
    let has = state.as_ref().is_some_and(|state| state.staging().is_some());
    if !agreed(comm, has).map_err(CliError::World)? {
        let found = staging(comm, start, budget).map_err(CliError::World)?;
        if let (Some(found), Some(state)) = (found, &mut state) {
            state.set_staging(found)?;
        }
    }
    let mut n_left = calls.len() as u32;
    let mut is_over = false;
    for &Call { case, bytes } in &calls {
        let collective = case.collective;
        if let Some(bar) = &bar {
            bar.say(&format!("{collective} of {}", units::show(bytes)));
        }
        let left = budget.saturating_sub(start.elapsed());
        let has = state.as_ref().is_some_and(|state| state.has(collective, bytes));
        let share = left / n_left;
        n_left -= 1;
        is_over = agreed(comm, left.is_zero()).map_err(CliError::World)?;
        if is_over {
            break;
        }
        if !agreed(comm, has).map_err(CliError::World)? {
            let candidates = candidates(args, comm, &reference_table, (collective, bytes));
            let found = with_bench(comm, case, |bench| measure(bench, &candidates, share));
            let found = found.map_err(CliError::World)?;
            if let Some(state) = &mut state {
                state.add(CellResult { bytes, ..found })?;
            }
        }
        if let Some(bar) = &bar {
            bar.advance(1);
        }
    }
    drop(bar);
    let Some(state) = state else { return Ok(Outcome::Well) };
    let outcome = write(args, (comm.shape(), &settings), comm.n_ports(), &reference_table, &state)?;
    if is_over {
        let (done, all) = (state.found().len(), calls.len());
        print_remark(format_args!(
            "{done} of {all} calls are measured; the same command continues from there."
        ));
    } else {
        state.finish();
    }
    Ok(outcome)
}

/// The reference table.
fn reference_table(args: &Args, comm: &Communicator) -> Result<Tuning, CliError> {
    let own = comm.tuning();
    let Some(path) = &args.against else { return Ok(own.clone()) };
    let reference_table = super::named_or_read(path)?;
    let (wire, wanted) = (reference_table.table().wire(), own.table().wire());
    if wire != wanted {
        return Err(CliError::Usage(format!(
            "--against: the table is for wire {}; the ranks use wire {}",
            wire.name(),
            wanted.name()
        )));
    }
    Ok(reference_table)
}

/// All settings that the measurements depend on, as text.
fn settings(world: &World, reference_table: &Tuning, args: &Args) -> String {
    let comm = world.communicator();
    let ports: Vec<String> = args.ports.iter().map(u32::to_string).collect();
    format!(
        "hopbine {}, {} with {} ports over {}, tried on {}, beside table {} ({:016x})",
        hopbine::VERSION,
        comm.shape(),
        comm.n_ports(),
        world.backend(),
        ports.join(","),
        reference_table.table().name(),
        reference_table.table().fingerprint(),
    )
}

/// The calls to measure.
fn calls(args: &Args, shape: &Shape) -> Vec<Call> {
    let of_it = |collective| {
        let sizes = super::sizes(args, collective, shape).into_iter();
        sizes.map(move |bytes| call(shape.n_ranks(), collective, bytes))
    };
    super::collectives(args).into_iter().flat_map(of_it).collect()
}

/// A call on doubles; a reduction adds them, and the root is rank 0.
fn call(n_ranks: u32, collective: Collective, bytes: u64) -> Call {
    let op = collective.is_reduction().then_some(Op::Sum);
    let data = Data { dtype: Dtype::F64, op, n_ranks, seed: 1 };
    let unit = u64::from(collective.n_blocks(n_ranks)) * Dtype::F64.size_bytes() as u64;
    let count = bytes.div_ceil(unit) as usize;
    let case = CollectiveCase {
        collective,
        data,
        root: 0,
        count,
        counts: None,
        only_root_knows: false,
        in_place: false,
    };
    Call { case, bytes }
}

/// The choice of the reference table, a call without options, then all other candidates.
fn candidates(
    args: &Args,
    comm: &Communicator,
    reference_table: &Tuning,
    (collective, bytes): (Collective, u64),
) -> Vec<CellCandidate> {
    let shape = comm.shape();
    let blocks = u64::from(collective.n_blocks(shape.n_ranks()));
    let choice = reference_table.choose(collective, shape, bytes / blocks, comm.n_ports());
    let first = CellCandidate {
        algorithm: choice.algorithm.name.into_owned(),
        ports: choice.ports,
        segment_bytes: choice.segment_bytes,
    };
    let counts = super::counts(&args.ports, comm.n_ports().min(super::max_ports(shape)));
    // A segment length of at least the size of all data cuts no message.
    let longest = |segment: u64| segment == SEGMENTS[0] || segment < bytes;
    let is_same = |other: &CellCandidate| {
        (&other.algorithm, other.ports) == (&first.algorithm, first.ports)
            && (other.segment_bytes == first.segment_bytes
                || other.segment_bytes.min(first.segment_bytes) >= bytes)
    };
    let others = super::candidates(collective, shape).into_iter().flat_map(|algorithm| {
        let name = algorithm.name;
        counts.iter().flat_map(move |&ports| {
            let name = name.clone();
            SEGMENTS.into_iter().filter(move |&segment| longest(segment)).map(
                move |segment_bytes| CellCandidate {
                    algorithm: name.to_string(),
                    ports,
                    segment_bytes,
                },
            )
        })
    });
    let others: Vec<CellCandidate> = others.filter(|other| !is_same(other)).collect();
    [first, CellCandidate::without_options()].into_iter().chain(others).collect()
}

/// Allocates the buffers of a call and passes it to `measure`.
fn with_bench<R>(
    comm: &Communicator,
    case: CollectiveCase,
    measure: impl FnOnce(Bench<'_>) -> Result<R, hopbine::Error>,
) -> Result<R, hopbine::Error> {
    let [(mut send, n_send), (mut recv, n_recv)] = case.buffers(comm.rank());
    let send = &mut bytemuck::cast_slice_mut(&mut send)[..n_send];
    let recv = &mut bytemuck::cast_slice_mut(&mut recv)[..n_recv];
    measure(Bench::new(comm, case, (send, recv)))
}

/// Writes the table and its comparison with the reference table.
fn write(
    args: &Args,
    (shape, settings): (&Shape, &str),
    ports: u32,
    reference_table: &Tuning,
    state: &MeasureState,
) -> Result<Outcome, CliError> {
    if let Some(path) = &args.log {
        log(state).write(&RowsArg { format: Format::Csv, output: OutputArg::to(path) })?;
    }
    let table = reference_table.table();
    let name = args.name.as_deref().unwrap_or("measured");
    let staging = state.staging();
    // A table that is not built in cannot be referred to by name, so its rules are copied here.
    let is_named = Tuning::named(table.name()) == Some(reference_table);
    let otherwise =
        if is_named { table.name() } else { Tuning::built_in(table.wire()).table().name() };
    let mut summary =
        compared(table.name(), state) + &staging.map_or_else(String::new, StagingRatios::summary);
    if !is_named {
        let _ = writeln!(
            summary,
            "Only the rules for {shape} and {ports} ports are copied from table {}; other calls use table {otherwise}.",
            table.name()
        );
    }
    let stage_bytes = staging.and_then(StagingRatios::bytes).or(table.stage_bytes());
    let mut text = format!(
        "# A decision table of hopbine, for HOPBINE_TUNING=FILE.\n#\n\
         # Measured by `hopbine tune --measure`: {}.\n#\n",
        settings.escape_debug()
    );
    for line in summary.lines() {
        let _ = writeln!(text, "# {line}");
    }
    let end_of_head = text.len();
    let _ = write!(
        text,
        "\nversion = 1\nname = {}\nwire = \"{}\"\n# For other shapes and numbers of ports, and for calls without a \
         faster algorithm\notherwise = \"{otherwise}\"\nnearest = false\n",
        quoted(name),
        table.wire().name(),
    );
    if let Some(bytes) = stage_bytes {
        let bytes = merge::short(bytes);
        let _ = writeln!(
            text,
            "# Where no registration can be kept, calls copy up to this for each two registrations\nstage_bytes = \"{bytes}\""
        );
    }
    let (shm, is_shm_set) = (table.shm(), table.shm() != ShmLimits::default());
    if is_shm_set {
        let ShmLimits { flat, flat_read, staged, staged_pair } = shm;
        let [flat, flat_read, staged, staged_pair] =
            [flat, flat_read, staged, staged_pair].map(merge::short);
        let _ = writeln!(
            text,
            "# Not measured here, but those of table {}\nshm = {{ flat = \"{flat}\", flat_read = \"{flat_read}\", \
             staged = \"{staged}\", staged_pair = \"{staged_pair}\" }}",
            table.name()
        );
    }
    let faster = |collective: Collective| {
        let of_it = state.found().iter().filter(|found| found.collective == collective.name());
        let mut sizes: Vec<u64> = of_it.map(|found| found.bytes).collect();
        sizes.sort_unstable();
        let choice = |bytes| {
            let (CellCandidate { algorithm, ports, segment_bytes }, _) =
                state.of_call(collective, bytes)?.faster.as_ref()?;
            Some((&**algorithm, *ports, *segment_bytes))
        };
        sizes.into_iter().map(|bytes| (bytes, choice(bytes))).collect()
    };
    let rules = merge::rules((reference_table, !is_named), shape, ports, faster);
    if !rules.is_empty() {
        let _ = write!(text, "\n[class.\"{shape}\"]\nlike = [\"{shape}\"]\n{rules}");
    }
    let wrong: Vec<String> = state
        .found()
        .iter()
        .flat_map(|found| {
            let of = format!("{} of {}", found.collective, units::show(found.bytes));
            found
                .wrong
                .iter()
                .map(move |name| format!("{of}: {name} gave a wrong result; please report it"))
        })
        .collect();
    if rules.is_empty() && stage_bytes.is_none() && !is_shm_set {
        // A table must contain a rule; if there is none, the file only has comments with the result.
        text.truncate(end_of_head);
        text.push_str("#\n# No algorithm was faster than the choice of that table.\n");
    } else {
        super::check_table(&text)?;
    }
    args.output.write(&text)?;
    if !args.quiet {
        print_remark(summary.trim_end());
    }
    wrong.iter().for_each(print_remark);
    Ok(if wrong.is_empty() { Outcome::Well } else { Outcome::Wrong })
}
