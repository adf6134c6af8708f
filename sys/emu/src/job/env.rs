//! The job that the environment describes: each process is one rank. [`hopbine_meet`] reads the rank, the size and
//! the rendezvous. This module reads `HOPBINE_TORUS`, `HOPBINE_RANKS_PER_NODE`, `HOPBINE_TIMEOUT` and the
//! `HOPBINE_EMU_` variables. [`hopbine_meet::variables`] lists all of them.

use crate::job::bootstrap;
use crate::job::core::Job;
use crate::job::nodes::NodePlacement;
use crate::limits::CQS;
use crate::limits::coords;
use crate::limits::error::JobError;
use crate::shared::watched::Watched;
use crate::timing::model::Model;
use hopbine_meet::variables::*;
use hopbine_meet::{Launched, Place, VariableError};
use hopbine_torus::sim::{Machine, NetworkKind};
use std::time::Duration;

/// Values of the variables.
#[derive(Debug, PartialEq)]
struct Settings {
    place: Place,
    shape: Vec<u32>,
    per_node: usize,
    timeout: Duration,
    model: Model,
    first_cqs: Option<Vec<u8>>,
}

/// Returns the delays of the network model's machine that `HOPBINE_EMU_MACHINE` names; no delays without the
/// variable.
fn delays(get: Lookup<'_>) -> Result<Model, VariableError> {
    let slowdown = EMU_SLOWER.number(get)?.unwrap_or(1);
    let Some(line) = EMU_MACHINE.get(get) else { return Ok(Model::default()) };
    match line.parse::<Machine>() {
        Ok(machine) if machine.network == NetworkKind::TofuD => {
            Ok(Model::of_machine(&machine, slowdown))
        }
        Ok(_) => Err(EMU_MACHINE.wrong(line)),
        Err(error) => {
            Err(EMU_MACHINE.wrong_here(line, format!("{} ({error})", EMU_MACHINE.values)))
        }
    }
}

fn watched(get: Lookup<'_>) -> Result<Watched, VariableError> {
    Ok(match EMU_WATCHED.word(get)? {
        None => Watched::default(),
        Some("first") => Watched::First,
        Some(_) => Watched::Last,
    })
}

fn first_cqs(get: Lookup<'_>) -> Result<Option<Vec<u8>>, VariableError> {
    let Some(value) = EMU_CQS.get(get) else { return Ok(None) };
    let numbers: Result<Vec<u8>, _> = value.split(',').map(|cq| cq.trim().parse()).collect();
    match numbers {
        Ok(cqs) if cqs[0] == 0 && cqs.is_sorted_by(|a, b| a < b && *b < CQS as u8) => Ok(Some(cqs)),
        _ => Err(EMU_CQS.wrong(value)),
    }
}

/// Returns the sizes in `HOPBINE_TORUS`; a row of nodes without the variable.
fn shape(get: Lookup<'_>, nodes: usize) -> Result<Vec<u32>, VariableError> {
    Ok(match torus(get, nodes as u32)? {
        Some(shape) => shape.sizes(),
        None => vec![1, nodes as u32, 1],
    })
}

fn settings(get: Lookup<'_>) -> Result<Settings, VariableError> {
    let place = Place::find(get)?;
    let per_node = RANKS_PER_NODE.number(get)?.unwrap_or(1);
    Ok(Settings {
        shape: shape(get, place.size.div_ceil(per_node))?,
        place,
        per_node,
        timeout: timeout(get)?.unwrap_or(DEFAULT_TIMEOUT),
        model: Model {
            jitter_ns: EMU_JITTER_NS.number(get)?.unwrap_or(0),
            reg_ns: EMU_REG_NS.number(get)?.unwrap_or(0),
            dereg_ns: EMU_DEREG_NS.number(get)?.unwrap_or(0),
            busy: EMU_BUSY.number(get)?.unwrap_or(0),
            late: EMU_LATE.number(get)?,
            checked: EMU_CHECKED.switch(get, false)?,
            watched: watched(get)?,
            ..delays(get)?
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
    let mut placement = NodePlacement::new(&ranks, Some(coords::to_3d(&s.shape)?))?;
    if let Some(cqs) = &s.first_cqs {
        let sharing = placement.sharing.with_cqs(cqs).map_err(|n| {
            let value = cqs.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            let wanted = format!("{n} numbers at least: so many ranks share a TNI");
            EMU_CQS.wrong_here(value, wanted)
        });
        placement.sharing = sharing?;
    }
    if size == 1 {
        return Ok((Job::private(placement, s.model, None)?, 0));
    }
    if let Some((variable, value)) = s.place.launched.as_ref().and_then(Launched::several_hosts) {
        return Err(JobError::SeveralHosts { variable, value: value.to_owned(), size });
    }
    let mut exchange = s.place.meet(&from_environment, ".device", s.timeout)?;
    Ok((bootstrap::job(&mut exchange, placement, s.model)?, rank))
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
        assert!(s.model.late.is_none() && !s.model.has_latency());
        assert_eq!(s.timeout, Duration::from_secs(60));
        let s = with(&[("HOPBINE_TIMEOUT", "0.25")]).unwrap();
        assert_eq!(s.timeout, Duration::from_millis(250));
    }

    #[test]
    fn delays_are_those_of_a_machine_of_the_network_model() {
        let named = ("HOPBINE_EMU_MACHINE", "tofu-d,network.hop=50");
        let slowdown = ("HOPBINE_EMU_SLOWER", "10");
        let s = with(&[named, slowdown, ("HOPBINE_EMU_JITTER_NS", "3")]).unwrap();
        let machine: Machine = named.1.parse().unwrap();
        assert_eq!(s.model, Model { jitter_ns: 3, ..Model::of_machine(&machine, 10) });
        assert!(s.model.has_latency() && s.model.hop_ns == 500);
        assert!(!with(&[slowdown]).unwrap().model.has_latency());
        let s = with(&[("HOPBINE_EMU_REG_NS", "20000"), ("HOPBINE_EMU_DEREG_NS", "7")]).unwrap();
        assert_eq!(s.model, Model { reg_ns: 20_000, dereg_ns: 7, ..Model::default() });
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
            (&[RANK, ("HOPBINE_SIZE", "4"), ("HOPBINE_TORUS", "3x2")], "of 4 nodes"),
            (&[("HOPBINE_EMU_MACHINE", "hyperx")], "it must be tofu-d"),
            (&[("HOPBINE_EMU_MACHINE", "tofu-d,network.hop=far")], "`network.hop=far` must be"),
            (&[("HOPBINE_EMU_SLOWER", "0")], "HOPBINE_EMU_SLOWER=0"),
            (&[("HOPBINE_EMU_JITTER_NS", "1000000000001")], "HOPBINE_EMU_JITTER_NS=1000000000001"),
            (&[("HOPBINE_TORUS", "4294967295x4294967295x4294967295x4294967295")], "sizes such as"),
        ] {
            let e = with(vars).unwrap_err().to_string();
            assert!(e.contains(wanted), "{e}");
        }
    }

    use proptest::prelude::*;

    proptest! {
        /// For every content of the environment the answer is settings or an error.
        #[test]
        fn no_environment_does_harm(
            values in prop::collection::vec((0usize..17, "[0-9x.m -]{0,24}|\\PC{0,8}"), 0..8),
        ) {
            const NAMES: [&str; 18] = [
                "HOPBINE_RANK", "HOPBINE_SIZE", "HOPBINE_RENDEZVOUS", "HOPBINE_TORUS",
                "HOPBINE_RANKS_PER_NODE", "HOPBINE_TIMEOUT", "HOPBINE_EMU_MACHINE",
                "HOPBINE_EMU_SLOWER", "HOPBINE_EMU_LATE", "HOPBINE_EMU_CHECKED",
                "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "HOPBINE_EMU_WATCHED", "HOPBINE_EMU_CQS",
            ];
            let get = |name: &str| {
                values.iter().find(|(n, _)| NAMES[*n] == name).map(|(_, v)| v.clone())
            };
            match settings(&get) {
                Ok(s) => {
                    prop_assert!(s.place.rank < s.place.size);
                    let nodes: usize = s.shape.iter().map(|&size| size as usize).product();
                    prop_assert_eq!(nodes, s.place.size.div_ceil(s.per_node));
                }
                Err(e) => prop_assert!(e.to_string().contains("it must be"), "{}", e),
            }
        }
    }
}
