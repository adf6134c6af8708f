//! Options for the numbers in shapes and in algorithms' names: ranks on a node, leaders, groups, radices and the
//! batch size of messages.

use hopbine_torus::{Algorithm, Collective, Shape, registry};

use super::error::CliError;

/// Options that replace the numbers behind algorithms' names.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Numbers {
    /// Ranks on each node, as `+N` at the end of a shape
    #[arg(long, value_name = "N")]
    per_node: Option<u32>,
    /// Leaders on each node: the L of `multi-leader:L` and `multi-leader-node-aware:L`
    #[arg(long, value_name = "L")]
    leaders: Option<u32>,
    /// Ranks of a group: the G of `locality-aware:G`
    #[arg(long, value_name = "G")]
    group: Option<u32>,
    /// Radix, or size of the small rings: the K of `knomial:K`, `multiplying:K`, `kring:K`, `bruck:K` and
    /// `parlinna:K`
    #[arg(long, value_name = "K")]
    radix: Option<u32>,
    /// Messages that an alltoall sends at a time: the B of `pairwise-batched:B`, `linear-batched:B` and others
    #[arg(long, value_name = "B")]
    block_count: Option<u32>,
}

/// The families of algorithms whose names take a number. A name that has another one as its prefix comes first.
const LEADERS: &[&str] = &["multi-leader-node-aware", "multi-leader"];
const GROUP: &[&str] = &["locality-aware"];
const RADIX: &[&str] =
    &["knomial", "multiplying", "kring", "bruck", "parlinna-staggered", "parlinna"];

impl Numbers {
    /// The shape with `--per-node` applied.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the shape has a node axis already, or cannot have one.
    pub fn shape(&self, torus: Shape) -> Result<Shape, CliError> {
        let Some(per_node) = self.per_node else { return Ok(torus) };
        torus.with_ranks_per_node(per_node).map_err(|error| {
            CliError::Usage(format!("{torus} with {per_node} ranks on each node: {error}"))
        })
    }

    /// The algorithm with this name, or all algorithms of a collective; the options' numbers are inserted into the
    /// names that take them.
    ///
    /// # Errors
    /// [`CliError`] if the algorithm does not exist, or if no algorithm takes one of the numbers.
    pub fn algorithms(
        &self,
        collective: Collective,
        name: Option<&str>,
    ) -> Result<Vec<Algorithm>, CliError> {
        let mut names: Vec<String> = match name {
            Some(name) => vec![registry::find(collective, name)?.name.into_owned()],
            None => {
                let all = registry::algorithms(collective).into_iter();
                all.map(|algorithm| algorithm.name.into_owned()).collect()
            }
        };
        let behind = |families: &'static [&'static str]| {
            move |name: &str, number: u32| {
                let rest = |family: &str| name.strip_prefix(family).map(str::to_owned);
                let (family, rest) = families.iter().find_map(|f| Some((*f, rest(f)?)))?;
                let is_whole = rest.is_empty() || rest.starts_with('-');
                is_whole.then(|| format!("{family}:{number}{rest}"))
            }
        };
        let batched = |name: &str, number: u32| {
            let is_free = !name.contains("-batched") && !name.ends_with("-nonblocking");
            is_free.then(|| format!("{name}-batched:{number}"))
        };
        type Put<'a> = &'a dyn Fn(&str, u32) -> Option<String>;
        let options: [(&str, Option<u32>, Put<'_>); 4] = [
            ("--leaders", self.leaders, &behind(LEADERS)),
            ("--group", self.group, &behind(GROUP)),
            ("--radix", self.radix, &behind(RADIX)),
            ("--block-count", self.block_count, &batched),
        ];
        for (option, number, put) in options {
            let Some(number) = number else { continue };
            let mut n_put = 0;
            for name in &mut names {
                let with = put(name, number);
                if let Some(with) = with.filter(|with| registry::find(collective, with).is_ok()) {
                    *name = with;
                    n_put += 1;
                }
            }
            if n_put == 0 {
                return Err(CliError::Usage(match name {
                    Some(name) => format!(
                        "{option} {number} is not for `{name}`; `hopbine list {collective}` shows the \
                         algorithms that take it"
                    ),
                    None => format!("no algorithm of {collective} takes {option}"),
                }));
            }
        }
        names.iter().map(|name| Ok(registry::find(collective, name)?)).collect()
    }

    /// The algorithms of a collective that support a shape; a note names the other algorithms.
    ///
    /// # Errors
    /// [`CliError`] if no algorithm takes one of the numbers.
    pub fn serving(
        &self,
        collective: Collective,
        shape: &Shape,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Algorithm>, CliError> {
        let all = self.algorithms(collective, None)?.into_iter();
        let (serving, others): (Vec<_>, Vec<_>) = all.partition(|a| a.serves(shape).is_ok());
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|other| &*other.name).collect();
            notes.push(format!(
                "Not for this shape (see `hopbine list {collective} --torus {shape}`): {}.",
                names.join(", ")
            ));
        }
        Ok(serving)
    }

    /// Whether an option other than `--per-node` is given.
    pub fn are_of_algorithms(&self) -> bool {
        [self.leaders, self.group, self.radix, self.block_count].iter().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: &Numbers, collective: Collective, name: Option<&str>) -> Vec<String> {
        let all = numbers.algorithms(collective, name).unwrap();
        all.into_iter().map(|algorithm| algorithm.name.into_owned()).collect()
    }

    #[test]
    fn numbers_go_where_they_belong() {
        let numbers = Numbers { leaders: Some(4), block_count: Some(8), ..Numbers::default() };
        let name = Some("multi-leader-node-aware");
        let found = names(&numbers, Collective::Alltoall, name);
        assert_eq!(found, ["multi-leader-node-aware:4-batched:8"]);
        let numbers = Numbers { radix: Some(3), block_count: Some(8), ..Numbers::default() };
        let found = names(&numbers, Collective::Alltoall, Some("parlinna-staggered"));
        assert_eq!(found, ["parlinna-staggered:3-batched:8"]);
        let numbers = Numbers { radix: Some(3), ..Numbers::default() };
        assert_eq!(names(&numbers, Collective::Bcast, Some("knomial-tree")), ["knomial:3-tree"]);
        let all = names(&numbers, Collective::Allgather, None);
        for name in ["mixed", "kring:3", "bruck:3", "multiplying:3-send"] {
            assert!(all.iter().any(|other| other == name), "{name}: {all:?}");
        }
        let wrong = numbers.algorithms(Collective::Allreduce, Some("bine")).unwrap_err();
        assert!(wrong.to_string().contains("--radix 3 is not for `bine`"), "{wrong}");
        let numbers = Numbers { group: Some(2), ..Numbers::default() };
        assert!(numbers.algorithms(Collective::Bcast, None).is_err());
    }
}
