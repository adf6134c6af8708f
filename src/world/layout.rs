//! How the ranks of a job lie on a torus, from settings and from what the device reports.
//!
//! Reads the file of a rank map; everything else is pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::config::read_text;
use super::placement::by_host;
use crate::error::Error;
use hopbine_meet::variables::{self, Lookup, PORTS, RANK_MAP};
use hopbine_torus::choose::Wire;
use hopbine_torus::geometry::near_cubic;
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::patterns::PatternKind;

/// The longest file of a rank map in bytes: hundreds of bytes for each rank of the largest machine.
const LONGEST_MAP: u64 = 64 << 20;

/// The shape of the nodes by `HOPBINE_TORUS`; `None` if unset.
pub(super) fn torus(get: Lookup<'_>, n_ranks: u32, per_node: u32) -> Result<Option<Shape>, String> {
    if !n_ranks.is_multiple_of(per_node) {
        return Err(format!(
            "{n_ranks} ranks cannot be {per_node} on each node (HOPBINE_RANKS_PER_NODE)"
        ));
    }
    variables::torus(get, n_ranks / per_node).map_err(|error| error.to_string())
}

/// The value of `HOPBINE_RANK_MAP`.
pub(super) enum RankMapSetting {
    Unset,
    Word(RankMap),
    /// `hosts`
    ByHost,
    /// The path and the text of a file, or why it cannot be read.
    File(String, Result<String, String>),
}

impl RankMapSetting {
    pub(super) fn read(get: Lookup<'_>) -> Self {
        match RANK_MAP.get(get) {
            None => RankMapSetting::Unset,
            Some(word) if word == "column-major" => RankMapSetting::Word(RankMap::ColumnMajor),
            Some(word) if word == "row-major" => RankMapSetting::Word(RankMap::RowMajor),
            Some(word) if word == "hosts" => RankMapSetting::ByHost,
            Some(path) => {
                let text = read_text(&path, LONGEST_MAP).map_err(|error| error.to_string());
                RankMapSetting::File(path, text)
            }
        }
    }

    /// A text that is the same on ranks with the same map; the paths of their files may differ.
    pub(super) fn comparable_text(&self) -> String {
        match self {
            RankMapSetting::Unset => String::new(),
            RankMapSetting::Word(map) => format!("{map:?}"),
            RankMapSetting::ByHost => "hosts".to_owned(),
            RankMapSetting::File(_, Ok(text)) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                format!("(a file of {} bytes, {:016x})", text.len(), hasher.finish())
            }
            RankMapSetting::File(path, Err(error)) => format!("({path} cannot be read: {error})"),
        }
    }
}

/// Shape and rank map of all ranks: those `given` by the machine, else those of the settings, whose rank map also
/// replaces a given one. Ranks with the same number in `hosts` are on one host.
///
/// # Errors
/// The setting that does not fit, and why.
pub(super) fn lay_out(
    wanted: &RankMapSetting,
    torus: Option<Shape>,
    given: Option<(Shape, RankMap)>,
    wire: Wire,
    n_ranks: u32,
    hosts: &[u64],
    per_node: u32,
) -> Result<(Shape, RankMap), String> {
    let (shape, map) = match given {
        Some(given) => given,
        None => {
            let nodes = n_ranks / per_node;
            let sizes = || match wire {
                Wire::Network => near_cubic(nodes),
                // In memory all ranks are neighbours, and every dimension adds a step.
                Wire::Memory if PatternKind::Direct.serves(nodes).is_ok() => vec![nodes],
                Wire::Memory => near_cubic(nodes),
            };
            let torus = torus.map_or_else(|| Shape::torus(&sizes()), Ok);
            let torus = torus.map_err(|error| error.to_string())?;
            let shape = torus
                .with_ranks_per_node(per_node)
                .map_err(|error| format!("{torus} with {per_node} ranks on each node: {error}"))?;
            (shape, RankMap::default())
        }
    };
    let map = match wanted {
        RankMapSetting::Unset => map,
        RankMapSetting::Word(map) => map.clone(),
        RankMapSetting::ByHost => by_host(&shape, hosts)?,
        RankMapSetting::File(path, Err(error)) => {
            return Err(format!("HOPBINE_RANK_MAP={path} cannot be read: {error}"));
        }
        RankMapSetting::File(path, Ok(text)) => RankMap::parse(&shape, text)
            .map_err(|error| format!("HOPBINE_RANK_MAP={path} for the shape {shape}: {error}"))?,
    };
    Ok((shape, map))
}

/// Ports per rank: `wanted`, or by default two per dimension, at most one per interface.
///
/// # Errors
/// [`Error::Setting`].
pub(super) fn n_ports(
    wanted: Option<u32>,
    shape: &Shape,
    n_interfaces: usize,
) -> Result<usize, Error> {
    let most = hopbine_torus::plan::max_ports(shape);
    match wanted {
        Some(ports) if ports <= most => Ok(ports as usize),
        Some(ports) => {
            let wanted = format!("1 to {most}, two for each dimension of {shape}");
            Err(PORTS.wrong_here(ports.to_string(), wanted).into())
        }
        None => Ok((most as usize).min(n_interfaces).max(1)),
    }
}
