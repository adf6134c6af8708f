//! Errors of the rendezvous and of the exchange.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// An environment variable that has no usable value, or that is needed and not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}; it must be {wanted}", match value {
    Some(value) => format!("={value} is not valid"),
    None => " is not set".to_owned(),
})]
pub struct VariableError {
    /// The variable.
    pub name: &'static str,
    /// The variable's value; `None` if it is not set.
    pub value: Option<String>,
    /// What it must be: a value, or a description of the valid values.
    pub wanted: String,
}

/// A rank that lacks what [`crate::Exchange::agree`] asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank}: {reason}")]
pub struct Refusal {
    /// The rank.
    pub rank: usize,
    /// The reason.
    pub reason: String,
}

/// Reason why the rendezvous or an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A variable is not set, or has no usable value.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The ranks are on several hosts and have no common place for a rendezvous.
    #[error(
        "{variable}={value} says that not all {size} ranks are on this host: set HOPBINE_RENDEZVOUS to a path on a file system that all share"
    )]
    SeveralHosts {
        /// The launcher's variable that shows this.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// Number of ranks.
        size: usize,
    },
    /// The rendezvous file cannot be used.
    #[error("rendezvous file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// Ranks did not appear, or stopped taking part.
    #[error(
        "rank {rank} waited {:.1} s in {phase} for rank(s) {} of {size}{}{}",
        waited.as_secs_f64(),
        List(missing),
        other_size.map_or(String::new(), |s| format!(
            "; a rank was started with HOPBINE_SIZE={s} on the same rendezvous file"
        )),
        other_protocol.map_or(String::new(), |(other, number, own)| format!(
            "; rank {other} uses protocol {number}, rank {rank} protocol {own}: all ranks \
             of a job need the same release of hopbine"
        ))
    )]
    Missing {
        /// The rank that waited.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// The ranks for which it waited.
        missing: Vec<usize>,
        /// The phase in which they were missing.
        phase: Phase,
        /// How long the rank waited.
        waited: Duration,
        /// A different number of ranks, in the record of one of the missing.
        other_size: Option<usize>,
        /// One of the missing ranks whose record has another protocol number, that number, and this rank's.
        other_protocol: Option<(usize, u8, u8)>,
    },
    /// Another process has the same rank.
    #[error("another process is also rank {rank} of {size}: each rank must be one process")]
    Twice {
        /// The rank.
        rank: usize,
        /// Number of ranks.
        size: usize,
    },
    /// The transport of the exchange has failed.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// A rank of the same process gave up (it dropped its exchange).
    #[error("rank {gone} left before rank {rank} had its answer")]
    Gone {
        /// The rank that waited.
        rank: usize,
        /// The rank that left.
        gone: usize,
    },
}

impl BootstrapError {
    /// Returns whether the rendezvous file does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, BootstrapError::File { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

/// Phases in which ranks wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Arrival at the rendezvous.
    Arrival,
    /// The exchange with this number, counted from 1.
    Exchange(u64),
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Phase::Arrival => f.write_str("the rendezvous"),
            Phase::Exchange(n) => write!(f, "exchange {n}"),
        }
    }
}

/// Ranks in an error message: at most 16 of them.
struct List<'a>(&'a [usize]);

impl std::fmt::Display for List<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SHOWN: usize = 16;
        for (i, rank) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{rank}", if i == 0 { "" } else { ", " })?;
        }
        if self.0.len() > SHOWN {
            write!(f, " and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}
