//! The rules and rows of decision tables.

use super::candidate::Candidates;
use super::feature::NumberRange;
use crate::collectives::Collective;

crate::named! {
    /// The medium of messages.
    #[derive(Default)]
    pub enum Wire {
        /// Network interfaces that move data by themselves, and links between them.
        #[default]
        Network = "network",
        /// The memory of one host: all ranks are equally near, and the thread that drives a port moves the port's
        /// data.
        Memory = "memory",
    }
}

crate::named! {
    /// What ranks know of the sizes of blocks in a call.
    pub enum Knowledge {
        /// All ranks know all sizes.
        Known = "known",
        /// A rank knows the sizes of the blocks that it gives and gets. Nothing may depend on them.
        Unknown = "unknown",
        /// As `Unknown`, but all ranks have learnt the length of the longest block.
        Learnt = "learnt",
    }
}

impl Knowledge {
    /// Whether the collective has calls with this knowledge.
    pub fn is_of(self, collective: Collective) -> bool {
        match self {
            Knowledge::Known => true,
            Knowledge::Unknown => {
                matches!(
                    collective,
                    Collective::Alltoall | Collective::Gather | Collective::Scatter
                )
            }
            Knowledge::Learnt => collective == Collective::Alltoall,
        }
    }
}

/// How data are cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segmentation {
    /// They are not cut.
    Whole,
    /// The data that a port moves for a rank are cut into this many parts.
    Parts {
        /// The number of parts.
        parts: u64,
        /// The shortest message that a cut makes, in bytes.
        least: u64,
        /// The longest message, in bytes.
        most: u64,
    },
}

impl Segmentation {
    /// Messages of at most `bytes` bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Segmentation::Parts { parts: 1, least: bytes, most: bytes }
    }

    pub(super) fn of(self, all_bytes: u64, ports: u32) -> u64 {
        match self {
            Segmentation::Whole => u64::MAX,
            Segmentation::Parts { parts, least, most } => {
                (all_bytes / u64::from(ports.max(1)) / parts.max(1)).max(least).min(most)
            }
        }
    }
}

/// The number of ports that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uses {
    /// All ports of the call.
    All,
    /// One port if a rank's data, all its blocks together, are at most this many bytes; else all ports.
    AllAbove(u64),
    /// This many ports, or all if the call has fewer.
    Only(u32),
}

impl Uses {
    pub(super) fn of(self, all_bytes: u64, ports: u32) -> u32 {
        match self {
            Uses::AllAbove(bytes) if all_bytes <= bytes => 1,
            Uses::All | Uses::AllAbove(_) => ports,
            Uses::Only(used) => used.min(ports),
        }
    }
}

/// What a rule says for an interval of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The line of the row in the table's text.
    pub line: u32,
    /// The row is for sizes above this, in bytes; 0 includes calls without data.
    pub above: u64,
    /// The row is for sizes up to this, in bytes; `None` is no upper bound.
    pub up_to: Option<u64>,
    /// The algorithms, of which the first that serves the shape is used.
    pub candidates: Candidates,
    /// The ports that the call uses.
    pub ports: Uses,
    /// How data are cut into messages.
    pub segment: Segmentation,
}

/// What a table says for some collectives on a class of shapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The line of the rule in the table's text.
    pub line: u32,
    /// The collectives.
    pub collectives: Vec<Collective>,
    /// What ranks know of the sizes of blocks.
    pub knowledge: Knowledge,
    /// The index of the class in the table.
    pub class: usize,
    /// The numbers of ports that calls of the rule have.
    pub available: NumberRange,
    /// Whether sizes are those of one block, if there are blocks; else they are those of all data of a rank.
    pub is_of_block: bool,
    /// Rows by ascending size, without gaps.
    pub rows: Vec<Row>,
}

impl Rule {
    pub(super) fn is_of(&self, collective: Collective, knowledge: Knowledge) -> bool {
        self.knowledge == knowledge && self.collectives.contains(&collective)
    }
}
