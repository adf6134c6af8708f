//! The timeline of a rank: its rings, the labels of its calls, and the offset of its clock from those of other hosts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};

use hopbine_meet::print_remark;

use super::ring::RecordRing;
use super::ticks::Ticks;
use super::{Label, Record, RecordKind, file};
use crate::Rank;
use crate::endpoint::Time;
use crate::sync::lock;

/// Rounds of the comparison of clocks between hosts.
const ROUNDS: usize = 16;

/// The file of a rank's timeline, and the number of records kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceConfig {
    /// The file's name. `%r` stands for the rank, `%j` for the number of the job. Without `%r`, the rank is inserted
    /// before the extension: `out.json` becomes `out.3.json` on rank 3.
    pub file: String,
    /// Number of latest records of 64 bytes kept for each port, and for the rank's calls.
    pub records: usize,
    /// A number that only the ranks of one world have, by which their files are known from those of another run.
    /// `None`: this process has all ranks.
    pub(crate) world: Option<u64>,
}

impl TraceConfig {
    /// Default of `records`.
    pub(crate) const RECORDS: usize = 65_536;

    /// A timeline written to `file`.
    pub fn new(file: impl Into<String>) -> Self {
        TraceConfig { file: file.into(), records: TraceConfig::RECORDS, world: None }
    }
}

/// The number of a world whose ranks this process has all.
static OWN_WORLD: LazyLock<u64> = LazyLock::new(hopbine_meet::fresh_number);

/// The rank's calls, and their labels.
struct Calls {
    ring: RecordRing,
    labels: Vec<Label>,
}

/// See the module documentation.
pub(crate) struct Tracer {
    config: TraceConfig,
    rank: Rank,
    ticks: Ticks,
    calls: Mutex<Calls>,
    /// Times in ticks at which this rank entered and left barriers.
    rounds: Mutex<Vec<[u64; 2]>>,
    is_written: AtomicBool,
}

impl Tracer {
    pub(crate) fn new(config: TraceConfig, rank: Rank, time: &Time) -> Self {
        let ticks = Ticks::new(time.clock());
        let ring = RecordRing::new(ticks.clone(), config.records);
        Tracer {
            calls: Mutex::new(Calls { ring, labels: Vec::new() }),
            config,
            rank,
            ticks,
            rounds: Mutex::default(),
            is_written: AtomicBool::new(false),
        }
    }

    /// A ring for one port.
    pub(crate) fn ring(&self) -> RecordRing {
        RecordRing::new(self.ticks.clone(), self.config.records)
    }

    /// The time, ticks.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.ticks.now()
    }

    /// The number of a label. There are as many as texts: calls that the same row of a table chooses for share one.
    pub(crate) fn label(&self, label: Label) -> u32 {
        let labels = &mut lock(&self.calls).labels;
        let known = labels.iter().position(|other| *other == label);
        known.unwrap_or_else(|| {
            labels.push(label);
            labels.len() - 1
        }) as u32
    }

    /// Records a call, whose first operation was `id`.
    pub(crate) fn call(&self, [start, end]: [u64; 2], label: u32, bytes: u64, id: u64) {
        let (step, kind) = (label, RecordKind::Call);
        let record = Record { start, end, id, bytes, step, kind, ..Record::default() };
        lock(&self.calls).ring.push(record);
    }

    /// Compares this rank's clock with the clocks of other ranks. `barrier` is a barrier. All ranks of a world on
    /// several hosts call this function.
    ///
    /// # Errors
    /// Errors of `barrier`.
    pub(crate) fn compare<E>(&self, mut barrier: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        for _ in 0..ROUNDS {
            let entered = self.now();
            barrier()?;
            lock(&self.rounds).push([entered, self.now()]);
        }
        Ok(())
    }

    /// Writes the timeline; later calls do nothing. A failure is only printed to standard error, because nothing
    /// depends on the file.
    pub(crate) fn write(&self, ports: &[RecordRing]) {
        // Relaxed: the writer uses no data of other callers.
        if self.is_written.swap(true, Ordering::Relaxed) {
            return;
        }
        let path = file::path(&self.config.file, self.rank);
        let Calls { ring, labels } = &*lock(&self.calls);
        let timeline = file::Timeline {
            rank: self.rank,
            world: self.config.world.unwrap_or(*OWN_WORLD),
            is_virtual: self.ticks.is_virtual(),
            scale: self.ticks.scale(),
            rounds: &lock(&self.rounds),
            calls: ring,
            labels,
            ports,
        };
        if let Err(error) = timeline.write(&path) {
            print_remark(format_args!("hopbine: HOPBINE_TRACE: {path} cannot be written: {error}"));
        }
        let n_dropped = timeline.n_dropped();
        if n_dropped > 0 && self.rank == 0 {
            print_remark(format_args!(
                "hopbine: HOPBINE_TRACE: the timeline of rank 0 lacks its first {n_dropped} records, which later ones have replaced; HOPBINE_TRACE_RECORDS (now {}) sets how many each port keeps",
                self.config.records
            ));
        }
    }
}
