//! The algorithm that a call names: a name in the registry, a schedule as text, or a search.

use std::sync::Mutex;

use hopbine_torus::collectives::Collective;
use hopbine_torus::geometry::{RankMap, Shape};
use hopbine_torus::plan::{Schedule, max_ports};
use hopbine_torus::registry::{self, Algorithm};
use hopbine_torus::search::{SEGMENTS, SearchRequest, best_of};
use hopbine_torus::sim::Machine;

use crate::Rank;
use crate::error::{Error, ScheduleProblem};
use crate::sync::lock;

/// Requests a search under the model of the first machine; `search:MACHINE` selects another one.
const SEARCH: &str = "search";
/// First word of the text of a schedule.
const SCHEDULE: &str = "schedule";
/// Schedules that a search predicts in addition to the rows of the registry.
const SEARCH_BUDGET: u64 = 48;
/// Results of searches that are kept.
const KEPT_RESULTS: usize = 32;

/// The properties of a call on which its algorithm depends; the same on all ranks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Asked {
    /// The collective.
    pub collective: Collective,
    /// The shape of the communicator.
    pub shape: Shape,
    /// The vertex of the root in row-major order; 0 for collectives without one.
    pub root: u32,
    /// Number of ports of a rank.
    pub n_ports: u32,
    /// Number of ports that the call requests.
    pub ports: Option<u32>,
    /// Bytes of all data of a rank, if all ranks know them.
    pub bytes: Option<u64>,
}

impl Asked {
    /// A call on all ports, with the first vertex as its root and an unknown size.
    pub fn new(collective: Collective, shape: Shape, n_ports: u32) -> Self {
        Asked { collective, shape, root: 0, n_ports, ports: None, bytes: None }
    }

    /// Sets the root, the ports that the call requests, and the bytes of all data of a rank.
    #[must_use]
    pub fn with(self, root: u32, ports: Option<u32>, bytes: Option<u64>) -> Self {
        Asked { root, ports, bytes, ..self }
    }
}

/// The algorithm that a call names, with the settings that come with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of ports, if the name or schedule sets it.
    pub ports: Option<u32>,
    /// The longest message in bytes, if a search has set it.
    pub segment_bytes: Option<u64>,
    /// Whether the call gave a schedule as text, not a name in the registry or a search.
    pub is_written: bool,
}

impl Wanted {
    /// Whether this text requests a search.
    pub fn is_search(text: &str) -> bool {
        search_machine(text).is_some()
    }

    /// Finds the algorithm that a call names: the algorithm with this name; that of a schedule, if this is its text;
    /// or for `search` and `search:MACHINE` the best schedule that a search finds under the network model of Tofu-D
    /// or of another built-in machine. A shape that does not fit the machine is modelled as rings of the machine's
    /// links. A schedule's own map and root are ignored; those of the call apply.
    ///
    /// # Errors
    /// [`Error::UnknownAlgorithm`]; [`Error::Schedule`], which names `rank`, for a schedule that does not fit the
    /// call; [`Error::NotServed`] if nothing can be searched.
    pub fn new(text: &str, asked: &Asked, rank: Rank) -> Result<Self, Error> {
        let collective = asked.collective;
        if text.split_whitespace().next() == Some(SCHEDULE) || text.contains('\n') {
            let refused =
                |problem| Error::Schedule { rank, collective, problem: Box::new(problem) };
            return Wanted::from_schedule(text, asked).map_err(refused);
        }
        if let Some(machine) = search_machine(text) {
            let name = text.to_owned();
            let refused = |reason| Error::NotServed { collective, name, reason };
            return search(machine, asked).map_err(refused);
        }
        let algorithm = registry::find(collective, text).map_err(|unknown| {
            Error::UnknownAlgorithm { collective, name: unknown.name, known: unknown.known }
        })?;
        // An algorithm that splits the data fixes the number of ports.
        let ports = algorithm.ports().filter(|_| asked.ports.is_none());
        Ok(Wanted { algorithm, ports, segment_bytes: None, is_written: false })
    }

    fn from_schedule(text: &str, asked: &Asked) -> Result<Self, ScheduleProblem> {
        let schedule: Schedule = text.parse().map_err(ScheduleProblem::Text)?;
        if schedule.collective != asked.collective {
            return Err(ScheduleProblem::Collective { found: schedule.collective });
        }
        if schedule.shape != asked.shape {
            let [found, here] = [&schedule.shape, &asked.shape].map(Shape::to_string);
            return Err(ScheduleProblem::Shape { found, here });
        }
        let found = schedule.ports;
        let valid = match asked.ports {
            Some(ports) if ports != found => Some(ports.to_string()),
            _ if found > asked.n_ports => Some(format!("1 to {}", asked.n_ports)),
            _ => None,
        };
        if let Some(valid) = valid {
            return Err(ScheduleProblem::Ports { found, valid });
        }
        let root = hopbine_torus::Rank(asked.root);
        let here = Schedule { map: RankMap::RowMajor, root, ..schedule };
        here.validate().map_err(ScheduleProblem::Refused)?;
        let algorithm = Algorithm::of_schedule(&here);
        Ok(Wanted { algorithm, ports: Some(found), segment_bytes: None, is_written: true })
    }
}

/// The machine of a requested search; `None` if the text requests none.
fn search_machine(text: &str) -> Option<&str> {
    match text.split_once(':') {
        None => (text == SEARCH).then_some(Machine::NAMES[0]),
        Some((name, machine)) => (name == SEARCH).then_some(machine),
    }
}

/// Results of searches by machine and call, the latest at the end.
static SEARCH_RESULTS: Mutex<Vec<(String, Asked, Wanted)>> = Mutex::new(Vec::new());

/// The best schedule that a search finds. A search does not depend on a clock, so all ranks find the same schedule.
fn search(machine: &str, asked: &Asked) -> Result<Wanted, String> {
    // Searches under the lock: other ranks of this process request the same search.
    let kept = &mut *lock(&SEARCH_RESULTS);
    let is_same = |(of, call, _): &&(String, Asked, Wanted)| of == machine && call == asked;
    if let Some((.., wanted)) = kept.iter().find(is_same) {
        return Ok(wanted.clone());
    }
    let bytes = asked
        .bytes
        .ok_or("a search needs a call in which all ranks know all sizes; name an algorithm")?;
    let (name, known) = (machine, Machine::NAMES.join(", "));
    let machine = Machine::built_in(name)
        .ok_or_else(|| format!("`{name}` is not a machine; known are {known}"))?;
    let network = machine.network_or_rings(&asked.shape).map_err(|error| error.to_string())?;
    let request = SearchRequest {
        collective: asked.collective,
        shape: asked.shape.clone(),
        map: RankMap::RowMajor,
        root: hopbine_torus::Rank(asked.root),
        ports: asked.ports.unwrap_or(asked.n_ports.min(max_ports(&asked.shape))),
        bytes: bytes as f64,
        segments: SEGMENTS.to_vec(),
    };
    let found = best_of(&request, (&network, &machine), SEARCH_BUDGET);
    let found = found.map_err(|error| error.to_string())?;
    let (found, _) = found.ok_or("no schedule was predicted exactly enough")?;
    let wanted = Wanted {
        algorithm: Algorithm::of_schedule(&found.schedule),
        ports: Some(found.schedule.ports),
        segment_bytes: Some(found.cost.segment_bytes),
        is_written: false,
    };
    if kept.len() == KEPT_RESULTS {
        kept.remove(0);
    }
    kept.push((name.to_owned(), asked.clone(), wanted.clone()));
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(shape: &str) -> Asked {
        let shape: Shape = shape.parse().unwrap();
        Asked::new(Collective::Allreduce, shape, 4)
    }

    fn schedule(name: &str, shape: &str, ports: u32) -> String {
        let algorithm = registry::find(Collective::Allreduce, name).unwrap();
        let (map, root) = (RankMap::RowMajor, hopbine_torus::Rank(0));
        let shape = shape.parse().unwrap();
        let request = registry::Request { shape, map, root, ports: Some(ports) };
        algorithm.schedule(&request).unwrap().to_string()
    }

    #[test]
    fn a_schedule_is_an_algorithm() {
        let text = schedule("bine/direct@sequential", "4x3", 2);
        let wanted = Wanted::new(&text, &asked("4x3"), 0).unwrap();
        assert_eq!((&*wanted.algorithm.name, wanted.ports), ("bine/direct@sequential", Some(2)));
        assert!(wanted.is_written);
        let by_name = Wanted::new("bine", &asked("4x3"), 0).unwrap();
        assert!(by_name.ports.is_none() && !by_name.is_written);
    }

    #[test]
    fn a_schedule_of_something_else_is_refused() {
        let text = schedule("mixed", "4x3", 2);
        let with = |from: &str, to: &str| text.replacen(from, to, 1);
        let refused = |text: &str, asked: &Asked| {
            let error = Wanted::new(text, asked, 7).unwrap_err().to_string();
            assert!(error.starts_with("rank 7, allreduce: the schedule cannot"), "{error}");
            error
        };
        let here = asked("4x3");
        for (text, asked, said) in [
            (text.clone(), asked("3x4"), "for a torus of 4x3, but the communicator's is 3x4"),
            (
                with("allreduce\nform two-phase", "allgather\nform butterfly"),
                here.clone(),
                "it performs allgather",
            ),
            (
                text.clone(),
                Asked { n_ports: 1, ..here.clone() },
                "uses 2 ports, but the call has 1 to 1",
            ),
            (text.clone(), Asked { ports: Some(3), ..here.clone() }, "2 ports, but the call has 3"),
            (with("bine", "bin"), here.clone(), "cannot be read: line "),
            (with("ports 2", "ports 9"), here.clone(), "9 ports on shape 4x3: use 1 to 4"),
            ("plan\nof mine".to_owned(), here.clone(), "cannot be read: line 1, `plan`"),
            ("schedule".to_owned(), here.clone(), "cannot be read: line 1"),
        ] {
            let error = refused(&text, &asked);
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn a_search_needs_what_all_ranks_know() {
        let here = Asked { bytes: Some(4096), ..asked("4x3") };
        let found = Wanted::new("search", &here, 0).unwrap();
        let Wanted { algorithm, ports: Some(ports), segment_bytes: Some(_), .. } = found else {
            panic!("{found:?}")
        };
        assert!((1..=4).contains(&ports) && algorithm.serves(&here.shape).is_ok());
        let again = Wanted::new("search", &here, 5).unwrap();
        assert_eq!(again.algorithm.name, algorithm.name);
        let refused = |text, asked: &Asked| Wanted::new(text, asked, 0).unwrap_err().to_string();
        let said = refused("search", &asked("4x3"));
        assert!(said.contains("a search needs a call in which all ranks know"), "{said}");
        let said = refused("search:fugaku", &here);
        assert!(said.contains("`fugaku` is not a machine; known are tofu-d, "), "{said}");
        // This shape does not fit Tofu.
        let odd = Asked { bytes: Some(8), ..asked("5x7") };
        assert!(Wanted::new("search", &odd, 0).is_ok());
        assert!(Wanted::new("search:ideal-torus", &odd, 0).is_ok());
        let said = refused("searched", &here);
        assert!(said.contains("unknown algorithm `searched`"), "{said}");
    }
}
