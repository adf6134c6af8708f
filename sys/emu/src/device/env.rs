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
//! | `HOPBINE_EMU_PUT_NS`, `HOPBINE_EMU_HOP_NS`, `HOPBINE_EMU_JITTER_NS`, `HOPBINE_EMU_TNI_MBPS` | the latency model ([`crate::Model`]) | 0: off |
//!
//! With none set the process is a job of one rank.

use crate::arena::Arena;
use crate::coords;
use crate::error::JobError;
use crate::job::Job;
use crate::layout::Plan;
use crate::model::Model;
use crate::nodes::Layout;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[path = "rendezvous.rs"]
mod rendezvous;

/// What the variables say.
#[derive(Debug, PartialEq)]
struct Settings {
    rank: usize,
    size: usize,
    rendezvous: Option<PathBuf>,
    shape: Vec<u32>,
    per_node: usize,
    timeout: Duration,
    model: Model,
}

/// Looks variables up; a trait object in tests.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

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

fn seconds(get: Lookup<'_>, name: &'static str, default: Duration) -> Result<Duration, JobError> {
    let Some(value) = get(name) else { return Ok(default) };
    let time = value.trim().parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    time.filter(|time| !time.is_zero()).ok_or_else(|| JobError::Variable {
        name,
        value,
        wanted: "must be a number of seconds above 0".to_owned(),
    })
}

fn settings(get: Lookup<'_>) -> Result<Settings, JobError> {
    let size = number(get, "HOPBINE_SIZE", 1usize, 1)?;
    let rank = number(get, "HOPBINE_RANK", 0usize, 0)?;
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
                Ok(s) if s.iter().map(|&n| n as usize).product::<usize>() == nodes => s,
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
        rendezvous: get("HOPBINE_RENDEZVOUS").map(PathBuf::from),
        shape,
        per_node,
        timeout: seconds(get, "HOPBINE_TIMEOUT", Duration::from_secs(60))?,
        model: Model {
            put_ns: number(get, "HOPBINE_EMU_PUT_NS", 0u64, 0)?,
            hop_ns: number(get, "HOPBINE_EMU_HOP_NS", 0u64, 0)?,
            jitter_ns: number(get, "HOPBINE_EMU_JITTER_NS", 0u64, 0)?,
            tni_mbps: number(get, "HOPBINE_EMU_TNI_MBPS", 0u64, 0)?,
        },
    })
}

/// Makes this process a rank of the environment's job; waits for the other ranks.
pub(crate) fn attach() -> Result<(Job, usize), JobError> {
    let s = settings(&|name| std::env::var(name).ok())?;
    let nodes = coords::of_shape(&s.shape)?;
    let ranks: Vec<_> = (0..s.size).map(|r| nodes[r / s.per_node]).collect();
    let layout = Layout::new(&ranks, Some(coords::three(&s.shape)?))?;
    let plan = Plan::new(s.size, nodes.len());
    if s.size == 1 {
        let arena =
            Arena::private(plan.len).map_err(|source| JobError::Map { bytes: plan.len, source })?;
        return Ok((Job::assemble(arena, plan, 0, layout, s.model, None), 0));
    }
    let Some(path) = s.rendezvous else {
        return Err(JobError::Variable {
            name: "HOPBINE_RENDEZVOUS",
            value: String::new(),
            wanted: format!("must be the path of a fresh file, the same for all {} ranks", s.size),
        });
    };
    let arena = rendezvous::open(&path, s.size, plan.len, s.timeout)?;
    let job = Job::assemble(arena.arena, plan, 0, layout, s.model, Some(s.rank));
    rendezvous::meet(&job, s.rank, &path, arena.memory, s.timeout)?;
    Ok((job, s.rank))
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
        assert!(s.model.is_off());
        assert_eq!(s.timeout, Duration::from_secs(60));
        let s = with(&[("HOPBINE_TIMEOUT", "0.25")]).unwrap();
        assert_eq!(s.timeout, Duration::from_millis(250));
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
            (&[("HOPBINE_SIZE", "none")], "HOPBINE_SIZE=none"),
            (&[("HOPBINE_SIZE", "0")], "at least 1"),
            (&[("HOPBINE_SIZE", "4"), ("HOPBINE_TORUS", "3x2")], "number of nodes, 4"),
        ] {
            let e = with(vars).unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        }
    }
}
