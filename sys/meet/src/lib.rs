//! Rendezvous of a job's processes, and what they share before any endpoint is open.
//!
//! * [`Place`]: a process's rank, from the variables of hopbine's launcher, of MPI's or of Slurm's;
//! * [`Exchange`]: a collective exchange of small messages, through files ([`Bootstrap`]) or in the memory of one
//!   process ([`LocalExchange`]);
//! * [`create_memory`], [`open_memory`] and [`Mapping`]: memory without a name that ranks of one host map;
//! * [`variables`]: every environment variable that hopbine reads, and its parsing;
//! * [`print_remark`]: a line on standard error;
//! * [`without_signals`]: a thread that receives no signals;
//! * [`permit_access`]: permission to access this process's memory, if Yama requires it.
//!
//! Before the first one-sided operation every rank must know the other ranks' addresses. Any launcher suffices that
//! starts the processes and sets `HOPBINE_RANK`, `HOPBINE_SIZE` and `HOPBINE_RENDEZVOUS`.
//!
//! Under `mpirun` or `mpiexec` of Open MPI and MPICH, and under `srun`, rank and size are the launcher's unless
//! `HOPBINE_SIZE` or `HOPBINE_RANK` is set. Ranks of one host then need no `HOPBINE_RENDEZVOUS`: they meet by files
//! in `$XDG_RUNTIME_DIR/hopbine-USER` (else in `/dev/shm`, else in the directory for temporary files), which are
//! removed when all ranks have dropped their exchanges. With nothing set and no launcher a process is a job of one
//! rank.
//!
//! All environment variables of hopbine are in [`variables`]. Data that another process wrote are checked before use:
//! files and memory must belong to this user.
//!
//! This crate knows nothing of devices: it exchanges the ranks' start-up data in the time of a file system, not of a
//! network.

// They panic if the stream cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod error;
mod exchange;
mod files;
pub mod fnv;
mod host;
mod launcher;
mod local;
mod memory;
mod place;
mod process;
mod ptrace;
mod records;
mod signals;
mod stderr;
mod user_files;
pub mod variables;

pub use error::{BootstrapError, Phase, Refusal, VariableError};
pub use exchange::Exchange;
pub use files::Bootstrap;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub use files::fuzz_records;
pub use host::{fresh_number, host, kernel, proc_pid};
pub use launcher::Launched;
pub use local::{AllgatherState, LocalExchange};
pub use memory::{Mapping, create_memory, open_memory};
pub use place::Place;
pub use process::Stat;
pub use ptrace::{permit_access, yama_scope};
pub use records::Records;
pub use signals::without_signals;
pub use stderr::print_remark;
