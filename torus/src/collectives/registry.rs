//! The registry: every algorithm by name, with what it is made of and whom it serves.
//!
//! It drives selection, the command line's lists, the documentation's tables, the test
//! matrix and the benchmarks. No algorithm exists outside it: adding a row here is all it
//! takes to plan, check, run and draw one.
//!
//! An algorithm's name is its *family* (which pattern in which dimension), followed by a
//! *variant* where the collective has several.

use crate::collectives::Collective;
use crate::geometry::{RankMap, Shape};
use crate::patterns::Kind;
use crate::plan::{Form, Interleave, Positions, Schedule, ScheduleError, StepOrder, max_ports};

/// Which pattern a family uses in which dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Family {
    /// One pattern everywhere.
    Only(Kind),
    /// The best pattern for each size: see [`best_pattern`].
    Mixed,
}

/// One algorithm for one collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// The collective that it performs.
    pub collective: Collective,
    /// Its name: unique within the collective.
    pub name: String,
    /// One line on what it does.
    pub summary: String,
    /// Where it comes from.
    pub source: &'static str,
    /// How the collective is performed.
    pub form: Form,
    family: Family,
    positions: Positions,
    order: StepOrder,
    interleave: Interleave,
}

/// What a caller wants performed.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shape of the communicator.
    pub shape: Shape,
    /// Its rank map.
    pub map: RankMap,
    /// The root; 0 for collectives without one.
    pub root: u32,
    /// Number of ports, or as many as the shape has directions.
    pub ports: Option<u32>,
}

/// The default radix limit of the `multiplying` family: near 4 was best on every machine of
/// the generalized-radix paper (section VI).
pub const DEFAULT_MAX_RADIX: u32 = 4;

/// The pattern that `mixed` uses for a dimension: direct where all others are neighbours,
/// bine for even sizes, circulant for odd ones.
pub fn best_pattern(size: u32) -> Kind {
    match size {
        0..=3 => Kind::Direct,
        _ if size.is_multiple_of(2) => Kind::Bine,
        _ => Kind::Circulant,
    }
}

impl Algorithm {
    /// Checks that the algorithm exists for a shape.
    ///
    /// # Errors
    /// [`ScheduleError`] saying which dimension it does not serve and which sizes it would.
    pub fn serves(&self, shape: &Shape) -> Result<(), ScheduleError> {
        self.schedule(&Request {
            shape: shape.clone(),
            map: RankMap::RowMajor,
            root: 0,
            ports: Some(1),
        })
        .map(drop)
    }

    /// The schedule for a request.
    ///
    /// # Errors
    /// [`ScheduleError`] if the shape, the root or the number of ports does not fit.
    pub fn schedule(&self, request: &Request) -> Result<Schedule, ScheduleError> {
        let shape = &request.shape;
        let patterns = shape.axes().iter().map(|axis| match &self.family {
            Family::Only(kind) => kind.clone(),
            Family::Mixed => best_pattern(axis.size),
        });
        let schedule = Schedule {
            collective: self.collective,
            form: self.form,
            shape: shape.clone(),
            map: request.map.clone(),
            root: request.root,
            patterns: patterns.collect(),
            order: self.order,
            interleave: self.interleave,
            positions: self.positions,
            ports: request.ports.unwrap_or_else(|| max_ports(shape)),
        };
        schedule.validate()?;
        Ok(schedule)
    }

    /// Positions that every rank sends on every port, where the algorithm promises minimal
    /// volume: p - 1 for each pass over p blocks.
    pub fn promised_volume(&self, shape: &Shape) -> Option<u64> {
        let others = u64::from(shape.n_nodes() - 1);
        match (self.form, self.collective) {
            (Form::TwoPhase, Collective::Allreduce) => Some(2 * others),
            (Form::Butterfly, Collective::ReduceScatter | Collective::Allgather)
                if self.positions != Positions::Resend =>
            {
                Some(others)
            }
            _ => None,
        }
    }
}

/// The algorithms of a collective, in order of preference for large data on any shape.
pub fn algorithms(collective: Collective) -> Vec<Algorithm> {
    all().into_iter().filter(|algorithm| algorithm.collective == collective).collect()
}

/// The algorithm of a collective by name.
///
/// # Errors
/// [`UnknownAlgorithm`] listing the names that exist.
pub fn find(collective: Collective, name: &str) -> Result<Algorithm, UnknownAlgorithm> {
    let known = algorithms(collective);
    known.iter().find(|algorithm| algorithm.name == name).cloned().ok_or_else(|| UnknownAlgorithm {
        collective,
        name: name.to_owned(),
        known: known.iter().map(|algorithm| algorithm.name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// A name that no algorithm of the collective has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not an algorithm for {collective}; known are {known}")]
pub struct UnknownAlgorithm {
    /// The collective.
    pub collective: Collective,
    /// The name asked for.
    pub name: String,
    /// The names that exist.
    pub known: String,
}

const BINE: &str = "Bine trees, sections 3-4 and appendix D";
const SWING: &str = "Swing, sections 3-4";
const BUCKET: &str = "Swing, section 2.3.4 (bucket)";
const DOUBLING: &str = "Rabenseifner; Thakur et al. 2005";
const RADIX: &str = "generalized radix, section IV";
const OURS: &str = "algorithms.md, section 1";

/// A family: name, patterns, interleaving, summary, source, variants that it has.
struct FamilyRow {
    name: &'static str,
    family: Family,
    interleave: Interleave,
    summary: &'static str,
    source: &'static str,
    has: fn(&Variant) -> bool,
}

/// The families in order of preference.
fn families() -> [FamilyRow; 8] {
    use Interleave::{RoundRobin, Sequential};
    let row = |name, family, interleave, summary, source, has| FamilyRow {
        name,
        family,
        interleave,
        summary,
        source,
        has,
    };
    let radix = Kind::Multiplying { max_radix: DEFAULT_MAX_RADIX };
    let only = Family::Only;
    // Contiguous anyway, or without groups that nest: the variants would be copies.
    let plain: fn(&Variant) -> bool =
        |variant| variant.positions == Positions::Path && variant.form != Form::Latency;
    let not_latency: fn(&Variant) -> bool = |variant| variant.form != Form::Latency;
    // Bine block by block is what Swing is.
    let not_block: fn(&Variant) -> bool = |variant| variant.suffix != "-block";
    let direct: fn(&Variant) -> bool = |variant| {
        variant.positions == Positions::Path && variant.order == StepOrder::NearFirst
            || variant.form == Form::Latency
    };
    let swing: fn(&Variant) -> bool = |variant| variant.is_swing;
    [
        row("mixed", Family::Mixed, RoundRobin, "best pattern per dimension", OURS, |_| true),
        row("bine", only(Kind::Bine), RoundRobin, "bine steps", BINE, not_block),
        row("swing", only(Kind::Bine), RoundRobin, "bine steps, block by block", SWING, swing),
        row("doubling", only(Kind::Doubling), RoundRobin, "XOR steps", DOUBLING, |_| true),
        row("circulant", only(Kind::Circulant), RoundRobin, "one-way steps", OURS, not_latency),
        row("multiplying", only(radix), RoundRobin, "groups of up to 4", RADIX, |_| true),
        row("direct", only(Kind::Direct), RoundRobin, "one step per dimension", OURS, direct),
        row(
            "bucket",
            only(Kind::Ring),
            Sequential,
            "rings, one dimension at a time",
            BUCKET,
            plain,
        ),
    ]
}

/// A way to perform a collective with any pattern.
struct Variant {
    suffix: &'static str,
    form: Form,
    positions: Positions,
    order: StepOrder,
    /// Part of what the Swing paper describes (with `-block` data under its plain name).
    is_swing: bool,
    summary: &'static str,
}

fn variants(collective: Collective) -> Vec<Variant> {
    use Collective as C;
    use Form::{Butterfly, Latency, Tree, TwoPhase};
    use Positions::{Path, Rank, Resend};
    use StepOrder::{FarFirst, NearFirst};
    let variant = |suffix, form, positions, order, summary| Variant {
        suffix,
        form,
        positions,
        order,
        is_swing: false,
        summary,
    };
    let swing = |suffix, form, positions, order, summary| Variant {
        is_swing: true,
        ..variant(suffix, form, positions, order, summary)
    };
    match collective {
        C::Allreduce => vec![
            variant("", TwoPhase, Path, NearFirst, "reduce-scatter, then allgather (B)"),
            swing("-block", TwoPhase, Rank, NearFirst, "as B, in rank order"),
            swing("-l", Latency, Path, FarFirst, "whole vector at every step (L)"),
        ],
        C::ReduceScatter | C::Allgather => vec![
            variant("", Butterfly, Path, NearFirst, "contiguous, blocks permuted locally"),
            swing("-block", Butterfly, Rank, NearFirst, "rank order, block by block"),
            variant(
                "-send",
                Butterfly,
                Resend,
                NearFirst,
                "contiguous, blocks put right by one more exchange",
            ),
            variant("-two", Butterfly, Rank, FarFirst, "rank order, long distances first"),
        ],
        C::Bcast => vec![
            variant("", TwoPhase, Path, NearFirst, "scatter, then allgather"),
            variant("-tree", Tree, Path, NearFirst, "tree, long distances first"),
            variant("-tree-near", Tree, Path, FarFirst, "tree, short distances first"),
        ],
        C::Reduce => vec![
            variant("", TwoPhase, Path, NearFirst, "reduce-scatter, then gather"),
            variant("-tree", Tree, Path, NearFirst, "tree, short distances first"),
            variant("-tree-far", Tree, Path, FarFirst, "tree, long distances first"),
        ],
        C::Gather => vec![
            variant("", Tree, Path, NearFirst, "tree, short distances first"),
            variant("-far", Tree, Path, FarFirst, "tree, long distances first"),
        ],
        C::Scatter => vec![
            variant("", Tree, Path, NearFirst, "tree, long distances first"),
            variant("-near", Tree, Path, FarFirst, "tree, short distances first"),
        ],
        C::Alltoall => {
            vec![variant("", Butterfly, Path, NearFirst, "blocks sharing a path together")]
        }
        C::Barrier => vec![variant("", Butterfly, Path, NearFirst, "dissemination")],
    }
}

/// Every algorithm there is, by collective.
pub fn all() -> Vec<Algorithm> {
    let mut all = Vec::new();
    for collective in Collective::ALL {
        for row in families() {
            for variant in variants(collective).iter().filter(|variant| (row.has)(variant)) {
                // Swing's plain form is the block-by-block one.
                let is_swing = row.name == "swing" && variant.suffix == "-block";
                let suffix = if is_swing { "" } else { variant.suffix };
                all.push(Algorithm {
                    collective,
                    name: format!("{}{suffix}", row.name),
                    summary: format!("{}: {}", row.summary, variant.summary),
                    source: row.source,
                    form: variant.form,
                    family: row.family.clone(),
                    positions: variant.positions,
                    order: variant.order,
                    interleave: row.interleave,
                });
            }
        }
        if collective == Collective::Alltoall {
            // Not one of the torus families: `direct` above goes dimension by dimension.
            all.push(Algorithm {
                collective,
                name: "pairwise".to_owned(),
                summary: "every block straight to its owner, rounds over different links"
                    .to_owned(),
                source: OURS,
                form: Form::Direct,
                family: Family::Mixed,
                positions: Positions::Path,
                order: StepOrder::NearFirst,
                interleave: Interleave::RoundRobin,
            });
        }
    }
    all
}
