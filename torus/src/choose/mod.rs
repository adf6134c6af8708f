//! Decision tables: which algorithm performs a call, on how many ports and in which pieces, as data.
//!
//! A [`DecisionTable`] has rules. A rule is for some collectives on the shapes of a [`ShapeClass`] and some numbers
//! of ports; its rows are for intervals of sizes. The choice depends only on values that all ranks of a call share:
//! the [`Query`]. For a shape without a class the nearest class decides or, if the table has a [`Model`] for the
//! shape, the row of the nearest classes that the network model predicts to be [`fastest`](fn@fastest). Other crates
//! read tables from text; this module has their meaning and their checks ([`DecisionTable::new`],
//! [`DecisionTable::check_served`]).
//!
//! Similar to MPICH's selection by JSON files (src/mpi/coll/coll_selection) and UCC's scores, with classes of shapes
//! in place of numbers of processes.

mod candidate;
mod case;
mod check;
mod class;
mod error;
mod fastest;
mod feature;
mod limits;
mod model;
mod rule;
mod table;

pub use candidate::{Candidates, Template};
pub use case::{Case, is_predicted};
pub use class::ShapeClass;
pub use error::{TableError, TableProblem};
pub use fastest::fastest;
pub use feature::{Feature, Features, NumberRange};
pub use limits::ShmLimits;
pub use model::Model;
pub use rule::{Knowledge, Row, Rule, Segmentation, Uses, Wire};
pub use table::{Choice, DecisionTable, FallbackTable, Fit, Found, Query};
