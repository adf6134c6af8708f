//! Decision tables: the built-in ones, or a user's (`HOPBINE_TUNING`).

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use hopbine_torus::choose::{
    Choice, DecisionTable, Features, Found, Knowledge, Model, Query, TableError, Wire,
};
use hopbine_torus::plan::max_ports;
use hopbine_torus::{Collective, Shape};

use super::predicted::PredictionCache;
use super::text::parse;

/// A decision table: the algorithm of a call that does not name one, its number of ports and its longest message.
///
/// The text of a table is TOML: see [`BUILT_IN`](Tuning::BUILT_IN), whose comments define each key. All ranks must
/// have the same table.
///
/// ```
/// use hopbine::{Tuning, Wire};
/// use hopbine::torus::{Collective, Shape};
///
/// let shape: Shape = "8x8x8".parse().unwrap();
/// let choice = Tuning::built_in(Wire::Network).choose(Collective::Bcast, &shape, 8, 6);
/// assert_eq!(choice.algorithm.name, "mixed-tree");
/// let wrong = Tuning::BUILT_IN[0].1.replace("mixed-tree", "mixed-three").parse::<Tuning>();
/// assert!(wrong.unwrap_err().to_string().contains("`mixed-three` is not an algorithm for bcast"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    table: Arc<DecisionTable>,
    predictions: Arc<PredictionCache>,
}

/// The built-in tables, parsed at their first use.
static TABLES: [OnceLock<Tuning>; Tuning::BUILT_IN.len()] =
    [const { OnceLock::new() }; Tuning::BUILT_IN.len()];

/// Returns a built-in table. A test has checked that its algorithms serve its classes.
fn built_in(at: usize) -> &'static Tuning {
    TABLES[at].get_or_init(|| {
        let (name, text) = Tuning::BUILT_IN[at];
        let table =
            parse(text, &table_of).unwrap_or_else(|error| panic!("built-in table {name}: {error}"));
        Tuning::of(table)
    })
}

fn table_of(name: &str) -> Option<Arc<DecisionTable>> {
    Tuning::named(name).map(|tuning| tuning.table.clone())
}

impl Tuning {
    /// The built-in tables' names and texts.
    pub const BUILT_IN: [(&'static str, &'static str); 4] = [
        ("network", include_str!("tables/network.toml")),
        ("memory", include_str!("tables/memory.toml")),
        ("tofu-d", include_str!("tables/tofu-d.toml")),
        ("mpi", include_str!("tables/mpi.toml")),
    ];

    /// The table of a kind of wire, for a device of which nothing else is known.
    pub fn built_in(wire: Wire) -> &'static Tuning {
        match wire {
            Wire::Network => built_in(0),
            Wire::Memory => built_in(1),
        }
    }

    /// The table of Tofu-D and of the emulated device.
    pub fn tofu_d() -> &'static Tuning {
        built_in(2)
    }

    /// The table of hosts between which MPI carries messages.
    pub(crate) fn mpi() -> &'static Tuning {
        built_in(3)
    }

    /// The built-in table of this name.
    pub fn named(name: &str) -> Option<&'static Tuning> {
        let at = Tuning::BUILT_IN.iter().position(|(known, _)| *known == name)?;
        Some(built_in(at))
    }

    fn of(table: DecisionTable) -> Self {
        Tuning { table: Arc::new(table), predictions: Arc::default() }
    }

    /// The parsed table.
    pub fn table(&self) -> &DecisionTable {
        &self.table
    }

    /// A copy of the table, if it is for this wire.
    ///
    /// # Errors
    /// The wire that the table is for, if it is another one.
    pub(crate) fn for_wire(&self, wire: Wire) -> Result<Tuning, Wire> {
        let own = self.table().wire();
        if own == wire { Ok(self.clone()) } else { Err(own) }
    }

    /// The table's row for a call on up to `ports` ports, with `bytes` bytes of the vector or of a block. If the
    /// table's model chooses, the first call of a kind takes up to some milliseconds.
    pub fn find(
        &self,
        (collective, knowledge): (Collective, Knowledge),
        (shape, of): (&Shape, &Features),
        bytes: u64,
        ports: u32,
    ) -> Found<'_> {
        let ports = ports.min(max_ports(shape));
        let query = Query { collective, knowledge, shape: of, bytes, ports };
        match self.table.model().filter(|_| self.table.has_model_for(&query)) {
            Some(model) => self.predicted_row(&query.rounded(), model, shape),
            None => self.table.find(&query),
        }
    }

    fn predicted_row(&self, query: &Query<'_>, model: &Model, shape: &Shape) -> Found<'_> {
        let mut rows = self.table.nearest(query);
        if rows.is_empty() {
            return self.table.find(query);
        }
        let fastest = self.predictions.fastest_row(&rows, query, model, shape);
        rows.swap_remove(fastest)
    }

    fn on(&self, kind: (Collective, Knowledge), shape: &Shape, bytes: u64, ports: u32) -> Choice {
        let of = Features::of(shape);
        self.find(kind, (shape, &of), bytes, ports).on(kind.0, shape, &of)
    }

    /// Chooses for a call on up to `ports` ports, whose vector or block has `bytes` bytes; for blocks of different
    /// sizes the average.
    pub fn choose(&self, collective: Collective, shape: &Shape, bytes: u64, ports: u32) -> Choice {
        self.on((collective, Knowledge::Known), shape, bytes, ports)
    }

    /// Chooses for an alltoall, a gather or a scatter in which a rank knows only the blocks that it sends and
    /// receives, so that the choice cannot depend on sizes.
    ///
    /// # Panics
    /// For other collectives.
    pub fn choose_unknown(&self, collective: Collective, shape: &Shape, ports: u32) -> Choice {
        assert!(Knowledge::Unknown.is_of(collective), "all ranks know the sizes of {collective}");
        self.on((collective, Knowledge::Unknown), shape, 0, ports)
    }

    /// Chooses for an alltoall after all ranks have learnt the length of the longest block, `longest` bytes.
    pub fn choose_learnt(&self, shape: &Shape, longest: u64, ports: u32) -> Choice {
        self.on((Collective::Alltoall, Knowledge::Learnt), shape, longest, ports)
    }
}

impl FromStr for Tuning {
    type Err = TableError;

    /// Parses a table and checks that its algorithms serve its classes.
    fn from_str(text: &str) -> Result<Self, TableError> {
        let table = parse(text, &table_of)?;
        table.check_served()?;
        Ok(Tuning::of(table))
    }
}
