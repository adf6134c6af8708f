//! Algorithms that a user prefers to the library's choice, for all calls: `HOPBINE_ALGORITHM`.

use std::str::FromStr;

use hopbine_meet::variables::ALGORITHM;
use hopbine_torus::registry::{self, Algorithm};
use hopbine_torus::{Collective, Shape};

use crate::error::Error;

/// At most one preferred algorithm per collective. It does not apply to calls that name an algorithm, nor to
/// communicators whose shape it does not serve. All ranks must have the same preferences.
///
/// As text: `allreduce=bine,alltoall=parlinna:4`, with the names of `hopbine list`.
#[derive(Clone, Debug, Default)]
pub struct Preferred(Vec<Algorithm>);

impl Preferred {
    /// The algorithm preferred for a collective.
    pub fn of(&self, collective: Collective) -> Option<&Algorithm> {
        self.0.iter().find(|algorithm| algorithm.collective == collective)
    }

    /// The algorithm preferred for a collective, if it serves the shape.
    pub fn serving(&self, collective: Collective, shape: &Shape) -> Option<&Algorithm> {
        self.of(collective).filter(|algorithm| algorithm.serves(shape).is_ok())
    }

    /// Those that serve the shape.
    pub(crate) fn on(&self, shape: &Shape) -> Self {
        let serve = self.0.iter().filter(|algorithm| algorithm.serves(shape).is_ok());
        Preferred(serve.cloned().collect())
    }
}

impl FromStr for Preferred {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |wanted: String| Error::from(ALGORITHM.wrong_here(text, wanted));
        let mut preferred = Preferred::default();
        for entry in entries(text) {
            let (collective, name) =
                entry.split_once('=').ok_or_else(|| wrong(ALGORITHM.values.to_string()))?;
            let collective: Collective = collective.trim().parse().map_err(|_| {
                let known = Collective::ALL.map(Collective::name).join(", ");
                wrong(format!("one of {known} before the `=`"))
            })?;
            let algorithm = registry::find(collective, name.trim())
                .map_err(|unknown| wrong(format!("for {collective} one of {}", unknown.known)))?;
            if preferred.of(collective).is_some() {
                return Err(wrong(format!("one algorithm for {collective}")));
            }
            preferred.0.push(algorithm);
        }
        Ok(preferred)
    }
}

/// The entries of a text, which commas separate: as in `allgather=mixed-split:3,1,bcast=trees`, a number after a comma
/// belongs to the name before.
fn entries(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match entries.last_mut().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(entry) => *entry += &format!(",{part}"),
            None => entries.push(part.to_owned()),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_algorithm_for_each_collective() {
        let preferred: Preferred = " alltoall = bruck:3, allreduce=bucket,".parse().unwrap();
        let name = |collective| preferred.of(collective).map(|algorithm| &*algorithm.name);
        assert_eq!(name(Collective::Alltoall), Some("bruck:3"));
        assert_eq!(name(Collective::Allreduce), Some("bucket"));
        assert_eq!(name(Collective::Bcast), None);
        let split: Preferred = "allgather=mixed-split:3, 1,bcast=trees".parse().unwrap();
        let names: Vec<&str> = split.0.iter().map(|algorithm| &*algorithm.name).collect();
        assert_eq!(names, ["mixed-split:3,1", "trees"]);
        assert!("".parse::<Preferred>().unwrap().0.is_empty());
        let refused = |text: &str| text.parse::<Preferred>().unwrap_err().to_string();
        assert!(refused("ring").contains("COLLECTIVE=ALGORITHM"));
        assert!(refused("3,1").contains("COLLECTIVE=ALGORITHM"));
        assert!(refused("allred=ring").contains("one of allreduce, "));
        assert!(refused("bcast=rung").contains("for bcast one of mixed"));
        assert!(refused("bcast=mixed,bcast=trees").contains("one algorithm for bcast"));
    }
}
