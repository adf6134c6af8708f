//! How a command ends: its outcomes and its errors.

use std::io;
use std::path::{Path, PathBuf};

use hopbine_torus::geometry::{EmbeddingError, RankMapError};
use hopbine_torus::plan::ScheduleError;
use hopbine_torus::registry::UnknownAlgorithm;

/// The outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was as it should be.
    Well,
    /// Something was found wrong, and shown.
    Wrong,
    /// A program that was run ended with this status.
    Status(u8),
}

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The algorithm does not exist.
    #[error(transparent)]
    Algorithm(#[from] UnknownAlgorithm),
    /// The algorithm does not serve the shape, the root or the number of ports.
    #[error("{algorithm} cannot perform {collective} here: {source}{served}")]
    Unserved {
        /// The collective.
        collective: hopbine_torus::Collective,
        /// The algorithm.
        algorithm: String,
        /// What does not fit.
        source: Box<ScheduleError>,
        /// Which algorithms would do, as a further clause; empty if that would not help.
        served: String,
    },
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// A rank that the shape has not.
    #[error("rank {rank} does not exist: the shape {shape} has ranks 0 to {last}")]
    Rank {
        /// The rank asked for.
        rank: u32,
        /// The last rank.
        last: u32,
        /// The shape.
        shape: String,
    },
    /// More memory than the host has.
    #[error(
        "{what} need about {needed_mib} MiB of memory in this process, but {available_mib} MiB are \
         available; {instead}"
    )]
    Memory {
        /// What needs it.
        what: String,
        /// How much it needs.
        needed_mib: u64,
        /// How much there is.
        available_mib: u64,
        /// What would do.
        instead: &'static str,
    },
    /// More of something than the host allows.
    #[error("{what} need {needed} {things}; this host allows {most} ({limit}); {instead}")]
    Host {
        /// What needs them.
        what: String,
        /// What is needed.
        things: &'static str,
        /// How many are needed.
        needed: u64,
        /// How many there can be.
        most: u64,
        /// Which limit it is.
        limit: &'static str,
        /// What would do.
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
        /// What failed.
        source: hopbine::Error,
    },
    /// A rank map that does not fit.
    #[error("{}: {source}", path.display())]
    RankMap {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RankMapError,
    },
    /// A shape that does not fit into a network.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// A file whose text is not what it should be.
    #[error("{}: {message}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The program of a job cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What each rank knows to have failed on a rank, so that none has to leave for the others to learn of it.
    #[error(transparent)]
    Agreed(Box<CliError>),
    /// The world cannot be joined.
    #[error(transparent)]
    World(#[from] hopbine::Error),
    /// A benchmark, or what it needs, has failed.
    #[error("{0}")]
    Bench(String),
    /// A file that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl CliError {
    /// A file whose text is not what it should be.
    pub fn text(path: &Path, message: impl ToString) -> Self {
        CliError::Text { path: path.to_owned(), message: message.to_string() }
    }

    /// 2 for a request that cannot be, 1 for one that failed.
    pub fn exit_status(&self) -> u8 {
        match self {
            CliError::Output(_)
            | CliError::Write { .. }
            | CliError::Run { .. }
            | CliError::Bench(_)
            | CliError::World(_) => 1,
            CliError::Agreed(error) => error.exit_status(),
            // As shells have it.
            CliError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            CliError::Start { .. } => 126,
            _ => 2,
        }
    }
}
