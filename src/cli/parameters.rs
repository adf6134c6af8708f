//! Numbers that are parts of an algorithm's name: `--algorithm bruck --radix 3` is `bruck:3`.

use hopbine_torus::{Collective, registry};

use super::error::CliError;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Parameters {
    /// The radix of --algorithm, as in `bruck:3` or `parlinna:2`
    #[arg(long, value_name = "R")]
    radix: Option<u32>,
    /// Messages that --algorithm has under way between nodes at a time, as in
    /// `parlinna-batched:8`
    #[arg(long, value_name = "B")]
    block_count: Option<u32>,
}

impl Parameters {
    /// The name of the algorithm with these numbers in it.
    ///
    /// # Errors
    /// [`CliError::Usage`] if there is none, or nothing that they could belong to.
    pub fn name(&self, collective: Collective, name: &str) -> Result<String, CliError> {
        let mut name = name.to_owned();
        if let Some(radix) = self.radix {
            let with = match name.split_once('-') {
                Some((family, rest)) => vec![format!("{family}:{radix}-{rest}")],
                None => vec![],
            };
            let all = with.into_iter().chain([format!("{name}:{radix}")]);
            name = existing(collective, &name, "--radix", radix, all)?;
        }
        if let Some(count) = self.block_count {
            let all = [format!("{name}-batched:{count}")].into_iter();
            name = existing(collective, &name, "--block-count", count, all)?;
        }
        Ok(name)
    }

    /// The same where an algorithm need not be named.
    ///
    /// # Errors
    /// As [`name`](Parameters::name).
    pub fn optional(
        &self,
        collective: Collective,
        name: Option<&str>,
    ) -> Result<Option<String>, CliError> {
        match name {
            Some(name) => self.name(collective, name).map(Some),
            None if self.radix.is_some() || self.block_count.is_some() => Err(CliError::Usage(
                "--radix and --block-count belong to one --algorithm: name it".to_owned(),
            )),
            None => Ok(None),
        }
    }
}

fn existing(
    collective: Collective,
    name: &str,
    option: &str,
    number: u32,
    mut all: impl Iterator<Item = String>,
) -> Result<String, CliError> {
    // An algorithm that does not exist is told of as ever.
    let found = all.find(|name| registry::find(collective, name).is_ok());
    found.ok_or_else(|| {
        CliError::Usage(format!(
            "{collective} `{name}` has no {option} {number}; see `hopbine list`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_parts_of_names() {
        let name = |collective, name: &str, radix, block_count| {
            Parameters { radix, block_count }.name(collective, name).map_err(|e| e.to_string())
        };
        let alltoall = |text: &str, radix, count| name(Collective::Alltoall, text, radix, count);
        assert_eq!(alltoall("bruck", Some(3), None).unwrap(), "bruck:3");
        assert_eq!(alltoall("parlinna", Some(3), Some(8)).unwrap(), "parlinna:3-batched:8");
        assert_eq!(alltoall("parlinna-staggered", Some(3), None).unwrap(), "parlinna-staggered:3");
        let tree = name(Collective::Bcast, "knomial-tree", Some(3), None);
        assert_eq!(tree.unwrap(), "knomial:3-tree");
        assert_eq!(alltoall("bine", None, None).unwrap(), "bine");
        let refused = alltoall("bine", Some(3), None).unwrap_err();
        assert!(refused.contains("`bine` has no --radix 3"), "{refused}");
        assert!(alltoall("bruck", Some(1), None).unwrap_err().contains("--radix 1"));
    }
}
