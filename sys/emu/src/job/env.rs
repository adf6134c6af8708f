//! The job that the environment describes: each process is one rank. Who it is and where the ranks meet,
//! [`hopbine_meet`] reads; further variables are
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `HOPBINE_TORUS` | logical shape, as `4x2x2`; all dimensions wrap, also those marked as a mesh (`4m`) | `1xNx1` for N nodes |
//! | `HOPBINE_RANKS_PER_NODE` | ranks on each node | 1 |
//! | `HOPBINE_TIMEOUT` | seconds to wait for the other ranks | 60 |
//! | `HOPBINE_EMU_LATE` | seed of the late mode ([`crate::Model::late`]) | not late |
//! | `HOPBINE_EMU_BUSY` | posts that are refused as if the TOQ were full, of 256 ([`crate::Model::busy`]) | 0 |
//! | `HOPBINE_EMU_CHECKED` | 1: misuse ends the process with a message ([`crate::Model::checked`]) | 0 |
//! | `HOPBINE_EMU_WATCHED` | `first` or `last`: the end of a packet that the program watches without a notice; it is written last ([`crate::Watched`]) | of what lies within 256 bytes the first, else the last |
//! | `HOPBINE_EMU_CQS` | the first CQs of the ranks that share a TNI, such as `0,3,6,9` for programs that compute them as on Fugaku | as Fujitsu's library has them over its simulated device |
//! | `HOPBINE_EMU_PUT_NS`, `HOPBINE_EMU_HOP_NS`, `HOPBINE_EMU_JITTER_NS`, `HOPBINE_EMU_TNI_MBPS`, `HOPBINE_EMU_LINK_MBPS` | the latency model ([`crate::Model`]) | 0: off |
//! | `HOPBINE_EMU_OVERHEAD_NS`, `HOPBINE_EMU_GAP_NS` | its cost of a message: for the processors at both ends, for the TNIs at both ends | 0: none |
//! | `HOPBINE_EMU_NODE_PUT_NS`, `HOPBINE_EMU_NODE_OVERHEAD_NS`, `HOPBINE_EMU_NODE_MBPS` | the link between ranks of one node ([`crate::NodeLink`]); those not set are 0 | none set: as between nodes |

use crate::job::core::Job;
use crate::job::meet;
use crate::job::nodes::Layout;
use crate::limits::CQS;
use crate::limits::coords;
use crate::limits::error::JobError;
use crate::shared::watched::Watched;
use crate::timing::model::{Model, NodeLink};
use hopbine_meet::{
    Launched, Lookup, Place, VariableError, from_environment, number_of, ranks_per_node, timeout,
};
use std::time::Duration;

/// What the variables say.
#[derive(Debug, PartialEq)]
struct Settings {
    place: Place,
    shape: Vec<u32>,
    per_node: usize,
    timeout: Duration,
    model: Model,
    first_cqs: Option<Vec<u8>>,
}

/// A variable with a value that cannot be used.
fn wrong<T>(
    name: &'static str,
    value: String,
    wanted: impl Into<String>,
) -> Result<T, VariableError> {
    Err(VariableError { name, value: Some(value), wanted: wanted.into() })
}

/// Longest time of a single cost, a thousand seconds: sums of many of them stay below 2^64 ns.
const LONGEST_NS: u64 = 1_000_000_000_000;

fn nanoseconds(get: Lookup<'_>, name: &'static str) -> Result<u64, VariableError> {
    Ok(number_of(get, name, 0..=LONGEST_NS)?.unwrap_or(0))
}

fn mbps(get: Lookup<'_>, name: &'static str) -> Result<u64, VariableError> {
    Ok(number_of(get, name, 0..=u64::MAX)?.unwrap_or(0))
}

fn watched(get: Lookup<'_>) -> Result<Watched, VariableError> {
    const NAME: &str = "HOPBINE_EMU_WATCHED";
    let Some(value) = get(NAME) else { return Ok(Watched::default()) };
    match value.trim() {
        "first" => Ok(Watched::First),
        "last" => Ok(Watched::Last),
        _ => wrong(NAME, value, "first or last, the end of a put that the program watches"),
    }
}

/// Name of the variable with the first CQs of the ranks that share a TNI.
const FIRST_CQS: &str = "HOPBINE_EMU_CQS";

fn first_cqs(get: Lookup<'_>) -> Result<Option<Vec<u8>>, VariableError> {
    let Some(value) = get(FIRST_CQS) else { return Ok(None) };
    let numbers: Result<Vec<u8>, _> = value.split(',').map(|cq| cq.trim().parse()).collect();
    match numbers {
        Ok(cqs) if cqs[0] == 0 && cqs.is_sorted_by(|a, b| a < b && *b < CQS as u8) => Ok(Some(cqs)),
        _ => {
            let most = CQS - 1;
            let wanted = format!("increasing numbers of CQs from 0 to {most}, such as 0,3,6,9");
            wrong(FIRST_CQS, value, wanted)
        }
    }
}

/// The link between ranks of one node, if any of its variables is set.
fn node_link(get: Lookup<'_>) -> Result<Option<NodeLink>, VariableError> {
    const NAMES: [&str; 3] =
        ["HOPBINE_EMU_NODE_PUT_NS", "HOPBINE_EMU_NODE_OVERHEAD_NS", "HOPBINE_EMU_NODE_MBPS"];
    if NAMES.iter().all(|name| get(name).is_none()) {
        return Ok(None);
    }
    let [put_ns, overhead_ns] = [NAMES[0], NAMES[1]].map(|name| nanoseconds(get, name));
    let mbps = mbps(get, NAMES[2])?;
    Ok(Some(NodeLink { put_ns: put_ns?, overhead_ns: overhead_ns?, mbps }))
}

/// The number of nodes of a shape; None if that is too large for a number.
fn product(sizes: &[u32]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size as usize))
}

/// The sizes that `HOPBINE_TORUS` says; a row if it says nothing.
fn shape(get: Lookup<'_>, nodes: usize) -> Result<Vec<u32>, VariableError> {
    const NAME: &str = "HOPBINE_TORUS";
    let Some(value) = get(NAME) else { return Ok(vec![1, nodes as u32, 1]) };
    let size = |s: &str| s.trim().trim_end_matches('m').parse();
    let sizes: Result<Vec<u32>, _> = value.split('x').map(size).collect();
    match sizes {
        Ok(sizes) if product(&sizes) == Some(nodes) => Ok(sizes),
        _ => {
            let wanted = format!(
                "sizes such as 4x2x2 whose product is the number of nodes, {nodes} (HOPBINE_SIZE / \
                 HOPBINE_RANKS_PER_NODE)"
            );
            wrong(NAME, value, wanted)
        }
    }
}

fn settings(get: Lookup<'_>) -> Result<Settings, VariableError> {
    let place = Place::find(get)?;
    let per_node = ranks_per_node(get)?.unwrap_or(1) as usize;
    Ok(Settings {
        shape: shape(get, place.size.div_ceil(per_node))?,
        place,
        per_node,
        timeout: timeout(get)?.unwrap_or(Duration::from_secs(60)),
        model: Model {
            put_ns: nanoseconds(get, "HOPBINE_EMU_PUT_NS")?,
            hop_ns: nanoseconds(get, "HOPBINE_EMU_HOP_NS")?,
            jitter_ns: nanoseconds(get, "HOPBINE_EMU_JITTER_NS")?,
            tni_mbps: mbps(get, "HOPBINE_EMU_TNI_MBPS")?,
            link_mbps: mbps(get, "HOPBINE_EMU_LINK_MBPS")?,
            overhead_ns: nanoseconds(get, "HOPBINE_EMU_OVERHEAD_NS")?,
            gap_ns: nanoseconds(get, "HOPBINE_EMU_GAP_NS")?,
            node: node_link(get)?,
            busy: number_of(get, "HOPBINE_EMU_BUSY", 0..=u8::MAX)?.unwrap_or(0),
            late: number_of(get, "HOPBINE_EMU_LATE", 0..=u64::MAX)?,
            checked: number_of(get, "HOPBINE_EMU_CHECKED", 0..=1)? == Some(1),
            watched: watched(get)?,
        },
        first_cqs: first_cqs(get)?,
    })
}

/// Makes this process a rank of the environment's job; waits for the other ranks.
pub(crate) fn attach() -> Result<(Job, usize), JobError> {
    let s = settings(&from_environment)?;
    let nodes = coords::of_shape(&s.shape)?;
    let Place { rank, size, .. } = s.place;
    let ranks: Vec<_> = (0..size).map(|r| nodes[r / s.per_node]).collect();
    let mut layout = Layout::new(&ranks, Some(coords::three(&s.shape)?))?;
    if let Some(cqs) = &s.first_cqs {
        let sharing = layout.sharing.with_cqs(cqs).or_else(|n| {
            let value = cqs.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            wrong(FIRST_CQS, value, format!("{n} numbers at least: so many ranks share a TNI"))
        });
        layout.sharing = sharing?;
    }
    if size == 1 {
        return Ok((Job::private(layout, s.model, None)?, 0));
    }
    if let Some((variable, value)) = s.place.launched.as_ref().and_then(Launched::elsewhere) {
        return Err(JobError::SeveralHosts { variable, value: value.to_owned(), size });
    }
    let mut exchange = s.place.meet(&from_environment, ".device", s.timeout)?;
    Ok((meet::job(&mut exchange, layout, s.model)?, rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> Result<Settings, VariableError> {
        settings(&|name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| v.to_string())
        })
    }

    const RANK: (&str, &str) = ("HOPBINE_RANK", "0");

    #[test]
    fn nothing_set_is_a_job_of_one() {
        let s = with(&[]).unwrap();
        assert_eq!((s.place.rank, s.place.size, s.per_node), (0, 1, 1));
        assert_eq!(s.shape, [1, 1, 1]);
        assert!(s.model.late.is_none() && !s.model.takes_time());
        assert_eq!(s.timeout, Duration::from_secs(60));
        let s = with(&[("HOPBINE_TIMEOUT", "0.25")]).unwrap();
        assert_eq!(s.timeout, Duration::from_millis(250));
    }

    #[test]
    fn a_node_has_a_link_of_its_own_when_asked() {
        let s = with(&[("HOPBINE_EMU_OVERHEAD_NS", "5"), ("HOPBINE_EMU_GAP_NS", "6")]).unwrap();
        assert_eq!((s.model.overhead_ns, s.model.gap_ns, s.model.node), (5, 6, None));
        let s = with(&[("HOPBINE_EMU_NODE_OVERHEAD_NS", "3")]).unwrap();
        assert_eq!(s.model.node, Some(NodeLink { overhead_ns: 3, ..NodeLink::default() }));
        assert!(s.model.takes_time());
        let long = [("HOPBINE_EMU_NODE_OVERHEAD_NS", "1000000000001")];
        assert!(with(&long).unwrap_err().to_string().contains("to 1000000000000"));
        let e = with(&[("HOPBINE_EMU_NODE_MBPS", "fast")]).unwrap_err().to_string();
        assert!(e.contains("HOPBINE_EMU_NODE_MBPS=fast"), "{e}");
    }

    #[test]
    fn the_default_torus_is_a_row_of_nodes() {
        let s = with(&[RANK, ("HOPBINE_SIZE", "6"), ("HOPBINE_RANKS_PER_NODE", "4")]).unwrap();
        assert_eq!(s.shape, [1, 2, 1]);
        let s = with(&[RANK, ("HOPBINE_SIZE", "8"), ("HOPBINE_TORUS", "4mx2")]).unwrap();
        assert_eq!(s.shape, [4, 2]);
        let s = with(&[RANK, ("HOPBINE_SIZE", "8"), ("HOPBINE_TORUS", "2x2x2")]).unwrap();
        assert_eq!(s.shape, [2, 2, 2]);
    }

    #[test]
    fn wrong_values_are_named() {
        for (vars, wanted) in [
            (&[("HOPBINE_TIMEOUT", "0")][..], "HOPBINE_TIMEOUT=0"),
            (&[("HOPBINE_TIMEOUT", "soon")], "HOPBINE_TIMEOUT=soon"),
            (&[("HOPBINE_EMU_WATCHED", "middle")], "first or last"),
            (&[("HOPBINE_EMU_CQS", "3,6")], "from 0 to 10"),
            (&[("HOPBINE_EMU_CQS", "0,3,3")], "increasing"),
            (&[("HOPBINE_EMU_CQS", "0,11")], "from 0 to 10"),
            (&[("HOPBINE_EMU_CQS", "")], "such as 0,3,6,9"),
            (&[RANK, ("HOPBINE_SIZE", "4"), ("HOPBINE_TORUS", "3x2")], "number of nodes, 4"),
            (&[("HOPBINE_EMU_PUT_NS", "18446744073709551615")], "to 1000000000000"),
            (&[("HOPBINE_EMU_JITTER_NS", "1000000000001")], "HOPBINE_EMU_JITTER_NS=1000000000001"),
            (
                &[("HOPBINE_TORUS", "4294967295x4294967295x4294967295x4294967295")],
                "number of nodes, 1",
            ),
        ] {
            let e = with(vars).unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        }
    }

    use proptest::prelude::*;

    proptest! {
        /// Whatever the environment holds, the answer is settings or an error.
        #[test]
        fn no_environment_does_harm(
            values in prop::collection::vec((0usize..17, "[0-9x.m -]{0,24}|\\PC{0,8}"), 0..8),
        ) {
            const NAMES: [&str; 18] = [
                "HOPBINE_RANK", "HOPBINE_SIZE", "HOPBINE_RENDEZVOUS", "HOPBINE_TORUS",
                "HOPBINE_RANKS_PER_NODE", "HOPBINE_TIMEOUT", "HOPBINE_EMU_PUT_NS",
                "HOPBINE_EMU_TNI_MBPS", "HOPBINE_EMU_LATE", "HOPBINE_EMU_CHECKED",
                "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "HOPBINE_EMU_WATCHED", "HOPBINE_EMU_CQS",
            ];
            let get = |name: &str| {
                values.iter().find(|(n, _)| NAMES[*n] == name).map(|(_, v)| v.clone())
            };
            match settings(&get) {
                Ok(s) => {
                    prop_assert!(s.place.rank < s.place.size);
                    prop_assert_eq!(product(&s.shape), Some(s.place.size.div_ceil(s.per_node)));
                }
                Err(e) => prop_assert!(e.to_string().contains("it must be"), "{}", e),
            }
        }
    }
}
