//! The table of environment variables.

use super::Reader::{EmulatedDevice, MpiProgram, Process, Program};
use super::Values::{Number, Seconds, Switch, SwitchOr, SwitchOrPath, Text, Words};
use super::Variable;

/// Longest time of a single cost, a thousand seconds: sums of many such times stay below 2^64 ns.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// Defines a static for each row, and [`ALL`] with all of them.
macro_rules! variables {
    ($($id:ident: $values:expr, $default:literal, $reader:ident, $example:literal, $meaning:literal;)*) => {
        $(
            #[doc = concat!("`HOPBINE_", stringify!($id), "`: ", $meaning)]
            pub static $id: Variable = Variable {
                name: concat!("HOPBINE_", stringify!($id)),
                values: $values,
                default: $default,
                reader: $reader,
                meaning: $meaning,
                example: $example,
            };
        )*
        /// All variables, by reader.
        pub static ALL: &[&Variable] = &[$(&$id),*];
    };
}

variables! {
    BACKEND: Words(&["auto", "tofu", "shm", "mpi", "emu", "sim", "sim-utofu"]),
        "auto: Tofu where there is one, shared memory if all ranks are on one host, else MPI", Program, "shm",
        "What carries the messages. `emu` is the emulated Tofu device; `sim` and `sim-utofu`, with all ranks in one \
         thread, are for `hopbine run` only. The value must be the same on all ranks.";
    ALGORITHM: Text("COLLECTIVE=ALGORITHM, separated by commas"),
        "the library chooses", Program, "allreduce=bine,alltoall=bruck:4",
        "Algorithms to use instead of the library's choice. Where one does not serve a call, the library \
         chooses. The value must be the same on all ranks. `hopbine list` prints the names.";
    TUNING: Text("network, memory, tofu-d, mpi, or the path of a decision table"),
        "the built-in table for the backend", Program, "tuned.toml",
        "Decision table to use instead of the built-in one: which algorithm serves a call that names none, on how \
         many ports, with which longest message. A table belongs to a wire, which it names: `memory` to shared \
         memory, the other built-in ones to networks. It must be the same on all ranks. `hopbine tune` writes such \
         tables.";
    GATE_SUM: Switch, "off", Program, "on",
        "Whether barrier gates may add floating-point numbers. They round a sum once, so its last bits may differ \
         from those of other algorithms. The value must be the same on all ranks.";
    DRIVE: Words(&["auto", "workers", "worker", "inline"]),
        "auto: a worker for each port if the program's threads leave enough cores free, one worker if they leave \
         one; inline under LD_PRELOAD", Program, "inline",
        "Who drives the ports of a rank: a thread for each port (`workers`), one thread for all (`worker`), or the \
         caller while it waits or tests (`inline`).";
    CORES: Text("core numbers and ranges, separated by commas"),
        "spread over the free cores", Program, "54-59",
        "Cores for the workers of all ranks of a node, in the order of the ports. Each rank uses those that it may run \
         on; if there are none, any.";
    TIMEOUT: Seconds, "60", Program, "20",
        "Seconds without progress after which a wait is too long. Ranks also wait this long for each other at \
         start-up.";
    ON_TIMEOUT: Words(&["warn", "fail"]), "warn", Program, "fail",
        "What a rank does when a wait is too long. `warn` prints a message and waits on; the call fails only if a \
         rank is gone or has made another call. `fail` lets the call fail.";
    UNEXPECTED_BYTES: Number(1, u64::MAX), "1048576", Program, "4194304",
        "Bytes of unexpected short messages that a port keeps before it stops the senders. Until a sender learns \
         of that, it may send up to 20 KiB more on Tofu, 1.9 MiB over MPI.";
    TRACE: Text("the name of a file, with %r for the rank and %j for the job's number"),
        "no timeline", Program, "trace.json",
        "Each rank writes its timeline at its end: calls, messages, copies and reductions of each port, as \
         Chrome trace JSON for `hopbine trace`. Without %r in the name, the rank is put before its extension, as in \
         trace.3.json. The value must be the same on all ranks.";
    TRACE_RECORDS: Number(1, 1 << 24), "65536", Program, "1000000",
        "Records of 64 bytes that each port keeps for the timeline. Newer records replace the oldest.";
    TORUS: Text("sizes such as 4x2x2, with m behind a size for a dimension that does not wrap"),
        "the machine's; else one row on the emulated device and for up to 64 ranks in shared memory, nearly cubic elsewhere",
        Process, "4x2x2",
        "Shape of the torus of nodes. The product of the sizes is the number of nodes, HOPBINE_SIZE / \
         HOPBINE_RANKS_PER_NODE. On the emulated device all dimensions wrap.";
    RANK_MAP: Text("column-major, row-major, hosts or the path of a file"),
        "column-major", Process, "row-major",
        "Order of the ranks on the torus. A file has one line of coordinates for each rank.";
    RANKS_PER_NODE: Number(1, u32::MAX as u64),
        "on Tofu the device's number; over MPI that of each host, if it is the same on all and no torus is set; else 1",
        Process, "4",
        "Ranks on each node. On Tofu another number than the device's is refused.";
    PORTS: Number(1, u32::MAX as u64),
        "two per dimension, but at most one per network interface", Process, "6",
        "Ports of each rank.";
    SHM: Switch, "on", Process, "off",
        "Whether ranks of one node exchange messages through shared memory, beside Tofu or MPI.";
    SHM_READ: Switch, "on", Process, "off",
        "Whether a rank reads long messages from the sender's memory (cross-memory attach), where the system \
         permits it.";
    SHM_GROUP: Number(0, 1 << 20),
        "the ranks whose cores share a cache or a memory (NUMA node), where that halves the way of a short call", Process,
        "12",
        "Consecutive ranks that form a group where all ranks are on one host; 0: no groups. A short barrier or reduction \
         is performed within the groups first, then between them. The value must be the same on all ranks.";
    REG_CACHE: SwitchOr("trust"), "on", Process, "trust",
        "Whether registrations of users' memory are kept for later calls. With `on` they are kept where the system \
         reports memory that is freed. With `trust` they are kept elsewhere, too: the program promises not to unmap \
         memory, and hopbine sets the C library's allocator to return none to the system. Start-up fails if that \
         cannot be set.";
    REG_CACHE_MAX_BYTES: Number(1, u64::MAX), "no bound", Process, "4294967296",
        "Largest number of bytes in kept registrations.";
    REG_CACHE_MAX_REGIONS: Number(1, u32::MAX as u64), "1024", Process, "256",
        "Largest number of kept registrations.";
    STAGE_BYTES: Number(0, u64::MAX), "`stage_bytes` of the decision table, else 524288", Process, "0",
        "Where registrations of users' memory cannot be kept: the most bytes that a call copies to save two \
         registrations, the number that each port needs. A call copies if its longer buffer has at most this many \
         bytes for each two registrations; else it registers its buffers. `hopbine tune --measure` finds the number.";
    UTOFU_LIB: Text("a path"),
        "libtofucom.so in the dynamic loader's path, then /lib64/libtofucom.so", Process, "/lib64/libtofucom.so",
        "Fujitsu's uTofu library.";
    RANK: Number(0, u64::MAX), "from MPI's or Slurm's launcher, else 0", Process, "0",
        "This rank. `hopbine launch` sets it.";
    SIZE: Number(1, 1 << 20), "from MPI's or Slurm's launcher, else 1", Process, "8",
        "Number of ranks. `hopbine launch` sets it.";
    RENDEZVOUS: Text("a path on a file system that all ranks share"),
        "a file of this user, if a launcher started all ranks on one host", Process, "/shared/job-7",
        "File by which ranks find each other at start-up. `hopbine launch` sets it.";
    REPORT: SwitchOrPath, "off", MpiProgram, "report.%j.txt",
        "Whether rank 0 writes a report at its end: what served the calls, how long they took, and why they were \
         served so. It goes to standard error, or to the end of a file; %j in the file's name is the job's number \
         (PJM_JOBID, SLURM_JOB_ID, PBS_JOBID, else the number of the process).";
    START: Words(&["init", "call"]), "init", MpiProgram, "call",
        "When HB_ calls start hopbine: in `MPI_Init`, or in `HB_Init` or the first blocking call on all \
         ranks.";
    ONLY: Text("names of collectives, separated by commas"), "all", MpiProgram, "allreduce,bcast",
        "The collectives that hopbine serves. MPI serves the others. The value must be the same on all ranks.";
    EXCEPT: Text("names of collectives, and requests, separated by commas"),
        "none", MpiProgram, "alltoall,requests",
        "The collectives that MPI serves. `requests` stands for all non-blocking and persistent calls. The value must \
         be the same on all ranks.";
    EMU_LATE: Number(0, u64::MAX), "off", EmulatedDevice, "7",
        "Seed of the late mode: data move as late as uTofu permits. A put writes just before its notice, and its \
         source is read just before its completion.";
    EMU_BUSY: Number(0, u8::MAX as u64), "0", EmulatedDevice, "64",
        "How many of 256 posts fail as if the transmit queue (TOQ) were full.";
    EMU_CHECKED: Switch, "off", EmulatedDevice, "1",
        "Whether the process ends with a message when it misuses the device.";
    EMU_WATCHED: Words(&["first", "last"]),
        "first for a put within an aligned line of 256 bytes, else last", EmulatedDevice, "last",
        "Which end of a put is written last. Programs poll it instead of notices.";
    EMU_CQS: Text("increasing numbers of CQs from 0 to 10, such as 0,3,6,9"),
        "as in Fujitsu's library over its simulated device", EmulatedDevice, "0,3,6,9",
        "The first CQ of each rank that shares a TNI, for programs that compute it as on Fugaku.";
    EMU_MACHINE: Text("tofu-d, also with changed values, such as tofu-d,network.hop=50"),
        "no delays", EmulatedDevice, "tofu-d",
        "Machine of the network model whose delays the device has: those of links, interfaces, posts and ranks of \
         one node. `hopbine machine tofu-d` prints its parameters; `hopbine launch --machine` sets the variable.";
    EMU_SLOWER: Number(1, 1_000_000), "1", EmulatedDevice, "100",
        "Factor on all delays of the machine. With a large factor the host's own time hardly counts.";
    EMU_JITTER_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "1000",
        "Largest random delay of an operation, ns. With it, operations without STRONG_ORDER overtake each other.";
    EMU_REG_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "20000",
        "Processor time of the caller for a registration of memory, ns.";
    EMU_DEREG_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "10000",
        "Processor time of the caller for the end of a registration, ns.";
}
