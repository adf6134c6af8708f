//! Outcomes and errors of a command.

use std::io;
use std::path::{Path, PathBuf};

use hopbine_torus::geometry::{EmbeddingError, RankMapError};
use hopbine_torus::plan::ScheduleError;
use hopbine_torus::registry::UnknownAlgorithm;

/// The outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No fault was found.
    Well,
    /// A fault was found and reported.
    Wrong,
    /// A program that the command ran ended with this exit status.
    Status(u8),
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The algorithm does not exist.
    #[error(transparent)]
    Algorithm(#[from] UnknownAlgorithm),
    /// The algorithm does not support the shape, the root or the number of ports.
    #[error("{algorithm} cannot perform {collective} here: {source}{served}")]
    Unserved {
        /// The collective.
        collective: hopbine_torus::Collective,
        /// The algorithm.
        algorithm: String,
        /// Which condition fails.
        source: Box<ScheduleError>,
        /// A clause that names algorithms that support the request; empty if there are none to name.
        served: String,
    },
    /// Arguments that contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A rank that does not exist in the shape.
    #[error("rank {rank} does not exist: the shape {shape} has ranks 0 to {last}")]
    Rank {
        /// The requested rank.
        rank: u32,
        /// The last rank.
        last: u32,
        /// The shape.
        shape: String,
    },
    /// The command needs more memory than the host has.
    #[error(
        "{what} need about {needed_mib} MiB of memory in this process, but {available_mib} MiB are \
         available; {instead}"
    )]
    Memory {
        /// What needs the memory.
        what: String,
        /// Memory needed, in MiB.
        needed_mib: u64,
        /// Memory available, in MiB.
        available_mib: u64,
        /// Advice: what to do instead.
        instead: &'static str,
    },
    /// The command needs more of a resource than the host allows.
    #[error("{what} need {needed} {things}; this host allows {most} ({limit}); {instead}")]
    Host {
        /// What needs the resource.
        what: String,
        /// Name of the resource.
        things: &'static str,
        /// Number needed.
        needed: u64,
        /// Number that the host allows.
        most: u64,
        /// Name of the limit.
        limit: &'static str,
        /// Advice: what to do instead.
        instead: &'static str,
    },
    /// The shape is too large for a legible picture, or cannot be drawn in a plane.
    #[error("{0}; use --format text or json")]
    NotDrawn(String),
    /// The emulation failed.
    #[error("{algorithm}, {bytes} bytes: {source}")]
    Run {
        /// The algorithm that was run.
        algorithm: String,
        /// Bytes of the vector or of all blocks.
        bytes: u64,
        /// The library's error.
        source: hopbine::Error,
    },
    /// A rank map that does not fit the shape.
    #[error("{}: {source}", path.display())]
    RankMap {
        /// The file.
        path: PathBuf,
        /// What is wrong with the map.
        source: RankMapError,
    },
    /// A shape that does not fit into a network.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// A file with invalid text.
    #[error("{}: {message}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong with the text.
        message: String,
    },
    /// The program of a job cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An error of one rank that all ranks know, so that no rank must leave before the others learn of it.
    #[error(transparent)]
    Agreed(Box<CliError>),
    /// The world cannot be joined.
    #[error(transparent)]
    World(#[from] hopbine::Error),
    /// A benchmark has failed, or one of its tools.
    #[error("{0}")]
    Bench(String),
    /// A signal has ended the command, and the processes that it had started.
    #[error("ended by signal {0}")]
    Signal(i32),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl CliError {
    /// The error for a file with invalid text.
    pub fn text(path: &Path, message: impl ToString) -> Self {
        CliError::Text { path: path.to_owned(), message: message.to_string() }
    }

    /// The exit status: 2 for an invalid request, 1 for one that failed, 126 and 127 for a program that did not
    /// start, 128 + N after signal N.
    pub fn exit_status(&self) -> u8 {
        match self {
            CliError::Output(_)
            | CliError::Write { .. }
            | CliError::Run { .. }
            | CliError::Bench(_)
            | CliError::World(_) => 1,
            CliError::Signal(signal) => u8::try_from(128 + signal).unwrap_or(1),
            CliError::Agreed(error) => error.exit_status(),
            // Statuses 126 and 127 as in shells.
            CliError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            CliError::Start { .. } => 126,
            _ => 2,
        }
    }
}
