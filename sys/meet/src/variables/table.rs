//! The table of environment variables.

use super::Reader::{EmulatedDevice, MpiProgram, Process, Program};
use super::Values::{Number, Seconds, Switch, SwitchOr, SwitchOrPath, Text, Words};
use super::Variable;

/// Longest time of a single cost, a thousand seconds: sums of many of them stay below 2^64 ns.
const LONGEST_NS: u64 = 1_000_000_000_000;

/// One static for each row, and [`ALL`] of them.
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
        "auto: Tofu where it is, else the memory of one host, else MPI", Program, "shm",
        "What messages travel through. `emu` is the emulated Tofu device; `sim` and `sim-utofu` are for \
         `hopbine run` only, with all ranks in one thread.";
    ALGORITHM: Text("COLLECTIVE=ALGORITHM, separated by commas"),
        "the library chooses", Program, "allreduce=bine,alltoall=bruck:4",
        "Algorithms preferred to the library's choice. Where one does not serve a call, the library \
         chooses. The same on all ranks; `hopbine list` has the names.";
    TUNING: Text("network, memory, tofu-d, or the path of a decision table"),
        "the table that is built in for what messages travel through", Program, "tuned.toml",
        "A decision table in place of the library's: which algorithm serves a call that names none, on how many \
         ports and in which pieces. The same on all ranks; `hopbine tune` writes such tables.";
    GATE_SUM: Switch, "off", Program, "on",
        "Whether short sums of floats may go by the network's barrier gates, which round them once: the last bits \
         may differ from those of the library's algorithms. The same on all ranks.";
    DRIVE: Words(&["auto", "workers", "worker", "inline"]),
        "auto: a worker for each port where cores are left for all beside the program's threads, one where one \
         is left; inline under LD_PRELOAD", Program, "inline",
        "Who drives the ports of a rank: a thread for each port, one for all, or the caller while it waits and \
         tests.";
    CORES: Text("core numbers and ranges, separated by commas"),
        "spread over the cores that are free", Program, "54-59",
        "Cores for the workers, port by port.";
    TIMEOUT: Seconds, "60", Program, "20",
        "How long nothing may move before a wait is too long; also how long ranks wait for each other at \
         start-up.";
    ON_TIMEOUT: Words(&["warn", "fail"]), "warn", Program, "fail",
        "What happens when a wait is too long. With `warn` it goes on after a message, unless a rank is \
         gone or makes another call; with `fail` the call fails.";
    UNEXPECTED_BYTES: Number(1, u64::MAX), "1048576", Program, "4194304",
        "Bytes of unexpected short messages that a port keeps before it asks senders to wait. Each sender may \
         send more until it learns that: up to 20 KiB on Tofu, 1.9 MiB over MPI.";
    TRACE: Text("the name of a file, with %r for the rank and %j for the job's number"),
        "no timeline", Program, "trace.json",
        "Each rank writes its timeline at its end: calls, messages, copies and reductions, port by port, as \
         Chrome trace JSON for `hopbine trace`. Without %r the rank stands before the end of the name, as in \
         trace.3.json. The same on all ranks.";
    TRACE_RECORDS: Number(1, 1 << 32), "65536", Program, "1000000",
        "Records of 64 bytes that each port keeps for the timeline; when there are more, the oldest give way.";
    TORUS: Text("sizes such as 4x2x2, with m behind a size for a dimension that does not wrap"),
        "the machine's, else nearly a cube (one row for the emulated device)", Process, "4x2x2",
        "The shape of the nodes. Its product is the number of nodes, HOPBINE_SIZE / \
         HOPBINE_RANKS_PER_NODE. The emulated device wraps all dimensions.";
    RANK_MAP: Text("column-major, row-major, hosts or the path of a file"),
        "column-major", Process, "row-major",
        "Which rank is where on the torus. A file has one line of coordinates for each rank.";
    RANKS_PER_NODE: Number(1, u32::MAX as u64),
        "over MPI the ranks of each host where all have equally many, else 1", Process, "4",
        "Ranks on each node.";
    PORTS: Number(1, u32::MAX as u64),
        "two for each dimension, as many as there are interfaces at most", Process, "6",
        "Ports of each rank.";
    SHM: Switch, "on", Process, "off",
        "Whether ranks of one node exchange messages through memory, beside Tofu or MPI.";
    SHM_READ: Switch, "on", Process, "off",
        "Whether long messages are read from their sender's memory (cross-memory attach), where the system \
         permits.";
    REG_CACHE: SwitchOr("trust"), "on", Process, "trust",
        "Whether registrations of users' memory are kept for later calls. `on` keeps them where the system tells \
         of memory that goes. With `trust` they are kept elsewhere, too: the program promises to unmap nothing, \
         and the C library's allocator is told to give nothing back; start-up fails where it would.";
    REG_CACHE_MAX_BYTES: Number(1, u64::MAX), "no bound", Process, "4294967296",
        "Bytes that kept registrations hold at most.";
    REG_CACHE_MAX_REGIONS: Number(1, u32::MAX as u64), "1024", Process, "256",
        "Largest number of memory regions whose registrations are kept.";
    STAGE_BYTES: Number(0, u64::MAX), "524288", Process, "0",
        "If registrations of users' memory cannot be kept: bytes that a call copies rather than make two \
         registrations, which is what each port needs. A call whose longer buffer has at most so many bytes for each \
         two registrations goes through memory that stays registered; a longer one registers its buffers anew.";
    UTOFU_LIB: Text("a path"),
        "libtofucom.so as the dynamic loader finds it, then /lib64/libtofucom.so", Process, "/lib64/libtofucom.so",
        "Fujitsu's uTofu library.";
    RANK: Number(0, u64::MAX), "the launcher's, of MPI or Slurm; else 0", Process, "0",
        "This rank. `hopbine launch` sets it.";
    SIZE: Number(1, 1 << 20), "the launcher's, of MPI or Slurm; else 1", Process, "8",
        "Number of ranks. `hopbine launch` sets it.";
    RENDEZVOUS: Text("a path on a file system that all ranks share"),
        "for ranks of one host that a launcher started: a place of this user", Process, "/shared/job-7",
        "Where ranks meet at start-up. `hopbine launch` sets it.";
    REPORT: SwitchOrPath, "off", MpiProgram, "report.%j.txt",
        "Whether rank 0 says at its end what served which calls, how long they took, and why: on standard \
         error, or behind what is in the file, in whose name %j is the job's number (PJM_JOBID, SLURM_JOB_ID, \
         PBS_JOBID, else the process's).";
    START: Words(&["init", "call"]), "init", MpiProgram, "call",
        "When HB_ calls start hopbine: in `MPI_Init`, or with `HB_Init` or the first blocking call on all \
         ranks.";
    ONLY: Text("names of collectives, separated by commas"), "all", MpiProgram, "allreduce,bcast",
        "The collectives that hopbine serves; MPI serves the others.";
    EXCEPT: Text("names of collectives, and requests, separated by commas"),
        "none", MpiProgram, "alltoall,requests",
        "The collectives that MPI serves. `requests` are all non-blocking and persistent calls.";
    EMU_LATE: Number(0, u64::MAX), "not late", EmulatedDevice, "7",
        "Seed of the late mode: data move just before their notice can be seen, sources are read just \
         before their completion.";
    EMU_BUSY: Number(0, u8::MAX as u64), "0", EmulatedDevice, "64",
        "Of 256 posts, how many are refused as if the queue (TOQ) were full.";
    EMU_CHECKED: Switch, "off", EmulatedDevice, "1",
        "Whether misuse of the device ends the process with a message.";
    EMU_WATCHED: Words(&["first", "last"]),
        "the first of what lies within 256 bytes, else the last", EmulatedDevice, "last",
        "The end of a put that the program watches without a notice; it is written last.";
    EMU_CQS: Text("increasing numbers of CQs from 0 to 10, such as 0,3,6,9"),
        "as Fujitsu's library has them over its simulated device", EmulatedDevice, "0,3,6,9",
        "The first CQs of the ranks that share a TNI, for programs that compute them as on Fugaku.";
    EMU_MACHINE: Text("tofu-d, with changed values if any, such as tofu-d,network.hop=50"),
        "no delays", EmulatedDevice, "tofu-d",
        "The machine of the network model whose delays the device has: those of links, interfaces and posts, and \
         between ranks of one node. `hopbine machine tofu-d` has the parameters; `hopbine launch \
         --machine` sets it.";
    EMU_SLOWER: Number(1, 1_000_000), "1", EmulatedDevice, "100",
        "How many times as long as the machine's all delays are, so that the host's own time counts for \
         little.";
    EMU_JITTER_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "1000",
        "Largest random delay in ns: operations without STRONG_ORDER overtake each other.";
    EMU_REG_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "20000",
        "Processor time of the caller that a registration of memory takes, in ns.";
    EMU_DEREG_NS: Number(0, LONGEST_NS), "0", EmulatedDevice, "10000",
        "Processor time of the caller that the end of a registration takes, in ns.";
}
