//! Rules and rows of tables.

use super::candidate::Candidates;
use super::feature::NumberRange;
use crate::collectives::Collective;

crate::named! {
    /// What messages travel through.
    #[derive(Default)]
    pub enum Wire {
        /// Interfaces that move data by themselves, and links between them.
        #[default]
        Network = "network",
        /// The memory of one host: every rank is as near as any other, and whoever drives a port
        /// moves its data.
        Memory = "memory",
    }
}

crate::named! {
    /// What ranks know of the sizes of a call.
    pub enum Knowledge {
        /// All ranks know all.
        Known = "known",
        /// Each those of the blocks that it gives and gets, so that nothing can depend on them.
        Unknown = "unknown",
        /// The same, but all have learnt how long the longest is.
        Learnt = "learnt",
    }
}

impl Knowledge {
    /// Whether there are such calls.
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

/// How messages are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segmentation {
    /// They are not.
    Whole,
    /// Into as many parts as this, of what one port has of all data of a rank.
    Parts {
        /// The number of parts.
        parts: u64,
        /// The shortest message that is made so, bytes.
        least: u64,
        /// The longest, bytes.
        most: u64,
    },
}

impl Segmentation {
    /// Of this many bytes at most.
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

/// How many ports a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uses {
    /// All that there are.
    All,
    /// All, but one for data of a rank, all its blocks together, of up to so many bytes.
    AllAbove(u64),
    /// So many, or all if there are fewer.
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
    /// The line of its text.
    pub line: u32,
    /// Sizes above this; of 0 also none, bytes.
    pub above: u64,
    /// Sizes up to this; without it there is no bound, bytes.
    pub up_to: Option<u64>,
    /// The algorithms, of which one serves the shape.
    pub candidates: Candidates,
    /// Ports.
    pub ports: Uses,
    /// How messages are cut.
    pub segment: Segmentation,
}

/// What a table says for some collectives on a class of shapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The line of its text.
    pub line: u32,
    /// The collectives.
    pub collectives: Vec<Collective>,
    /// What ranks know of sizes.
    pub knowledge: Knowledge,
    /// The number of the class in the table.
    pub class: usize,
    /// Ports that calls have.
    pub available: NumberRange,
    /// Whether sizes are those of one block, where there are blocks; else they are of all data of a rank.
    pub is_of_block: bool,
    /// By size, ascending, with no hole between.
    pub rows: Vec<Row>,
}

impl Rule {
    pub(super) fn is_of(&self, collective: Collective, knowledge: Knowledge) -> bool {
        self.knowledge == knowledge && self.collectives.contains(&collective)
    }
}
