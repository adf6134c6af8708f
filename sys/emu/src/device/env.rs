//! The job that the environment describes: each process is one rank.
//!
//! | variable | meaning | default |
//! | --- | --- | --- |
//! | `HOPBINE_RANK` | rank of this process | 0 |
//! | `HOPBINE_SIZE` | number of ranks | 1 |
//! | `HOPBINE_RENDEZVOUS` | path of a file, the same for all ranks, fresh for every job | needed if there are more ranks than one |
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
//!
//! Under `mpirun` or `mpiexec` of Open MPI and MPICH, and under `srun`, rank and size are the
//! launcher's unless `HOPBINE_SIZE` or `HOPBINE_RANK` is set, and the ranks need no
//! `HOPBINE_RENDEZVOUS`: they meet by a file of their own in `$XDG_RUNTIME_DIR/hopbine-USER` (else in
//! `/dev/shm`, else in the directory for temporary files), which goes when all have come.
//!
//! A variable that is set to nothing counts as unset. With nothing set and no launcher the process is
//! a job of one rank.

use crate::arena::Arena;
use crate::coords;
use crate::error::JobError;
use crate::job::Job;
use crate::launcher::Launched;
use crate::layout::{CQS, Plan};
use crate::meet::meet;
use crate::model::{Model, NodeLink};
use crate::nodes::Layout;
use crate::rendezvous;
use crate::watched::Watched;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What the variables say.
#[derive(Debug, PartialEq)]
struct Settings {
    rank: usize,
    size: usize,
    rendezvous: Option<PathBuf>,
    /// Who has said rank and size, if not our own variables.
    launched: Option<Launched>,
    shape: Vec<u32>,
    per_node: usize,
    timeout: Duration,
    model: Model,
    first_cqs: Option<Vec<u8>>,
}

/// Where and how long the ranks wait for each other.
#[derive(Debug)]
pub(crate) struct Meeting {
    pub(crate) path: PathBuf,
    /// The path was made up here, for this job alone.
    pub(crate) is_ours: bool,
    pub(crate) timeout: Duration,
}

/// Most ranks of a job: far more than a host can run, and few enough to count in.
const MOST_RANKS: usize = 1 << 20;

/// Looks variables up; a trait object in tests.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

fn number<T: FromStr + PartialOrd + std::fmt::Display>(
    get: Lookup<'_>,
    name: &'static str,
    default: T,
    least: T,
) -> Result<T, JobError> {
    let Some(value) = get(name) else {
        return Ok(default);
    };
    match value.trim().parse() {
        Ok(n) if n >= least => Ok(n),
        _ => Err(JobError::Variable {
            name,
            value,
            wanted: format!("must be a whole number of at least {least}"),
        }),
    }
}

/// Longest time of a single cost, a thousand seconds: sums of many of them stay below 2^64 ns.
const LONGEST_NS: u64 = 1_000_000_000_000;

fn nanoseconds(get: Lookup<'_>, name: &'static str) -> Result<u64, JobError> {
    let ns = number(get, name, 0u64, 0)?;
    if ns <= LONGEST_NS {
        return Ok(ns);
    }
    let wanted = format!("must be at most {LONGEST_NS}");
    Err(JobError::Variable { name, value: ns.to_string(), wanted })
}

fn seconds(get: Lookup<'_>, name: &'static str, default: Duration) -> Result<Duration, JobError> {
    let Some(value) = get(name) else { return Ok(default) };
    let time = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| JobError::Variable {
        name,
        value,
        wanted: "must be a number of seconds above 0".to_owned(),
    })
}

fn watched(get: Lookup<'_>) -> Result<Watched, JobError> {
    const NAME: &str = "HOPBINE_EMU_WATCHED";
    let Some(value) = get(NAME) else { return Ok(Watched::default()) };
    match value.trim() {
        "first" => Ok(Watched::First),
        "last" => Ok(Watched::Last),
        _ => {
            let wanted = "must be first or last, the end of a put that the program watches";
            Err(JobError::Variable { name: NAME, value, wanted: wanted.to_owned() })
        }
    }
}

/// Name of the variable with the path of the rendezvous file.
const RENDEZVOUS: &str = "HOPBINE_RENDEZVOUS";

/// Name of the variable with the first CQs of the ranks that share a TNI.
const FIRST_CQS: &str = "HOPBINE_EMU_CQS";

fn first_cqs(get: Lookup<'_>) -> Result<Option<Vec<u8>>, JobError> {
    let Some(value) = get(FIRST_CQS) else { return Ok(None) };
    let numbers: Result<Vec<u8>, _> = value.split(',').map(|cq| cq.trim().parse()).collect();
    let is_right = |cqs: &Vec<u8>| {
        cqs[0] == 0 && cqs.is_sorted_by(|a, b| a < b) && cqs.iter().all(|cq| *cq < CQS as u8)
    };
    let cqs = numbers.ok().filter(is_right).ok_or_else(|| JobError::Variable {
        name: FIRST_CQS,
        value,
        wanted: format!("must be increasing numbers of CQs from 0 to {}, such as 0,3,6,9", CQS - 1),
    })?;
    Ok(Some(cqs))
}

/// The link between ranks of one node, if any of its variables is set.
fn node_link(get: Lookup<'_>) -> Result<Option<NodeLink>, JobError> {
    const NAMES: [&str; 3] =
        ["HOPBINE_EMU_NODE_PUT_NS", "HOPBINE_EMU_NODE_OVERHEAD_NS", "HOPBINE_EMU_NODE_MBPS"];
    if NAMES.iter().all(|name| get(name).is_none()) {
        return Ok(None);
    }
    let [put_ns, overhead_ns] = [NAMES[0], NAMES[1]].map(|name| nanoseconds(get, name));
    let mbps = number(get, NAMES[2], 0u64, 0)?;
    Ok(Some(NodeLink { put_ns: put_ns?, overhead_ns: overhead_ns?, mbps }))
}

/// The number of nodes of a shape; None if that is too large for a number.
fn product(sizes: &[u32]) -> Option<usize> {
    sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size as usize))
}

fn settings(get: Lookup<'_>) -> Result<Settings, JobError> {
    let ours = ["HOPBINE_SIZE", "HOPBINE_RANK"].iter().any(|name| get(name).is_some());
    let launched = if ours { None } else { Launched::find(get)? };
    if let Some(Launched { size, elsewhere: Some((name, value)), .. }) = &launched {
        let wanted = format!(
            "not all {size} ranks are on this host, but the emulated device's share its memory: \
             start them on one"
        );
        return Err(JobError::Variable { name, value: value.clone(), wanted });
    }
    let (rank, size) = match &launched {
        Some(l) => (l.rank, l.size),
        None => (number(get, "HOPBINE_RANK", 0, 0)?, number(get, "HOPBINE_SIZE", 1usize, 1)?),
    };
    if size > MOST_RANKS {
        return Err(JobError::Variable {
            name: "HOPBINE_SIZE",
            value: size.to_string(),
            wanted: format!("must be at most {MOST_RANKS}"),
        });
    }
    let per_node = number(get, "HOPBINE_RANKS_PER_NODE", 1usize, 1)?;
    if rank >= size {
        return Err(JobError::Variable {
            name: "HOPBINE_RANK",
            value: rank.to_string(),
            wanted: format!("must be below HOPBINE_SIZE={size}"),
        });
    }
    let nodes = size.div_ceil(per_node);
    let shape = match get("HOPBINE_TORUS") {
        None => vec![1, nodes as u32, 1],
        Some(value) => {
            let size = |s: &str| s.trim().trim_end_matches('m').parse();
            let sizes: Result<Vec<u32>, _> = value.split('x').map(size).collect();
            match sizes {
                Ok(s) if product(&s) == Some(nodes) => s,
                _ => {
                    return Err(JobError::Variable {
                        name: "HOPBINE_TORUS",
                        value,
                        wanted: format!(
                            "must be sizes such as 4x2x2 whose product is the number of nodes, {nodes} (HOPBINE_SIZE / HOPBINE_RANKS_PER_NODE)"
                        ),
                    });
                }
            }
        }
    };
    Ok(Settings {
        rank,
        size,
        rendezvous: get(RENDEZVOUS).map(PathBuf::from),
        launched,
        shape,
        per_node,
        timeout: seconds(get, "HOPBINE_TIMEOUT", Duration::from_secs(60))?,
        model: Model {
            put_ns: nanoseconds(get, "HOPBINE_EMU_PUT_NS")?,
            hop_ns: nanoseconds(get, "HOPBINE_EMU_HOP_NS")?,
            jitter_ns: nanoseconds(get, "HOPBINE_EMU_JITTER_NS")?,
            tni_mbps: number(get, "HOPBINE_EMU_TNI_MBPS", 0u64, 0)?,
            link_mbps: number(get, "HOPBINE_EMU_LINK_MBPS", 0u64, 0)?,
            overhead_ns: nanoseconds(get, "HOPBINE_EMU_OVERHEAD_NS")?,
            gap_ns: nanoseconds(get, "HOPBINE_EMU_GAP_NS")?,
            node: node_link(get)?,
            busy: number(get, "HOPBINE_EMU_BUSY", 0u8, 0)?,
            late: match get("HOPBINE_EMU_LATE") {
                None => None,
                Some(_) => Some(number(get, "HOPBINE_EMU_LATE", 0u64, 0)?),
            },
            checked: number(get, "HOPBINE_EMU_CHECKED", 0u64, 0)? != 0,
            watched: watched(get)?,
        },
        first_cqs: first_cqs(get)?,
    })
}

/// A variable of this process, unless it is empty. What is no text is shown as well as can be, and so is
/// refused.
fn from_environment(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// This process's rank, and the number of ranks.
///
/// # Errors
/// [`JobError::Variable`].
pub fn place() -> Result<(usize, usize), JobError> {
    let s = settings(&from_environment)?;
    Ok((s.rank, s.size))
}

/// Makes this process a rank of the environment's job; waits for the other ranks.
pub(crate) fn attach() -> Result<(Job, usize), JobError> {
    let mut s = settings(&from_environment)?;
    // A path need not be text.
    s.rendezvous = s.rendezvous.and_then(|_| std::env::var_os(RENDEZVOUS)).map(PathBuf::from);
    let nodes = coords::of_shape(&s.shape)?;
    let ranks: Vec<_> = (0..s.size).map(|r| nodes[r / s.per_node]).collect();
    let mut layout = Layout::new(&ranks, Some(coords::three(&s.shape)?))?;
    if let Some(cqs) = &s.first_cqs {
        let sharing = layout.sharing.with_cqs(cqs).map_err(|n| JobError::Variable {
            name: FIRST_CQS,
            value: cqs.iter().map(u8::to_string).collect::<Vec<_>>().join(","),
            wanted: format!("must be {n} numbers at least: so many ranks share a TNI"),
        });
        layout.sharing = sharing?;
    }
    let plan = Plan::new(s.size, nodes.len());
    if s.size == 1 {
        let arena =
            Arena::private(plan.len).map_err(|source| JobError::Map { bytes: plan.len, source })?;
        return Ok((Job::assemble(arena, plan, 0, layout, s.model, None, None)?, 0));
    }
    let meeting = meeting(&s)?;
    let (arena, memory) = rendezvous::open(&meeting, s.size, plan)?.into_parts();
    let job = Job::assemble(arena, plan, 0, layout, s.model, Some(s.rank), None)?;
    meet(&job, s.rank, &meeting, memory)?;
    Ok((job, s.rank))
}

/// Where the ranks meet: where the user says, or at a place that the ranks of one launcher find.
fn meeting(s: &Settings) -> Result<Meeting, JobError> {
    let timeout = s.timeout;
    if let Some(path) = s.rendezvous.clone() {
        return Ok(Meeting { path, is_ours: false, timeout });
    }
    let Some(launched) = &s.launched else {
        return Err(JobError::Variable {
            name: RENDEZVOUS,
            value: String::new(),
            wanted: format!("must be the path of a fresh file, the same for all {} ranks", s.size),
        });
    };
    let path = launched.meeting_place()?;
    Ok(Meeting { path, is_ours: true, timeout })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> Result<Settings, JobError> {
        settings(&|name| {
            let found = vars.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| v.to_string())
        })
    }

    #[test]
    fn nothing_set_is_a_job_of_one() {
        let s = with(&[]).unwrap();
        assert_eq!((s.rank, s.size, s.per_node), (0, 1, 1));
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
        assert!(with(&long).unwrap_err().to_string().contains("at most 1000000000000"));
        let e = with(&[("HOPBINE_EMU_NODE_MBPS", "fast")]).unwrap_err().to_string();
        assert!(e.contains("HOPBINE_EMU_NODE_MBPS=fast"), "{e}");
    }

    #[test]
    fn the_default_torus_is_a_row_of_nodes() {
        let s = with(&[("HOPBINE_SIZE", "6"), ("HOPBINE_RANKS_PER_NODE", "4")]).unwrap();
        assert_eq!(s.shape, [1, 2, 1]);
        let s = with(&[("HOPBINE_SIZE", "8"), ("HOPBINE_TORUS", "4mx2")]).unwrap();
        assert_eq!(s.shape, [4, 2]);
        let s = with(&[("HOPBINE_SIZE", "8"), ("HOPBINE_TORUS", "2x2x2")]).unwrap();
        assert_eq!(s.shape, [2, 2, 2]);
    }

    #[test]
    fn wrong_values_are_named() {
        for (vars, wanted) in [
            (&[("HOPBINE_RANK", "2")][..], "HOPBINE_SIZE=1"),
            (&[("HOPBINE_TIMEOUT", "0")], "HOPBINE_TIMEOUT=0"),
            (&[("HOPBINE_TIMEOUT", "soon")], "HOPBINE_TIMEOUT=soon"),
            (&[("HOPBINE_EMU_WATCHED", "middle")], "first or last"),
            (&[("HOPBINE_EMU_CQS", "3,6")], "from 0 to 10"),
            (&[("HOPBINE_EMU_CQS", "0,3,3")], "increasing"),
            (&[("HOPBINE_EMU_CQS", "0,11")], "from 0 to 10"),
            (&[("HOPBINE_EMU_CQS", "")], "such as 0,3,6,9"),
            (&[("HOPBINE_SIZE", "none")], "HOPBINE_SIZE=none"),
            (&[("HOPBINE_SIZE", "0")], "at least 1"),
            (&[("HOPBINE_SIZE", "4"), ("HOPBINE_TORUS", "3x2")], "number of nodes, 4"),
            (&[("HOPBINE_SIZE", "99999999999")], "at most"),
            (&[("HOPBINE_EMU_PUT_NS", "18446744073709551615")], "at most 1000000000000"),
            (&[("HOPBINE_EMU_JITTER_NS", "1000000000001")], "HOPBINE_EMU_JITTER_NS=1000000000001"),
            (
                &[("HOPBINE_TORUS", "4294967295x4294967295x4294967295x4294967295")],
                "number of nodes, 1",
            ),
            (&[("PMI_RANK", "5"), ("PMI_SIZE", "4")], "PMI_RANK=5"),
        ] {
            let e = with(vars).unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        }
    }

    #[test]
    fn a_launcher_of_mpi_says_who_this_is() {
        let mpich = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")];
        let s = with(&mpich).unwrap();
        assert_eq!((s.rank, s.size), (1, 2));
        let meeting = meeting(&s).unwrap();
        assert!(meeting.is_ours);
        // Our own variables come first, also those that say nothing of the rank.
        let both = [("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("HOPBINE_SIZE", "1")];
        assert_eq!(with(&both).map(|s| (s.rank, s.size, s.launched)).unwrap(), (0, 1, None));
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
                    prop_assert!(s.rank < s.size && s.size <= MOST_RANKS);
                    prop_assert_eq!(product(&s.shape), Some(s.size.div_ceil(s.per_node)));
                }
                Err(e) => prop_assert!(e.to_string().contains('='), "{}", e),
            }
        }
    }
}
