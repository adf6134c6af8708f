//! Decision tables: which algorithm performs a call, on how many ports and in which pieces, as data.
//!
//! A [`DecisionTable`] has rules, each for some collectives on the shapes of a [`ShapeClass`] and some numbers
//! of ports. The rows of a rule are intervals of sizes. What a table says depends only on what all ranks of a
//! call share; [`Query`] is all of that. A shape of no class goes by the nearest one. Tables are written
//! as text elsewhere; here is what they mean, and how they are judged ([`DecisionTable::new`],
//! [`DecisionTable::check_served`]).
//!
//! After MPICH's selection by JSON files (src/mpi/coll/coll_selection) and UCC's scores, with classes of shapes
//! in place of numbers of processes.

mod candidate;
mod check;
mod class;
mod error;
mod feature;
mod rule;
mod table;

pub use candidate::{Candidates, Template};
pub use class::ShapeClass;
pub use error::{TableError, TableProblem};
pub use feature::{Feature, Features, Interval};
pub use rule::{Knowledge, Row, Rule, Segment, Uses, Wire};
pub use table::{Choice, DecisionTable, Found, Otherwise, Query};
