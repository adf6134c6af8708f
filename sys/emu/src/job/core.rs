//! A job: ranks that share an arena. The ranks are threads of one process, or processes of one host.

use crate::job::device::Device;
use crate::job::nodes::NodePlacement;
use crate::job::records::{
    ArenaHeader, ArenaLayout, NodeRecord, PossibleHolder, RankRecord, TniRecord, VcqBlock,
};
use crate::job::stepping::Stepping;
use crate::limits::TNIS;
use crate::limits::coords;
use crate::limits::error::{JobError, Result, fail};
use crate::limits::ids::{Coords, VcqPlace, node_key};
use crate::mrq::{Chunk, Chunks};
use crate::shared::arena::{Arena, ArenaRef, Offset, Shared};
use crate::shared::copy::AddressSpace;
use crate::shared::registrations::{EntryHolders, StagTable};
use crate::sync::{AtomicU64, Ordering};
use crate::timing::links::{self, Calendar};
use crate::timing::model::Model;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, RwLock, Weak};
use utofu_sys::*;

/// A set of ranks that communicate.
pub struct Job {
    pub(crate) arena: Arena,
    layout: ArenaLayout,
    /// Distinguishes the jobs of one process in gate ids; 0 is the environment's job.
    pub(crate) serial: u16,
    pub(crate) placement: NodePlacement,
    pub(crate) model: Model,
    /// Moves the bytes in the late mode.
    pub(crate) device: Option<Device>,
    /// Decisions of the owner, if the job is stepped.
    pub(crate) stepping: Option<Stepping>,
    /// This process's rank, in a job of processes.
    pub(crate) me: Option<usize>,
    /// Process id of each rank, in a job of processes.
    processes: Vec<u32>,
    pub(crate) page: u64,
    /// Whether a waiting rank yields its processor: true if there are more ranks than processors.
    is_crowded: bool,
}

/// Consecutive unsuccessful polls before a yield; they take half a microsecond. A rank that yields of its own accord
/// mostly finds something earlier, and then does not yield twice as often as it intends.
const MISSES_PER_YIELD: u32 = 64;

thread_local! {
    /// Consecutive unsuccessful polls of this thread since this module's last yield.
    static MISSES: Cell<u32> = const { Cell::new(0) };
}

/// Jobs of threads by serial number, for calls on gates.
static JOBS: RwLock<Option<HashMap<u16, Weak<Job>>>> = RwLock::new(None);

impl Job {
    /// Creates a job whose ranks are threads of this process, without latencies. `coords` has one entry x y z a b c
    /// per rank; ranks with equal coordinates share a node, its TNIs and CQs.
    ///
    /// # Panics
    /// If [`Job::with_model`] returns an error.
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
        Job::of_threads(NodePlacement::new(&coords, None)?, model, None)
    }

    /// Creates a job of threads on a logical torus. Nodes are counted with x running fastest and have `per_node`
    /// ranks each: rank r is on node r / `per_node`.
    ///
    /// # Errors
    /// As [`Job::with_model`]; also a shape that has no Tofu coordinates.
    pub fn on_torus(
        shape: &[u32],
        per_node: usize,
        model: Model,
    ) -> std::result::Result<Arc<Job>, JobError> {
        let nodes = coords::of_shape(shape)?;
        let ranks: Vec<Coords> =
            nodes.iter().flat_map(|c| std::iter::repeat_n(*c, per_node)).collect();
        Job::of_threads(NodePlacement::new(&ranks, Some(coords::to_3d(shape)?))?, model, None)
    }

    /// Returns Tofu coordinates for a logical torus, x running fastest: one entry per node, all different. Even first
    /// and third sizes are folded through a and c, a second size that is a multiple of three through b, so that
    /// neighbours are one hop apart. The third size is multiplied by all sizes after it.
    ///
    /// # Errors
    /// [`JobError::Shape`] if a size is 0, or larger than 512, 768 and 512.
    pub fn coords_for_shape(shape: &[u32]) -> std::result::Result<Vec<[u8; 6]>, JobError> {
        coords::of_shape(shape)
    }

    pub(crate) fn of_threads(
        placement: NodePlacement,
        model: Model,
        stepping: Option<Stepping>,
    ) -> std::result::Result<Arc<Job>, JobError> {
        let mut jobs = JOBS.write().unwrap_or_else(|e| e.into_inner());
        let jobs = jobs.get_or_insert_default();
        let serial = (1..=u16::MAX)
            .find(|s| !jobs.contains_key(s))
            .ok_or_else(|| JobError::Shape("65535 jobs exist in this process".into()))?;
        let mut job = Job::private(placement, model, stepping)?;
        job.serial = serial;
        let job = Arc::new(job);
        jobs.insert(serial, Arc::downgrade(&job));
        Ok(job)
    }

    /// Creates a job in memory of this process alone.
    pub(crate) fn private(
        placement: NodePlacement,
        model: Model,
        stepping: Option<Stepping>,
    ) -> std::result::Result<Job, JobError> {
        let layout = ArenaLayout::of(&placement);
        let arena = Arena::private(layout.len)
            .map_err(|source| JobError::Map { bytes: layout.len, source })?;
        Job::assemble(arena, placement, model, stepping)
    }

    fn assemble(
        arena: Arena,
        placement: NodePlacement,
        model: Model,
        stepping: Option<Stepping>,
    ) -> std::result::Result<Job, JobError> {
        let layout = ArenaLayout::of(&placement);
        let header = arena.at::<ArenaHeader>(Offset::new(0));
        header.heap.init(layout.heap, layout.len);
        let page = rustix::param::page_size() as u64;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let is_crowded = stepping.is_none() && placement.node_of.len() > processors;
        let device = model.late.map(|_| Device::new(stepping.is_none()));
        let device = device.transpose().map_err(JobError::Thread)?;
        let (serial, me, processes) = (0, None, Vec::new());
        Ok(Job {
            arena,
            layout,
            serial,
            placement,
            model,
            device,
            stepping,
            me,
            processes,
            page,
            is_crowded,
        })
    }

    /// Creates a job of processes in their shared memory; this process is rank `me`.
    pub(crate) fn of_processes(
        arena: Arena,
        placement: NodePlacement,
        model: Model,
        me: usize,
        processes: Vec<u32>,
    ) -> std::result::Result<Job, JobError> {
        let mut job = Job::assemble(arena, placement, model, None)?;
        (job.me, job.processes) = (Some(me), processes);
        Ok(job)
    }

    /// Returns the job of threads with this serial number.
    pub(crate) fn of_serial(serial: u16) -> Option<Arc<Job>> {
        let jobs = JOBS.read().unwrap_or_else(|e| e.into_inner());
        jobs.as_ref()?.get(&serial)?.upgrade()
    }

    /// Counts a poll. After [`MISSES_PER_YIELD`] consecutive polls without success the thread yields its processor: a
    /// waiting program polls in an endless loop, perhaps for a rank that has no processor.
    #[inline]
    pub(crate) fn count_poll(&self, found: bool) {
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
        self.placement.node_of.len()
    }

    #[inline]
    pub(crate) fn node_of(&self, rank: usize) -> usize {
        self.placement.node_of[rank] as usize
    }

    pub(crate) fn nodes(&self) -> &[Coords] {
        &self.placement.nodes
    }

    pub(crate) fn coords_of(&self, rank: usize) -> Coords {
        self.placement.nodes[self.node_of(rank)]
    }

    pub(crate) fn header(&self) -> &ArenaHeader {
        self.arena.at(Offset::new(0))
    }

    pub(crate) fn rank_record(&self, rank: usize) -> &RankRecord {
        self.arena.at(self.layout.ranks.nth(rank))
    }

    #[inline]
    pub(crate) fn node(&self, node: usize) -> &NodeRecord {
        self.arena.at(self.layout.nodes.nth(node))
    }

    /// Returns a TNI by its number, or INVALID_TNI_ID.
    pub(crate) fn tni(&self, node: usize, tni: u16) -> Result<&TniRecord> {
        match self.node(node).tnis.get(usize::from(tni)) {
            Some(record) => Ok(record),
            None => fail(UTOFU_ERR_INVALID_TNI_ID, format!("TNI {tni}: must be below {TNIS}")),
        }
    }

    /// Returns the node and the TNI of an id, if the job has the node.
    pub(crate) fn tni_of(
        &self,
        id: utofu_vcq_id_t,
        place: VcqPlace,
    ) -> Option<(usize, &TniRecord)> {
        let node = self.placement.find(node_key(id))?;
        Some((node, &self.node(node).tnis[usize::from(place.tni.number)]))
    }

    /// Returns the shared half and the registrations of the VCQ with this id, if such a VCQ has ever existed.
    pub(crate) fn queue_at(
        &self,
        id: utofu_vcq_id_t,
        place: VcqPlace,
    ) -> Option<(ArenaRef<VcqBlock>, ArenaRef<StagTable>)> {
        let (_, tni) = self.tni_of(id, place)?;
        let (block, table) = tni.cqs[usize::from(place.cq)].vcq(place.index())?;
        Some((self.arena.at(block).into(), self.arena.at(table).into()))
    }

    /// Returns how the calling process reaches a rank's memory.
    #[inline]
    pub(crate) fn address_space(&self, rank: u32) -> AddressSpace {
        match self.processes.get(rank as usize) {
            Some(&process) if self.me != Some(rank as usize) => AddressSpace::Process(process),
            _ => AddressSpace::Local,
        }
    }

    /// Returns a [`FindHolders`](crate::shared::registrations::FindHolders).
    pub(crate) fn find_holders(&self) -> impl FnMut(bool) -> EntryHolders + '_ {
        let mut possible = None;
        move |checks| {
            if self.me.is_none() {
                return EntryHolders::Running;
            }
            let all = || {
                let processes = self.processes.iter().enumerate();
                let holder = |(rank, &pid)| PossibleHolder::new(self.rank_record(rank), pid);
                processes.map(holder).collect()
            };
            PossibleHolder::remaining(possible.get_or_insert_with(all), checks)
        }
    }

    pub(crate) fn hops(&self, from: usize, to: usize) -> u64 {
        self.route(from, to).count() as u64
    }

    /// Returns the links from one node to another, as [`links::route`].
    fn route(&self, from: usize, to: usize) -> impl Iterator<Item = (Coords, usize)> {
        let NodePlacement { nodes, extent, .. } = &self.placement;
        links::route(nodes[from], nodes[to], *extent)
    }

    /// Returns the links from one node to another, and the TNI at which the data arrive. Links of coordinates where
    /// the job has no node are left out: they are always free.
    pub(crate) fn path<'a>(
        &'a self,
        from: usize,
        to: usize,
        arriving: &'a Calendar,
    ) -> Vec<&'a Calendar> {
        let known = self.route(from, to).filter_map(|(at, out)| {
            self.placement.node_at(at).map(|node| &self.node(node).links[out])
        });
        known.chain([arriving]).collect()
    }

    /// Returns the value whose offset is in `place`; the first call creates it. Callers hold a lock that guards
    /// `place`.
    pub(crate) fn lazy<T: Shared>(&self, place: &AtomicU64) -> Result<Offset<T>> {
        let old = place.load(Ordering::Relaxed);
        if old != 0 {
            return Ok(Offset::new(old));
        }
        match self.header().heap.create::<T>() {
            Some(off) => {
                // Release pairs with the Acquire of threads that follow the offset without the lock.
                place.store(off.bytes(), Ordering::Release);
                Ok(off)
            }
            None => fail(
                UTOFU_ERR_OUT_OF_MEMORY,
                format!("the job's {} bytes for queues are used up", self.layout.len),
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

/// A chunk's number is its offset in units of its alignment.
impl Chunks for Job {
    fn create(&self) -> Option<u64> {
        Some(self.header().heap.create::<Chunk>()?.bytes() / align_of::<Chunk>() as u64)
    }

    #[inline]
    fn at(&self, chunk: u64) -> &Chunk {
        self.arena.at(Offset::new(chunk * align_of::<Chunk>() as u64))
    }
}
