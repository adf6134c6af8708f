//! 1-D patterns: for a ring of `d` coordinates, the peers to which each coordinate may send at each step.
//!
//! A pattern contains no data, no sizes and no collective (algorithms.md section 1). It consists of a *law* that
//! composes coordinates, the peers to which coordinate 0 may send at each step, and the rule for the path of a
//! block to 0. So patterns are vertex-transitive: for every coordinate x there is a renumbering of the ring that
//! moves x to 0 and maps the pattern onto itself ([`Pattern::normalise`]), and one column of the toward table
//! ([`Toward`]), that of coordinate 0, determines the whole table.
//!
//! The *mirrored* form of a pattern is its image under a -> -a: it starts in the opposite direction (Swing, section
//! 4.1; Bine, appendix D.4). Where groups of neighbours exchange, as in doubling, the *opposed* form replaces it, if
//! the collective allows it ([`Pattern::opposed`]). The *far-first* form takes the steps in reverse order, which
//! turns distance doubling into distance halving.
//!
//! ```
//! use hopbine_torus::patterns::Pattern;
//! let bine = Pattern::new("bine".parse().unwrap(), 8).unwrap();
//! assert_eq!(bine.n_steps(), 3);
//! assert_eq!((0..3).map(|t| bine.targets(t, 0)[0]).collect::<Vec<_>>(), [1, 7, 3]);
//! ```

mod kind;
mod law;
mod pattern;
mod rule;
#[cfg(test)]
mod tests;
mod toward;

pub use kind::{PatternKind, UnknownPattern, UnsupportedSize};
pub use pattern::{Hop, Pattern};
pub use rule::Peers;
pub use toward::Toward;
