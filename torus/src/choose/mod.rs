//! Decision tables: which algorithm performs a call, on how many ports and in which pieces, as data.
//!
//! A [`DecisionTable`] has rules, each for some collectives on the shapes of a [`ShapeClass`] and some numbers
//! of ports. The rows of a rule are intervals of sizes. What a table says depends only on what all ranks of a
//! call share; [`Query`] is all of that. A shape of no class goes by the nearest one; where the table has a [`Model`] for
//! it, by the row of the nearest classes that the network model predicts to be [`fastest`]. Tables are written as text
//! elsewhere; here is what they mean, and how they are judged ([`DecisionTable::new`], [`DecisionTable::check_served`]).
//!
//! After MPICH's selection by JSON files (src/mpi/coll/coll_selection) and UCC's scores, with classes of shapes
//! in place of numbers of processes.

mod candidate;
mod case;
mod check;
mod class;
mod error;
mod fastest;
mod feature;
mod model;
mod rule;
mod table;

pub use candidate::{Candidates, Template};
pub use case::{Case, is_predicted};
pub use class::ShapeClass;
pub use error::{TableError, TableProblem};
pub use fastest::fastest;
pub use feature::{Feature, Features, NumberRange};
pub use model::Model;
pub use rule::{Knowledge, Row, Rule, Segmentation, Uses, Wire};
pub use table::{Choice, DecisionTable, Fit, Found, Otherwise, Query};
