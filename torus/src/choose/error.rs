//! Errors of decision tables.

use super::rule::Knowledge;
use crate::collectives::Collective;
use crate::registry::UnknownAlgorithm;

/// An error in a table, with the line of its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct TableError {
    /// The line, from 1.
    pub line: u32,
    /// The error.
    pub problem: TableProblem,
}

impl TableProblem {
    /// The error at this line.
    pub fn at(self, line: u32) -> TableError {
        TableError { line, problem: self }
    }
}

/// What is wrong, and what is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableProblem {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The table has another version.
    #[error("`version = {found}` is not known; tables have version {known}")]
    Version {
        /// The version of the table.
        found: String,
        /// The version that hopbine reads.
        known: u32,
    },
    /// A key is missing.
    #[error("`{key}` is missing; it must be {valid}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The valid values.
        valid: String,
    },
    /// A key is unknown.
    #[error("there is no key `{key}` here; known are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The known keys.
        known: String,
    },
    /// A key has an invalid value.
    #[error("`{key}` is {found}; it must be {valid}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The valid values.
        valid: String,
    },
    /// No algorithm of the collective has the name.
    #[error(transparent)]
    UnknownAlgorithm(#[from] UnknownAlgorithm),
    /// The table has no class of this name.
    #[error("there is no class `{name}`; the table has {known}")]
    UnknownClass {
        /// The name.
        name: String,
        /// The classes of the table.
        known: String,
    },
    /// A rule has no rows.
    #[error("the rule has no rows; it must have at least one, for all sizes: `bytes = \"0..\"`")]
    NoRows,
    /// No row is for these sizes.
    #[error(
        "no row is for sizes above {above} up to {up_to} bytes; this row must begin at {above}"
    )]
    Hole {
        /// The end of the row before.
        above: u64,
        /// The beginning of this row.
        up_to: u64,
    },
    /// Two rows are for these sizes.
    #[error(
        "sizes above {above} up to {up_to} bytes are the row before's, too; this row must begin at {up_to}"
    )]
    Overlap {
        /// The beginning of this row.
        above: u64,
        /// The end of the row before.
        up_to: u64,
    },
    /// A row ends where it begins, or before.
    #[error(
        "no size is above {above} and up to {up_to} bytes; the second number must be the larger"
    )]
    Empty {
        /// The beginning of the row.
        above: u64,
        /// The end of the row.
        up_to: u64,
    },
    /// A row without an end is not the last.
    #[error("the row has no end, but another follows; only the last row has none")]
    Endless,
    /// The last row has an end.
    #[error(
        "no row is for more than {0} bytes; the last row must have no end: `bytes = \"{0}..\"`"
    )]
    Ends(u64),
    /// A row uses more ports than calls of its rule have.
    #[error("the row uses {used} ports, but the rule is for calls that have at most {most}")]
    Ports {
        /// Ports of the row.
        used: u32,
        /// The most that calls of the rule have.
        most: u32,
    },
    /// An algorithm has a split for another number of ports than its row may use.
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
    /// No algorithm of a row serves this shape of the class.
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
        /// The reason.
        reason: String,
    },
    /// An algorithm serves no shape of the class.
    #[error("`{algorithm}` serves no shape of class `{class}` ({reason}); leave it out")]
    ServesNone {
        /// The algorithm.
        algorithm: String,
        /// The class.
        class: String,
        /// The reason for one of the shapes.
        reason: String,
    },
    /// No known shape is in the class.
    #[error("no known shape is of class `{class}`; give examples, as in `like = [\"8x8x8\"]`")]
    EmptyClass {
        /// The class.
        class: String,
    },
    /// An example is not in its class.
    #[error("{shape} is not of class `{class}`: its {feature} is {found}; it must be {valid}")]
    NoExample {
        /// The class.
        class: String,
        /// The shape.
        shape: String,
        /// The feature that is outside.
        feature: &'static str,
        /// Its value.
        found: u32,
        /// Its valid values.
        valid: String,
    },
    /// An earlier rule covers this rule.
    #[error(
        "for {collective}, the rule in line {by} already covers all shapes and ports of this rule; move this rule before it, or remove it"
    )]
    NeverAsked {
        /// The collective.
        collective: Collective,
        /// The line of the earlier rule.
        by: u32,
    },
    /// No rule is for this collective.
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
    /// Another rank has a different table.
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
