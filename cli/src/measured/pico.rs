//! PICO's names of algorithms on Fugaku: FAMILY-ALGORITHM-LAYER-SEGMENT-PORTS for the Bine paper's code, default-NAME
//! for Fujitsu's MPI (repository HLC-Lab/bine_trees_fugaku, bench/run_*.sh).

use hopbine_torus::sim::Api;

/// The parts of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub api: Api,
    /// Family and algorithm: `bine-b_cont`.
    pub algorithm: String,
    pub segment_bytes: u64,
    pub ports: u32,
}

/// Parses a name; `None` if it is not one of PICO's.
pub fn parse(text: &str) -> Option<Name> {
    let text = text.to_lowercase();
    if let Some(name) = text.strip_prefix("default-").filter(|name| !name.is_empty()) {
        let algorithm = name.to_owned();
        return Some(Name { api: Api::FujitsuMpi, algorithm, segment_bytes: 0, ports: 1 });
    }
    let parts: Vec<&str> = text.split('-').collect();
    let layer = parts.iter().position(|part| matches!(*part, "utofu" | "mpi"))?;
    let api = if parts[layer] == "utofu" { Api::Utofu } else { Api::Mpi };
    let (family, rest) = parts[..layer].split_first()?;
    // The family's name before the paper appeared.
    let family = if *family == "swing" { "bine" } else { family };
    let [segment, ports, direction @ ..] = &parts[layer + 1..] else { return None };
    let words = std::iter::once(&family).chain(rest).chain(direction);
    Some(Name {
        api,
        algorithm: words.copied().collect::<Vec<&str>>().join("-"),
        segment_bytes: segment.parse().ok()?,
        ports: ports.parse().ok().filter(|ports| *ports > 0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let name = |api, algorithm: &str, segment_bytes, ports| {
            Some(Name { api, algorithm: algorithm.to_owned(), segment_bytes, ports })
        };
        assert_eq!(parse("SWING-B_CONT-UTOFU-65536-6"), name(Api::Utofu, "bine-b_cont", 65536, 6));
        assert_eq!(parse("RECDOUB-L-UTOFU-0-1"), name(Api::Utofu, "recdoub-l", 0, 1));
        assert_eq!(parse("BINE-LOG-MPI-0-1"), name(Api::Mpi, "bine-log", 0, 1));
        assert_eq!(
            parse("default-recursive_doubling"),
            name(Api::FujitsuMpi, "recursive_doubling", 0, 1)
        );
        let tree = "bine-binomial_tree_cont_permute-dec";
        for text in [
            "BINE-BINOMIAL_TREE_CONT_PERMUTE-UTOFU-0-3-DEC",
            "BINE-BINOMIAL_TREE_CONT_PERMUTE-DEC-UTOFU-0-3",
        ] {
            assert_eq!(parse(text), name(Api::Utofu, tree, 0, 3), "{text}");
        }
        for text in [
            "",
            "default-",
            "ring_ompi",
            "UTOFU-0-1",
            "BINE-L-UTOFU-0",
            "BINE-L-UTOFU-x-1",
            "BINE-L-UTOFU-0-0",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
