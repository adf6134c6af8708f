//! Finds or compiles the program of a call.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use hopbine_torus::choose::{Choice, Found, Knowledge};
use hopbine_torus::collectives::Payload;
use hopbine_torus::plan::segments::MIN_SEPARATE_RUN_BYTES;
use hopbine_torus::plan::{Expect, Flow, Plan, check};
use hopbine_torus::registry::Algorithm;
use hopbine_torus::{Collective, Request};

use crate::Rank;
use crate::comm::call::blocks::Form;
use crate::comm::choice::wanted::{Asked, Wanted};
use crate::comm::programs::cache::PLAN_LIMIT;
use crate::comm::programs::key::{Key, PlanKey};
use crate::comm::programs::ready::{AfterSizes, Compiled, DataPlan};
use crate::comm::state::inner::Inner;
use crate::comm::state::members::Members;
use crate::engine::{
    CheckedPlan, CompileFailure, Geometry, Program, Sizes, compile, compile_sizes,
};
use crate::error::{Error, ScheduleProblem};
use crate::reduce::{Dtype, Op, Reducer};
use crate::sync::lock;

impl Inner {
    /// Frees memory of idle operations, if necessary, before an operation of this program is made.
    pub(crate) fn make_room(&self, program: &Program) {
        self.members.programs.budget.make_room(&self.world.engine, program.memory_bytes());
    }

    /// The algorithm that the user prefers for all calls of this kind, if it serves this one.
    pub(crate) fn preferred(&self, key: &Key) -> Option<&Algorithm> {
        self.members.preferred.of(key.collective)
    }

    /// The choice for a call that names no algorithm: that of the user, or else that of the library.
    pub(crate) fn choice(&self, key: &Key) -> Choice {
        let choice = self.library_choice(key);
        match self.preferred(key) {
            Some(algorithm) => {
                let ports = algorithm.ports().unwrap_or(choice.ports);
                Choice { algorithm: algorithm.clone(), ports, ..choice }
            }
            None => choice,
        }
    }

    /// The algorithm that a call names, if it names one.
    pub(crate) fn wanted(&self, key: &Key) -> Result<Option<Wanted>, Error> {
        let Some(text) = &key.options.algorithm else { return Ok(None) };
        let Members { shape, map, .. } = &*self.members;
        let n_ports = self.world.engine.n_ports() as u32;
        let all = u64::from(key.collective.n_blocks(shape.n_ranks()));
        let root = map.vertex_of(shape, hopbine_torus::Rank(key.root)).0;
        let bytes = key.bytes().map(|bytes| bytes.saturating_mul(all));
        let asked = Asked::new(key.collective, shape.clone(), n_ports);
        let asked = asked.with(root, key.options.ports, bytes);
        Wanted::new(text, &asked, self.members.me()).map(Some)
    }

    /// The final choice, from `wanted`, the call's options and the choice for calls that name no algorithm.
    pub(crate) fn final_choice(&self, key: &Key, wanted: Option<Wanted>) -> Choice {
        let choice = self.choice(key);
        let Some(Wanted { algorithm, ports, segment_bytes, .. }) = wanted else {
            return self.by_options(key, choice);
        };
        let segment_bytes = segment_bytes.unwrap_or(choice.segment_bytes);
        let choice = self.by_options(key, Choice { segment_bytes, ..choice });
        Choice { algorithm, ports: ports.unwrap_or(choice.ports), ..choice }
    }

    /// A choice with the ports and the segments that the user gives. A split for other ports does not count, as the
    /// call does not name it.
    pub(super) fn by_options(&self, key: &Key, choice: Choice) -> Choice {
        let segment_bytes = key.options.segment_bytes.or(self.members.segment_bytes);
        let ports = key.options.ports.unwrap_or(choice.ports);
        Choice {
            algorithm: choice.algorithm.on_ports(ports),
            ports,
            segment_bytes: segment_bytes.unwrap_or(choice.segment_bytes),
        }
    }

    /// The decision table's row for a call.
    pub(crate) fn table_row(&self, key: &Key) -> Found<'_> {
        let collective = key.collective;
        let (knowledge, bytes) = match key.bytes() {
            Some(bytes) => (Knowledge::Known, bytes),
            None => (Knowledge::Unknown, 0),
        };
        self.table_row_for(collective, knowledge, bytes)
    }

    /// The decision table's row for a call on all ports.
    fn table_row_for(&self, collective: Collective, knowledge: Knowledge, bytes: u64) -> Found<'_> {
        let Inner { world, members, .. } = self;
        let shape = (&members.shape, &members.features);
        let n_ports = world.engine.n_ports() as u32;
        world.settings.tuning.find((collective, knowledge), shape, bytes, n_ports)
    }

    fn library_choice(&self, key: &Key) -> Choice {
        self.row_choice(key.collective, self.table_row(key))
    }

    /// The choice of the decision table for an alltoall whose longest block has `longest` bytes.
    pub(super) fn learnt_choice(&self, longest: u64) -> Choice {
        let collective = Collective::Alltoall;
        self.row_choice(collective, self.table_row_for(collective, Knowledge::Learnt, longest))
    }

    /// The choice of a row, with the algorithm that serves the shape and the ports, which is determined once.
    fn row_choice(&self, collective: Collective, found: Found<'_>) -> Choice {
        let Members { shape, features, programs, .. } = &*self.members;
        let find = || found.on(collective, shape, features).algorithm;
        let algorithm = programs.algorithm(collective, (&found.row.candidates, found.ports), find);
        found.by(algorithm)
    }

    /// Compiles a call.
    pub(super) fn compile(&self, key: &Key) -> Result<Compiled, Error> {
        let Inner { world, members, .. } = self;
        let collective = key.collective;
        let reducer = key.op.map(|op| Reducer::new(key.dtype, op)).transpose()?;
        let n_ports = world.engine.n_ports() as u32;
        let wanted = self.wanted(key)?;
        let is_written = wanted.as_ref().is_some_and(|wanted| wanted.is_written);
        let Choice { algorithm, ports, segment_bytes } = self.final_choice(key, wanted);
        let learns = !key.form.is_known(collective) && !algorithm.is_direct();
        if ports > n_ports {
            return Err(Error::Setting {
                setting: "ports",
                found: ports.to_string(),
                valid: format!("1 to {n_ports}, the number of ports of the communicator"),
            });
        }
        let plan = self.plan(&algorithm, key.root, ports, is_written)?;
        let (sizes, elem_bytes) = key.sizes(members.caller)?;
        let data = DataPlan { algorithm, ports, segment_bytes, plan };
        if !learns {
            let program = Arc::new(self.data_program(key, &data, sizes, elem_bytes)?);
            return Ok(Compiled { program, reducer, after_sizes: None });
        }
        let is_chosen = collective == Collective::Alltoall
            && key.options.algorithm.is_none()
            && self.preferred(key).is_none();
        let send_sizes = send_sizes(&sizes);
        let size_plan = match data.plan.reversed() {
            Some(back) => Arc::new(back),
            None => {
                self.plan(&data.algorithm.for_sizes(), key.root, ports, is_written)?.plan().clone()
            }
        };
        let program = compile_sizes(&size_plan);
        let call = (&data.algorithm.name, ports, members.fingerprint, "sizes");
        let program = self.with_signature(program, call_signature(key, &call, false));
        let after_sizes = AfterSizes { data, size_plan, is_chosen, send_sizes };
        let reducer = Some(Reducer::new(Dtype::U64, Op::Max)?);
        Ok(Compiled {
            program: Arc::new(program),
            reducer,
            after_sizes: Some(Arc::new(after_sizes)),
        })
    }

    /// The program that moves the data of a call.
    pub(crate) fn data_program(
        &self,
        key: &Key,
        data: &DataPlan,
        sizes: Sizes,
        elem_bytes: u64,
    ) -> Result<Program, Error> {
        let DataPlan { algorithm, ports, segment_bytes, plan } = data;
        let segment_bytes = Some(*segment_bytes);
        // Buffers that stay registered are not copied.
        let staged = self.world.engine.staged(key.options.stage_bytes);
        let staged = staged.filter(|_| !key.options.held);
        let in_place = key.in_place;
        let geometry = Geometry { sizes, elem_bytes, in_place, segment_bytes, staged };
        let program = compile(plan, &geometry);
        let mut program = program.map_err(|failure| self.failure(failure))?;
        // As much as half of the caches is for the library's own slots, and for the user.
        program.past_caches = self
            .world
            .settings
            .llc_bytes
            .is_some_and(|llc_bytes| program.user_bytes() > llc_bytes / 2);
        let whole_messages = has_whole_messages(key, plan, data.segment_bytes, elem_bytes);
        // If no transfer is cut, the length of segments does not matter.
        let segment_bytes = segment_bytes.filter(|_| !whole_messages);
        let settings = (&algorithm.name, *ports, segment_bytes, self.members.fingerprint);
        Ok(self.with_signature(program, call_signature(key, &settings, whole_messages)))
    }

    /// Sets a program's call signature and numbers its ranks as those of the world.
    fn with_signature(&self, program: Program, call: u16) -> Program {
        let members = &self.members;
        let program = Program { call, ..program };
        if members.is_world() {
            return program;
        }
        program.renumbered(|rank| members.world_rank(rank))
    }

    fn failure(&self, CompileFailure { lane, step, error }: CompileFailure) -> Error {
        Error::Plan { rank: self.members.me(), lane, step, source: error }
    }

    /// This rank's plan. A plan of a schedule that a user has written is first proved to be correct.
    fn plan(
        &self,
        algorithm: &Algorithm,
        root: Rank,
        ports: u32,
        is_written: bool,
    ) -> Result<Arc<CheckedPlan>, Error> {
        let Members { shape, map, caller, programs, .. } = &*self.members;
        let (collective, name) = (algorithm.collective, &algorithm.name);
        let key = PlanKey { collective, algorithm: name.clone(), root, ports };
        {
            let plans = &mut *lock(&programs.plans);
            if let Some(place) = plans.iter().position(|(other, _)| *other == key) {
                plans[place..].rotate_left(1);
                return Ok(plans[plans.len() - 1].1.clone());
            }
        }
        let refused = |reason| Error::NotServed { collective, name: name.to_string(), reason };
        let root = hopbine_torus::Rank(root);
        let request = Request { shape: shape.clone(), map: map.clone(), root, ports: Some(ports) };
        let expand = || {
            let schedule = algorithm.schedule(&request);
            let expansion = schedule
                .and_then(|schedule| schedule.expand())
                .map_err(|error| refused(error.to_string()))?;
            if is_written && shape.n_ranks() <= MOST_PROVED {
                check_correct(&expansion).map_err(|problem| Error::Schedule {
                    rank: self.members.me(),
                    collective,
                    problem: Box::new(problem),
                })?;
            }
            Ok::<_, Error>(expansion)
        };
        let expansion = match &self.world.settings.expansions {
            None => Arc::new(expand()?),
            Some(shared) => shared.get(self.members.fingerprint, &key, expand)?,
        };
        let plan = CheckedPlan::new(expansion.plan(hopbine_torus::Rank(caller.rank)));
        let plan = Arc::new(plan.map_err(|failure| self.failure(failure))?);
        let plans = &mut *lock(&programs.plans);
        if plans.len() == PLAN_LIMIT {
            plans.remove(0);
        }
        plans.push((key, plan.clone()));
        Ok(plan)
    }
}

/// The most ranks for which a user's schedule is proved to be correct; for more that would take minutes.
const MOST_PROVED: u32 = 1024;

/// Whether all ranks' plans perform their collective.
fn check_correct(flow: &dyn Flow) -> Result<(), ScheduleProblem> {
    let violations = check(flow, Expect::default());
    let wrong = violations.first().map(|first| ScheduleProblem::Wrong(first.to_string()));
    wrong.map_or(Ok(()), Err)
}

/// The sizes that a rank sends to others: by rank, the bytes of the block for it; at the end, the bytes of the
/// longest.
fn send_sizes(sizes: &Sizes) -> Box<[u64]> {
    let Sizes::PerBlock { send, .. } = sizes else { return Box::default() };
    let longest = send.counts.iter().copied().max();
    send.counts.iter().copied().chain(longest).collect()
}

/// The signature of a call ([`Tag::call`](crate::endpoint::Tag)): the same on ranks that make the same call, in
/// place or not. It depends on the sizes that all ranks know.
///
/// The upper byte is a hash of everything that determines the messages, and of the sizes unless `whole_messages`.
/// The lower byte depends on the whole call. It differs between calls with equal messages and sizes if their operators
/// or types differ. Other different calls have the same signature once in 65,536, or once in 256 if their messages
/// match.
fn call_signature(key: &Key, settings: &impl Hash, whole_messages: bool) -> u16 {
    let Key { collective, count, dtype, op, root, form, .. } = key;
    let mut sizes = DefaultHasher::new();
    if *form == Form::Regular {
        count.hash(&mut sizes);
    } else if form.is_known(*collective) {
        let unit = key.unit();
        key.all_counts().iter().for_each(|count| (count * unit).hash(&mut sizes));
    }
    let mut messages = DefaultHasher::new();
    (collective, root, form, settings).hash(&mut messages);
    if !whole_messages {
        (sizes.finish(), dtype.size_bytes()).hash(&mut messages);
    }
    let has_type = *form == Form::Regular || collective.is_reduction();
    let typed = if has_type { *dtype as u8 } else { 0 };
    let combined = op.map_or(0, |op| op as u8 + 1);
    let [upper, lower, ..] = messages.finish().to_le_bytes();
    let rest = lower.wrapping_add(sizes.finish() as u8);
    let rest = rest.wrapping_add(combined.wrapping_mul(16)).wrapping_add(typed);
    u16::from(upper) << 8 | u16::from(rest)
}

/// Whether every transfer of this call is one message that is not empty. All such calls with the same plan have the
/// same messages, whatever their sizes.
fn has_whole_messages(key: &Key, plan: &Plan, segment_bytes: u64, elem_bytes: u64) -> bool {
    let bytes = key.count.saturating_mul(elem_bytes);
    let few = segment_bytes.min(MIN_SEPARATE_RUN_BYTES);
    key.form == Form::Regular
        && plan.lanes.iter().all(|lane| {
            let Range { start, end } = lane.part.of(key.count);
            let len = end - start;
            match (lane.space.payload, u64::from(lane.space.n_positions)) {
                (Payload::Vector, 1) => len > 0 && bytes <= segment_bytes,
                (Payload::Vector, n) => len >= n && bytes <= few,
                _ => len > 0 && bytes.saturating_mul(u64::from(plan.n_ranks)) <= few,
            }
        })
}
