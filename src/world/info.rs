//! The description of a world, for people, reports and support.

use serde::Serialize;

use crate::comm::state::small::GatesInfo;
use crate::endpoint::shm::Reading;
use crate::memory::CacheStats;

/// The current state of a world.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Info {
    /// Version of this library.
    pub hopbine: &'static str,
    /// `tofu`, `shm`, `emu` or `mpi`.
    pub backend: &'static str,
    /// The device.
    #[serde(flatten)]
    pub device: DeviceInfo,
    /// Backends that were tried and cannot be used.
    pub tried: Vec<Attempt>,
    /// Coordinates x, y, z, a, b, c of this rank's node.
    pub tofu_coordinates: [u8; 6],
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// Ranks on this rank's node of the device; without a device, on its host.
    pub ranks_per_node: u32,
    /// Number of hosts of all ranks. Ranks whose processes see each other are on one host.
    pub hosts: u32,
    /// Ranks with which this one communicates through shared memory; it reaches the others through the backend.
    pub in_memory: u32,
    /// Whether long messages between these ranks are read from the memory of their senders.
    pub memory_reading: Reading,
    /// Shape of the world.
    pub torus: String,
    /// Where that shape is from, in words: `HOPBINE_TORUS`, Fujitsu MPI, the Tofu device, the hosts; without these, the
    /// number of ranks.
    pub torus_source: &'static str,
    /// This rank's coordinates in that shape.
    pub coordinates: Vec<u32>,
    /// Ports of this rank.
    pub ports: u32,
    /// Worker threads that drive the ports; 0 if the caller drives them.
    pub workers: usize,
    /// Which threads drive the ports, on which cores and why, in words.
    pub driven_by: String,
    /// The workers' cores, one by one; empty if there are none or they are not pinned.
    pub worker_cores: Vec<usize>,
    /// Whether waiting threads have a core of their own, and spin.
    pub own_cores: bool,
    /// Seconds without progress after which a wait is too long.
    pub timeout_seconds: f64,
    /// Waits of this rank that took longer, whether or not this rank has reported them.
    pub long_waits: u64,
    /// Barrier gates.
    pub gates: GatesInfo,
    /// The registration cache: whether registrations are kept, and its figures.
    pub registration_cache: Option<CacheStats>,
    /// Variables of the environment that hopbine reads, as they are set.
    pub environment: Vec<(String, String)>,
}

/// The properties that a device reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The file of the uTofu library, or `emulated device`.
    pub library: String,
    /// Version of uTofu that the library implements.
    pub utofu_version: String,
    /// Version of the interconnect.
    pub tofu_version: String,
    /// Numbers of the TNIs for one-sided communication.
    pub onesided_tnis: Vec<u16>,
    /// The capabilities of the first of these TNIs; `None` if they cannot be queried.
    pub onesided: Option<Onesided>,
    /// Numbers of the TNIs with barrier gates.
    pub barrier_tnis: Vec<u16>,
    /// The capabilities of the first of these TNIs; `None` if they cannot be queried.
    pub barrier: Option<Barrier>,
}

/// The free queues of a TNI for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FreeQueues {
    /// The TNI.
    pub tni: u16,
    /// VCQs that can still be created.
    pub vcqs: usize,
    /// CQs that these VCQs are on.
    pub cqs: usize,
}

impl Info {
    /// The wires to the other ranks, the number of hosts and, if both sides copy long messages within a host, the
    /// reason for that.
    pub fn wires(&self) -> String {
        let far = self.size - 1 - self.in_memory;
        let hosts = match self.hosts {
            1 => "1 host".to_owned(),
            hosts => format!("{hosts} hosts"),
        };
        let with = |n: u32| if n == 1 { "1 rank".to_owned() } else { format!("{n} ranks") };
        let wires = match (self.in_memory, far) {
            (0, 0) => "none: there is one rank".to_owned(),
            (near, 0) => format!("shared memory with {}, on {hosts}", with(near)),
            (0, far) => format!("{} with {}, on {hosts}", self.backend, with(far)),
            (near, far) => {
                let (near, far) = (with(near), with(far));
                format!("shared memory with {near}, {} with {far}, on {hosts}", self.backend)
            }
        };
        match &self.memory_reading {
            Reading::Unused | Reading::On => wires,
            Reading::Off { reason } => {
                format!("{wires}; no rank reads another's memory: {reason}")
            }
        }
    }
}

impl DeviceInfo {
    /// The properties of a device without Tofu.
    pub(super) fn without_tofu(name: &str) -> Self {
        DeviceInfo {
            library: name.to_owned(),
            utofu_version: "none".to_owned(),
            tofu_version: "none".to_owned(),
            onesided_tnis: Vec::new(),
            onesided: None,
            barrier_tnis: Vec::new(),
            barrier: None,
        }
    }
}

/// A backend that was tried and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Attempt {
    /// Its name.
    pub backend: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// One-sided capabilities; sizes in bytes. Names as in the manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields' names are the manual's, whose words we would repeat")]
#[non_exhaustive]
pub struct Onesided {
    pub num_cmp_ids: u32,
    pub num_reserved_stags: u32,
    pub cache_line_size: usize,
    pub stag_address_alignment: usize,
    pub max_putget_size: usize,
    pub max_piggyback_size: usize,
    pub max_edata_size: usize,
    pub max_mtu: usize,
    pub armw: bool,
    pub session_mode: bool,
}

/// Barrier capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields' names are the manual's, whose words we would repeat")]
#[non_exhaustive]
pub struct Barrier {
    pub reduce_ops: u64,
    pub max_uint64_reduction: usize,
    pub max_double_reduction: usize,
}

/// The variables of the environment that hopbine reads, as they are set.
pub(super) fn environment() -> Vec<(String, String)> {
    let mut ours: Vec<(String, String)> = std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| name.starts_with("HOPBINE_"))
        .collect();
    ours.sort();
    ours
}
