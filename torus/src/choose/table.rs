//! Decision tables, and their answers to queries.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::case::is_predicted;
use super::check::{check_complete, check_rules, check_served};
use super::class::ShapeClass;
use super::error::TableError;
use super::feature::{Feature, Features};
use super::limits::ShmLimits;
use super::model::Model;
use super::rule::{Knowledge, Row, Rule, Wire};
use crate::collectives::Collective;
use crate::geometry::Shape;
use crate::registry::Algorithm;

/// All that a choice depends on; the same on all ranks of a call.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The collective.
    pub collective: Collective,
    /// What ranks know of the sizes of blocks.
    pub knowledge: Knowledge,
    /// The features of the shape.
    pub shape: &'a Features,
    /// Bytes of the vector or of the average block; of the longest block if only this is known; 0 if no size is
    /// known.
    pub bytes: u64,
    /// Ports of the call: the ports of a rank, at most as many as the shape has directions.
    pub ports: u32,
}

impl Query<'_> {
    /// Rounds the size up to a power of two.
    #[must_use]
    pub fn rounded(self) -> Self {
        let bytes = match self.bytes {
            0 => 0,
            bytes => bytes.checked_next_power_of_two().unwrap_or(bytes),
        };
        Query { bytes, ..self }
    }

    pub(super) fn all_bytes(&self) -> u64 {
        let n_blocks = self.collective.n_blocks(self.shape.get(Feature::Ranks));
        self.bytes.saturating_mul(u64::from(n_blocks))
    }
}

/// The parameters of a call that the caller does not specify.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of ports.
    pub ports: u32,
    /// The longest message, bytes.
    pub segment_bytes: u64,
}

impl Choice {
    /// Ports and messages as text: `6 ports, messages up to 65536 B`.
    pub fn how(&self) -> String {
        let plural = if self.ports == 1 { "" } else { "s" };
        match self.segment_bytes {
            u64::MAX => format!("{} port{plural}, whole messages", self.ports),
            most => format!("{} port{plural}, messages up to {most} B", self.ports),
        }
    }
}

/// The row of a table for a call, before it is known which algorithm serves the shape.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Found<'t> {
    /// The table of the row: the table that was asked, or its `otherwise` table.
    pub table: &'t DecisionTable,
    /// The rule.
    pub rule: &'t Rule,
    /// The row of the rule.
    pub row: &'t Row,
    /// Number of ports.
    pub ports: u32,
    /// The longest message, bytes.
    pub segment_bytes: u64,
    /// How the row was found.
    pub fit: Fit,
}

/// How a row was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The rule's class contains the shape, and the rule is for the call's ports.
    Own,
    /// The rule is the nearest.
    Nearest,
    /// Of the nearest rules' rows, the table's [`Model`] predicts this one to be the fastest.
    Fastest,
}

impl Found<'_> {
    /// The choice, with the algorithm that serves a shape and the ports.
    pub fn on(&self, collective: Collective, shape: &Shape, of: &Features) -> Choice {
        self.by(self.row.candidates.on(collective, (shape, of), self.ports))
    }

    /// The choice, with a given algorithm.
    pub fn by(&self, algorithm: Algorithm) -> Choice {
        Choice { algorithm, ports: self.ports, segment_bytes: self.segment_bytes }
    }
}

/// Writes text such as `table network, line 41: class pair, above 8192 B`.
impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { line, above, up_to, .. } = self.row;
        let DecisionTable { name, classes, model, .. } = self.table;
        let class = &classes[self.rule.class].name;
        write!(f, "table {name}, line {line}: ")?;
        match (self.fit, model) {
            (Fit::Fastest, Some(Model { machine, .. })) => {
                write!(f, "fastest by the model of {machine}, of class {class}, ")?;
            }
            (Fit::Own, _) => write!(f, "class {class}, ")?,
            _ => write!(f, "nearest class {class}, ")?,
        }
        let of = if self.rule.is_of_block { " a block" } else { "" };
        match (above, up_to) {
            (0, None) => f.write_str("any size"),
            (0, Some(up_to)) => write!(f, "up to {up_to} B{of}"),
            (above, None) => write!(f, "above {above} B{of}"),
            (above, Some(up_to)) => write!(f, "above {above} up to {up_to} B{of}"),
        }
    }
}

/// A decision table: see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DecisionTable {
    name: String,
    wire: Wire,
    classes: Vec<ShapeClass>,
    rules: Vec<Rule>,
    otherwise: Option<FallbackTable>,
    stage_bytes: Option<u64>,
    shm: ShmLimits,
    model: Option<Model>,
}

/// Another table, for calls that no rule is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FallbackTable {
    /// The table for collectives without a rule.
    pub table: Arc<DecisionTable>,
    /// Whether the table is also for shapes and ports that no rule of the collective is for. Else the nearest rule
    /// is.
    pub is_for_others: bool,
}

impl DecisionTable {
    /// The version of the text form.
    pub const VERSION: u32 = 1;

    /// Creates a table. Its rows must leave no gap, and no rule may be hidden by earlier ones. Without `otherwise` it
    /// must have rules for all collectives.
    ///
    /// # Errors
    /// [`TableError`].
    ///
    /// # Panics
    /// If a rule has the index of a class that does not exist.
    pub fn new(
        name: String,
        wire: Wire,
        classes: Vec<ShapeClass>,
        rules: Vec<Rule>,
        otherwise: Option<FallbackTable>,
    ) -> Result<Self, TableError> {
        assert!(rules.iter().all(|rule| rule.class < classes.len()), "a class of the table");
        let (stage_bytes, shm, model) = (None, ShmLimits::default(), None);
        let table =
            DecisionTable { name, wire, classes, rules, otherwise, stage_bytes, shm, model };
        check_rules(&table.classes, &table.rules)?;
        if table.otherwise.is_none() {
            check_complete(&table.rules)?;
        }
        Ok(table)
    }

    /// Sets [`stage_bytes`](DecisionTable::stage_bytes).
    #[must_use]
    pub fn with_stage_bytes(mut self, stage_bytes: Option<u64>) -> Self {
        self.stage_bytes = stage_bytes;
        self
    }

    /// Sets the limits of [`shm`](DecisionTable::shm).
    #[must_use]
    pub fn with_shm(mut self, shm: ShmLimits) -> Self {
        self.shm = shm;
        self
    }

    /// Sets the [`model`](DecisionTable::model).
    #[must_use]
    pub fn with_model(mut self, model: Option<Model>) -> Self {
        self.model = model;
        self
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The wire that the table is for.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The most bytes that a call copies to save two registrations, if the table has this key. It applies to wires
    /// that register memory, if registrations cannot be kept.
    pub fn stage_bytes(&self) -> Option<u64> {
        self.stage_bytes
    }

    /// The limits of shared memory between the ranks of a host.
    pub fn shm(&self) -> ShmLimits {
        self.shm
    }

    /// The model that chooses for some shapes without a class.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The classes.
    pub fn classes(&self) -> &[ShapeClass] {
        &self.classes
    }

    /// A hash of the table's contents. Ranks with the same hopbine compare it.
    pub fn fingerprint(&self) -> u64 {
        self.marks().last().map_or(0, |&(_, hash)| hash)
    }

    /// The lines of the table's head, its rules and their rows, each with a hash of the contents up to there.
    /// Comments in the text do not count. Two tables first differ at the first line whose hashes differ.
    pub fn marks(&self) -> Vec<(u32, u64)> {
        let mut hasher = DefaultHasher::new();
        let otherwise = self.otherwise.as_ref();
        let otherwise = otherwise.map(|other| (other.table.fingerprint(), other.is_for_others));
        (&self.name, self.wire, otherwise, self.stage_bytes, self.shm, &self.model)
            .hash(&mut hasher);
        let mut marks = vec![(1, hasher.finish())];
        for Rule { line, collectives, knowledge, class, available, is_of_block, rows } in
            &self.rules
        {
            (collectives, knowledge, &self.classes[*class], available, is_of_block)
                .hash(&mut hasher);
            marks.push((*line, hasher.finish()));
            for row in rows {
                Row { line: 0, ..row.clone() }.hash(&mut hasher);
                marks.push((row.line, hasher.finish()));
            }
        }
        marks
    }

    /// Checks that in each row an algorithm serves every sample shape of the rule's class, and that each named
    /// algorithm serves some sample.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn check_served(&self) -> Result<(), TableError> {
        check_served(&self.classes, &self.rules)
    }

    /// Returns the row for a call: of the first of the nearest rules, the row for the call's size.
    ///
    /// # Panics
    /// Never: [`DecisionTable::new`] has checked that there is a rule for every collective.
    pub fn find(&self, query: &Query<'_>) -> Found<'_> {
        let mut nearest: Option<(u64, &Rule)> = None;
        for (distance, rule) in self.rules_of(query) {
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, rule));
            }
            if distance == 0 {
                break;
            }
        }
        let (distance, rule) = match (nearest, &self.otherwise) {
            (None, Some(FallbackTable { table, .. }))
            | (Some((1.., _)), Some(FallbackTable { table, is_for_others: true })) => {
                return table.find(query);
            }
            (nearest, _) => nearest.expect("a rule for every collective"),
        };
        self.row(rule, query, if distance == 0 { Fit::Own } else { Fit::Nearest })
    }

    /// Whether the model chooses for a call: sizes are known, and the shape is in no class and has few ranks.
    pub fn has_model_for(&self, query: &Query<'_>) -> bool {
        let Query { collective, knowledge, shape, .. } = *query;
        let in_model = |model: &Model| model.ranks.contains(shape.get(Feature::Ranks));
        knowledge == Knowledge::Known
            && self.model.as_ref().is_some_and(in_model)
            && is_predicted(collective, shape.get(Feature::PerNode))
            && !self.classes.iter().any(|class| class.contains(shape))
    }

    /// Returns the rows among which the model chooses: of each rule the row for the call's size, the nearest rule
    /// first.
    pub fn nearest(&self, query: &Query<'_>) -> Vec<Found<'_>> {
        let mut rules: Vec<(u64, &Rule)> = self.rules_of(query).collect();
        rules.sort_by_key(|&(distance, _)| distance);
        rules.into_iter().map(|(_, rule)| self.row(rule, query, Fit::Fastest)).collect()
    }

    /// The rules for the collective of a call, in order, each with its distance from the call.
    fn rules_of<'t>(&'t self, query: &Query<'_>) -> impl Iterator<Item = (u64, &'t Rule)> {
        let Query { collective, knowledge, shape, ports, .. } = *query;
        let rules = self.rules.iter().filter(move |rule| rule.is_of(collective, knowledge));
        rules.map(move |rule| {
            let distance = self.classes[rule.class].distance(shape);
            (distance + PORTS_WEIGHT * rule.available.distance(ports), rule)
        })
    }

    fn row<'t>(&'t self, rule: &'t Rule, query: &Query<'_>, fit: Fit) -> Found<'t> {
        let all_bytes = query.all_bytes();
        let bytes = if rule.is_of_block { query.bytes } else { all_bytes };
        let row = rule.rows.iter().find(|row| row.up_to.is_none_or(|up_to| bytes <= up_to));
        let row = row.expect("the last row has no end");
        let ports = row.ports.of(all_bytes, query.ports);
        let segment_bytes = row.segment.of(all_bytes, ports);
        Found { table: self, rule, row, ports, segment_bytes, fit }
    }
}

/// Weight of a doubling of ports in the distance from a rule; the same as that of [`Feature::Dims`].
const PORTS_WEIGHT: u64 = 4;
