//! What can be wrong with a decision table.

use super::rule::Knowledge;
use crate::collectives::Collective;
use crate::registry::UnknownAlgorithm;

/// What is wrong with a table, and in which line of its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub problem: TableProblem,
}

impl TableProblem {
    /// In this line.
    pub fn at(self, line: u32) -> TableError {
        TableError { line, problem: self }
    }
}

/// What is wrong, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// No TOML.
    #[error("{0}")]
    Syntax(String),
    /// Of another version.
    #[error("`version = {found}` is not known; tables have version {known}")]
    Version {
        /// Its version.
        found: String,
        /// The version that there is.
        known: u32,
    },
    /// A key is not there.
    #[error("`{key}` is missing; it must be {valid}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What it can be.
        valid: String,
    },
    /// A key that means nothing.
    #[error("there is no key `{key}` here; known are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something.
        known: String,
    },
    /// A key with a value that it cannot have.
    #[error("`{key}` is {found}; it must be {valid}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// What it can be.
        valid: String,
    },
    /// No algorithm of the collective has the name.
    #[error(transparent)]
    UnknownAlgorithm(#[from] UnknownAlgorithm),
    /// A class that the table has not.
    #[error("there is no class `{name}`; the table has {known}")]
    UnknownClass {
        /// The name.
        name: String,
        /// The table's.
        known: String,
    },
    /// A rule without rows.
    #[error("the rule has no rows; it must have at least one, for all sizes: `bytes = \"0..\"`")]
    NoRows,
    /// Sizes that no row is for.
    #[error(
        "no row is for sizes above {above} up to {up_to} bytes; this row must begin at {above}"
    )]
    Hole {
        /// Where the row before ends.
        above: u64,
        /// Where this one begins.
        up_to: u64,
    },
    /// Sizes that two rows are for.
    #[error(
        "sizes above {above} up to {up_to} bytes are the row before's, too; this row must begin at {up_to}"
    )]
    Overlap {
        /// Where this row begins.
        above: u64,
        /// Where the row before ends.
        up_to: u64,
    },
    /// A row that ends where it begins, or before.
    #[error(
        "no size is above {above} and up to {up_to} bytes; the second number must be the larger"
    )]
    Empty {
        /// Where it begins.
        above: u64,
        /// Where it ends.
        up_to: u64,
    },
    /// A row without an end that is not the last.
    #[error("the row has no end, but another follows; only the last row has none")]
    Endless,
    /// The last row has an end.
    #[error(
        "no row is for more than {0} bytes; the last row must have no end: `bytes = \"{0}..\"`"
    )]
    Ends(u64),
    /// More ports than the rule is for.
    #[error("the row uses {used} ports, but the rule is for calls that have at most {most}")]
    Ports {
        /// Ports of the row.
        used: u32,
        /// The most that calls of the rule have.
        most: u32,
    },
    /// An algorithm with a split for another number of ports than its row may come to.
    #[error(
        "`{algorithm}` splits data over {parts} ports; its row must have `ports = {parts}`, and its rule \
         `ports = \"{parts}..\"`, or more"
    )]
    Split {
        /// The algorithm.
        algorithm: String,
        /// Parts of its split.
        parts: u32,
    },
    /// An algorithm that does not serve a shape of the class.
    #[error(
        "`{algorithm}` does not serve {shape}, a shape of class `{class}` ({reason}); name one behind it that \
         does, as in `algorithm = [\"{algorithm}\", \"mixed\"]`, or make the class smaller"
    )]
    Unserved {
        /// The last algorithm of the row.
        algorithm: String,
        /// The class.
        class: String,
        /// The shape.
        shape: String,
        /// Why not.
        reason: String,
    },
    /// An algorithm that serves no shape of the class.
    #[error("`{algorithm}` serves no shape of class `{class}` ({reason}); leave it out")]
    ServesNone {
        /// The algorithm.
        algorithm: String,
        /// The class.
        class: String,
        /// Why it does not serve one of them.
        reason: String,
    },
    /// A class of which no shape is known.
    #[error("no known shape is of class `{class}`; give examples, as in `like = [\"8x8x8\"]`")]
    EmptyClass {
        /// The class.
        class: String,
    },
    /// An example that is not of its class.
    #[error("{shape} is not of class `{class}`: its {feature} is {found}; it must be {valid}")]
    NoExample {
        /// The class.
        class: String,
        /// The shape.
        shape: String,
        /// The number that is outside.
        feature: &'static str,
        /// What it is.
        found: u32,
        /// What it must be.
        valid: String,
    },
    /// A rule for what an earlier rule is for.
    #[error(
        "for {collective}, the rule in line {by} already covers all shapes and ports of this rule; move this rule before it, or remove it"
    )]
    NeverAsked {
        /// The collective.
        collective: Collective,
        /// The line of the earlier rule.
        by: u32,
    },
    /// A collective that no rule is for.
    #[error(
        "no rule is for {collective} of {knowledge} sizes; add one, or name a table that has one: \
         `otherwise = \"network\"`"
    )]
    NoRule {
        /// The collective.
        collective: Collective,
        /// What ranks know of sizes.
        knowledge: Knowledge,
    },
    /// Another rank has another table.
    #[error(
        "from here on rank {rank} has something else ({table}, line {line}); all ranks need the same table"
    )]
    Differs {
        /// The other rank.
        rank: u32,
        /// The file or the name of its table.
        table: String,
        /// The line in it.
        line: u32,
    },
}
