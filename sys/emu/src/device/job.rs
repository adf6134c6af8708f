//! Jobs and ranks: which ranks share an arena, and for which rank a thread acts.
//!
//! A job of threads lives in one process; each thread says which rank it is ([`Job::enter`]). Only
//! calls that have no handle or id to go by need that: creating VCQs and gates, asking for
//! coordinates. A job of processes comes from the environment, and every thread of a process is
//! that process's rank.

use crate::arena::{Arena, Found, Off, Shared};
use crate::coords;
use crate::copy::Space;
use crate::env;
use crate::error::{JobError, Result, fail};
use crate::ids::{Coords, VcqPlace, node_key};
use crate::late::Device;
use crate::layout::{Header, NodeRecord, Plan, RankRecord, TNIS, TniRecord, VcqBlock};
use crate::links::{self, Calendar};
use crate::mem::StagTable;
use crate::model::Model;
use crate::mrq::{Chunk, Chunks};
use crate::nodes::Layout;
use crate::stepped::Stepping;
use crate::sync::{AtomicU64, Ordering};
use crate::targets::Target;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::Write;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock, RwLock, Weak};
use utofu_sys::*;

/// A set of ranks that communicate.
pub struct Job {
    pub(crate) arena: Arena,
    plan: Plan,
    /// Tells the jobs of one process apart in gate ids; 0 is the environment's job.
    pub(crate) serial: u16,
    pub(crate) layout: Layout,
    pub(crate) model: Model,
    /// What moves the bytes, in the late mode.
    pub(crate) device: Option<Device>,
    /// What its owner decides, if the job is stepped.
    pub(crate) stepping: Option<Stepping>,
    /// This process's rank, in a job of processes.
    pub(crate) me: Option<usize>,
    pub(crate) page: u64,
    /// Whether a rank that waits yields its processor: there are more ranks than processors.
    is_crowded: bool,
}

/// The job and the rank that a call acts for.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) job: Arc<Job>,
    pub(crate) rank: usize,
}

/// Polls in a row that find nothing before a yield: half a microsecond. A rank that yields by
/// itself finds something earlier, mostly, and must not yield twice as often as it wants to.
const MISSES_PER_YIELD: u32 = 64;

thread_local! {
    /// Polls of this thread, since its last yield here, that found nothing in a row.
    static MISSES: Cell<u32> = const { Cell::new(0) };
    static ENTERED: RefCell<Vec<Context>> = const { RefCell::new(Vec::new()) };
}

/// Jobs of threads by serial number, for calls on gates.
static JOBS: RwLock<Option<HashMap<u16, Weak<Job>>>> = RwLock::new(None);

/// The environment's job, or why there is none.
static ENVIRONMENT: OnceLock<std::result::Result<Context, String>> = OnceLock::new();

/// While it lives, the thread that made it acts as one rank of a job.
#[must_use = "the thread acts as the rank only as long as this value lives"]
pub struct Entered {
    /// Not Send: it belongs to the thread.
    thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with(|stack| stack.borrow_mut().pop());
    }
}

impl Job {
    /// A job whose ranks are threads of this process, without latencies. One entry per rank,
    /// x y z a b c; ranks with equal coordinates share a node, its TNIs and CQs.
    ///
    /// # Panics
    /// Where [`Job::with_model`] gives an error.
    #[must_use]
    pub fn threads(coords: Vec<[u8; 6]>) -> Arc<Job> {
        match Job::with_model(coords, Model::default()) {
            Ok(job) => job,
            Err(e) => panic!("{e}"),
        }
    }

    /// As [`Job::threads`], with a latency model.
    ///
    /// # Errors
    /// No ranks; coordinates out of range; no address space for the queues.
    pub fn with_model(
        coords: Vec<[u8; 6]>,
        model: Model,
    ) -> std::result::Result<Arc<Job>, JobError> {
        Job::of_threads(Layout::new(&coords, None)?, model, None)
    }

    /// A job of threads on a logical torus, `per_node` ranks on each node: rank r is on node
    /// r / `per_node`, nodes are counted with x running fastest.
    ///
    /// # Errors
    /// As [`Job::with_model`]; a shape that has no Tofu coordinates.
    pub fn on_torus(
        shape: &[u32],
        per_node: usize,
        model: Model,
    ) -> std::result::Result<Arc<Job>, JobError> {
        let nodes = coords::of_shape(shape)?;
        let ranks: Vec<Coords> =
            nodes.iter().flat_map(|c| std::iter::repeat_n(*c, per_node)).collect();
        Job::of_threads(Layout::new(&ranks, Some(coords::three(shape)?))?, model, None)
    }

    /// Tofu coordinates for a logical torus, x running fastest; one entry per node, all different.
    /// Even first and third sizes are folded through a and c, a second size that is a multiple of
    /// three through b, so that neighbours are one hop apart; sizes behind the third count as part
    /// of it.
    ///
    /// # Errors
    /// [`JobError::Shape`] if a size is 0, or larger than 512, 768 and 512.
    pub fn coords_for_shape(shape: &[u32]) -> std::result::Result<Vec<[u8; 6]>, JobError> {
        coords::of_shape(shape)
    }

    pub(crate) fn of_threads(
        layout: Layout,
        model: Model,
        stepping: Option<Stepping>,
    ) -> std::result::Result<Arc<Job>, JobError> {
        let plan = Plan::new(layout.node_of.len(), layout.nodes.len());
        let arena =
            Arena::private(plan.len).map_err(|source| JobError::Map { bytes: plan.len, source })?;
        let mut jobs = JOBS.write().unwrap_or_else(|e| e.into_inner());
        let jobs = jobs.get_or_insert_default();
        let serial = (1..=u16::MAX)
            .find(|s| !jobs.contains_key(s))
            .ok_or_else(|| JobError::Shape("65535 jobs exist in this process".into()))?;
        let job = Arc::new(Job::assemble(arena, plan, serial, layout, model, None, stepping)?);
        jobs.insert(serial, Arc::downgrade(&job));
        Ok(job)
    }

    pub(crate) fn assemble(
        arena: Arena,
        plan: Plan,
        serial: u16,
        layout: Layout,
        model: Model,
        me: Option<usize>,
        stepping: Option<Stepping>,
    ) -> std::result::Result<Job, JobError> {
        let header = arena.at::<Header>(Off::new(0));
        header.heap.start(plan.heap, plan.len);
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = u64::try_from(page).unwrap_or(4096);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_crowded = stepping.is_none() && layout.node_of.len() > processors;
        let device = model.late.map(|_| Device::new(stepping.is_none()));
        let device = device.transpose().map_err(JobError::Thread)?;
        Ok(Job { arena, plan, serial, layout, model, device, stepping, me, page, is_crowded })
    }

    /// Notes a poll. After many in a row that `found` nothing the thread yields its processor: a
    /// program polls without end while it waits, perhaps for a rank that has no processor.
    #[inline]
    pub(crate) fn polled(&self, found: bool) {
        if !self.is_crowded {
            return;
        }
        let misses = if found { 0 } else { MISSES.get() + 1 };
        MISSES.set(misses % MISSES_PER_YIELD);
        if misses == MISSES_PER_YIELD {
            std::thread::yield_now();
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn size(&self) -> usize {
        self.layout.node_of.len()
    }

    /// Makes the calling thread act as `rank` until the returned value is dropped. May be nested.
    ///
    /// # Panics
    /// If the job has no such rank.
    pub fn enter(self: &Arc<Self>, rank: usize) -> Entered {
        assert!(rank < self.size(), "rank {rank} of a job of {} ranks", self.size());
        let context = Context { job: self.clone(), rank };
        ENTERED.with(|stack| stack.borrow_mut().push(context));
        Entered { thread: PhantomData }
    }

    #[inline]
    pub(crate) fn node_of(&self, rank: usize) -> usize {
        self.layout.node_of[rank] as usize
    }

    pub(crate) fn nodes(&self) -> &[Coords] {
        &self.layout.nodes
    }

    pub(crate) fn coords_of(&self, rank: usize) -> Coords {
        self.layout.nodes[self.node_of(rank)]
    }

    pub(crate) fn header(&self) -> &Header {
        self.arena.at(Off::new(0))
    }

    pub(crate) fn rank_record(&self, rank: usize) -> &RankRecord {
        self.arena.at(self.plan.ranks.nth(rank))
    }

    #[inline]
    pub(crate) fn node(&self, node: usize) -> &NodeRecord {
        self.arena.at(self.plan.nodes.nth(node))
    }

    /// A TNI by its number; INVALID_TNI_ID.
    pub(crate) fn tni(&self, node: usize, tni: u16) -> Result<&TniRecord> {
        match self.node(node).tnis.get(usize::from(tni)) {
            Some(record) => Ok(record),
            None => fail(UTOFU_ERR_INVALID_TNI_ID, format!("TNI {tni}: must be below {TNIS}")),
        }
    }

    /// The node and the TNI that an id names, if the job has the node.
    pub(crate) fn tni_of(
        &self,
        id: utofu_vcq_id_t,
        place: VcqPlace,
    ) -> Option<(usize, &TniRecord)> {
        let node = self.layout.find(node_key(id))?;
        Some((node, &self.node(node).tnis[usize::from(place.tni)]))
    }

    /// Where the VCQ of an id and its registrations are, if there ever was one.
    pub(crate) fn queue_at(
        &self,
        id: utofu_vcq_id_t,
        place: VcqPlace,
    ) -> Option<(Found<VcqBlock>, Found<StagTable>)> {
        let (_, tni) = self.tni_of(id, place)?;
        let (block, table) = tni.cqs[usize::from(place.cq)].vcq(place.index())?;
        Some((self.arena.at(block).into(), self.arena.at(table).into()))
    }

    /// The VCQ of an id, if there is one now.
    pub(crate) fn find(&self, id: utofu_vcq_id_t, place: VcqPlace) -> Option<Target<'_>> {
        let at = |cq| {
            let (block, table) = self.queue_at(id, VcqPlace { cq, ..place })?;
            // SAFETY: the arena is mapped as long as this job is.
            let (block, table) = unsafe { (block.get(), table.get()) };
            block.is_alive().then_some(Target { block, table })
        };
        at(place.cq).or_else(|| self.other_cq(place.cq).and_then(at))
    }

    /// The first CQ of the rank that owns `cq`, if that is another one. Some programs compute the
    /// CQs of the other ranks on a node, from tables of machines that share them out otherwise (2
    /// ranks: 0 and 6; 3: 0, 4, 8; 4: 0, 2, 5, 8). Here each of these CQs belongs to the rank that
    /// the program means. 0, 3, 6, 9 for 4 ranks do not: they need `HOPBINE_EMU_CQS`.
    #[cold]
    fn other_cq(&self, cq: u8) -> Option<u8> {
        let first = self.layout.sharing.first_cq(cq.into()) as u8;
        (self.layout.most_per_node > 1 && first != cq).then_some(first)
    }

    /// How the calling process reaches a rank's memory.
    #[inline]
    pub(crate) fn space_of(&self, rank: u32) -> Space {
        match self.me {
            None => Space::Here,
            Some(me) if me == rank as usize => Space::Here,
            // Relaxed: set before the ranks met at the rendezvous.
            Some(_) => Space::Process(self.rank_record(rank as usize).pid.load(Ordering::Relaxed)),
        }
    }

    /// Whether a process that lives may hold a registration.
    pub(crate) fn is_holding(&self) -> bool {
        self.me.is_none() || (0..self.size()).any(|rank| self.rank_record(rank).is_holding())
    }

    pub(crate) fn hops(&self, from: usize, to: usize) -> u64 {
        coords::hops(self.layout.nodes[from], self.layout.nodes[to], self.layout.extent)
    }

    /// The links that data take from one node to another, and the TNI where they arrive. Those of
    /// coordinates where the job has no node are free.
    pub(crate) fn path<'a>(
        &'a self,
        from: usize,
        to: usize,
        arriving: &'a Calendar,
    ) -> Vec<&'a Calendar> {
        let Layout { nodes, extent, .. } = &self.layout;
        let links = links::route(nodes[from], nodes[to], *extent);
        let known = links.filter_map(|(at, out)| {
            self.layout.node_at(at).map(|node| &self.node(node).links[out])
        });
        known.chain([arriving]).collect()
    }

    /// The value whose offset `place` holds, created at the first call. Callers hold a lock that
    /// guards `place`.
    pub(crate) fn lazy<T: Shared>(&self, place: &AtomicU64) -> Result<Off<T>> {
        let old = place.load(Ordering::Relaxed);
        if old != 0 {
            return Ok(Off::new(old));
        }
        match self.header().heap.create::<T>() {
            Some(off) => {
                // Release pairs with the Acquire of whoever follows the offset without the lock.
                place.store(off.bytes(), Ordering::Release);
                Ok(off)
            }
            None => fail(
                UTOFU_ERR_OUT_OF_MEMORY,
                format!("the job's {} bytes for queues are used up", self.plan.len),
            ),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.serial != 0
            && let Some(jobs) = &mut *JOBS.write().unwrap_or_else(|e| e.into_inner())
        {
            jobs.remove(&self.serial);
        }
    }
}

impl Chunks for Job {
    fn create(&self) -> Option<u64> {
        Some(self.header().heap.create::<Chunk>()?.bytes())
    }

    #[inline]
    fn at(&self, place: u64) -> &Chunk {
        self.arena.at(Off::new(place))
    }
}

/// Ends the process with a message, where the real machine kills it.
pub(crate) fn fatal(message: &str) -> ! {
    // The test harness captures eprintln. A failure to write cannot be reported.
    let _ = writeln!(std::io::stderr(), "utofu-emu: {message}");
    std::process::abort();
}

/// The job and the rank that the calling thread acts for.
pub(crate) fn current() -> Result<Context> {
    match known() {
        Some(context) => Ok(context),
        None => environment().clone().or_else(|e| fail(UTOFU_ERR_FATAL, e)),
    }
}

/// The same, if it is known without waiting for other ranks.
pub(crate) fn known() -> Option<Context> {
    let entered = ENTERED.with(|stack| stack.borrow().last().cloned());
    entered.or_else(|| ENVIRONMENT.get()?.as_ref().ok().cloned())
}

fn environment() -> &'static std::result::Result<Context, String> {
    ENVIRONMENT.get_or_init(|| {
        let (job, rank) = env::attach().map_err(|e| e.to_string())?;
        Ok(Context { job: Arc::new(job), rank })
    })
}

/// The job of a gate id.
pub(crate) fn by_serial(serial: u16) -> Option<Arc<Job>> {
    let entered = ENTERED.with(|stack| {
        let stack = stack.borrow();
        // The caller has built an id without a number: it belongs to the caller's job.
        let top = stack.last().filter(|c| serial == 0 || c.job.serial == serial);
        top.map(|c| c.job.clone())
    });
    entered.or_else(|| {
        if serial == 0 {
            return environment().as_ref().ok().map(|c| c.job.clone());
        }
        let jobs = JOBS.read().unwrap_or_else(|e| e.into_inner());
        jobs.as_ref()?.get(&serial)?.upgrade()
    })
}
