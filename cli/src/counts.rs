//! Blocks of different sizes, from the distributions of the papers on irregular alltoalls or from a file.
//!
//! Every rank computes every size itself, from the seed and the two ranks of the block.

use std::str::FromStr;

use hopbine_torus::Collective;
use hopbine_torus::collectives::Payload;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::error::CliError;

/// Limit of the number of elements, so that sizes in bytes fit in 64 bits.
pub(super) const MOST_ELEMENTS: u64 = 1 << 56;

/// Distribution of the sizes of blocks, as fractions (0 to 1) of the largest block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountsArg {
    /// Uniform.
    Uniform,
    /// Normal with mean 0.5 and this standard deviation, clamped to 0 and 1.
    Normal(f64),
    /// A uniform number to this power: the higher the power, the rarer are large blocks.
    Power(f64),
    /// (1 / k) to this power, for a uniform k from 1 to the number of ranks.
    Zipf(f64),
    /// 1 with this probability, else 0.
    Sparse(f64),
    /// Listed sizes in elements: one for each rank, or one for each pair (sender-major: the receiver varies fastest).
    Listed(&'static [u64]),
}

impl FromStr for CountsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let known = ["uniform", "normal", "power", "zipf", "sparse"].contains(&name);
        if !known {
            return from_file(text);
        }
        let value = |default: f64, most: f64| match number.map(f64::from_str) {
            None => Ok(default),
            Some(Ok(value)) if value > 0.0 && value <= most => Ok(value),
            Some(_) => Err(format!("the number of `{text}` must be above 0 and at most {most}")),
        };
        match name {
            "uniform" if number.is_some() => Err("uniform takes no number".to_owned()),
            "uniform" => Ok(CountsArg::Uniform),
            "normal" => Ok(CountsArg::Normal(value(0.25, 10.0)?)),
            "power" => Ok(CountsArg::Power(value(4.0, 100.0)?)),
            "zipf" => Ok(CountsArg::Zipf(value(1.0, 100.0)?)),
            _ => Ok(CountsArg::Sparse(value(0.1, 1.0)?)),
        }
    }
}

/// The first number of SplitMix64 (Steele et al., OOPSLA 2014) from this seed: a bijection that leaves no pattern.
pub(super) fn mix(value: u64) -> u64 {
    SplitMix64::seed_from_u64(value).next_u64()
}

/// Reads the numbers of a file; they stay allocated until the program ends.
fn from_file(path: &str) -> Result<CountsArg, String> {
    let text = super::args::read(path.as_ref()).map_err(|error| {
        format!(
            "`{path}` is not a distribution (uniform, normal:SD, power:E, zipf:S, sparse:P), and it \
             cannot be read as a file: {error}"
        )
    })?;
    let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(u64::from_str).collect();
    let numbers = numbers.map_err(|_| format!("{path} must hold whole numbers only"))?;
    Ok(CountsArg::Listed(Box::leak(numbers.into_boxed_slice())))
}

impl CountsArg {
    /// Elements of the block from rank `from` to rank `to`, or of the only block of `from` if `to` is None. At most
    /// `most`, unless the sizes are listed.
    pub fn of(self, seed: u64, n_ranks: u32, most: usize, from: u32, to: Option<u32>) -> usize {
        let pair = u64::from(from) << 32 | u64::from(to.unwrap_or(u32::MAX));
        let first = mix(seed ^ mix(pair ^ 0x5eed));
        // Uniform in (0, 1].
        let unit = |random: u64| ((random >> 11) + 1) as f64 * f64::powi(2.0, -53);
        let u = unit(first);
        let part = match self {
            CountsArg::Uniform => u,
            CountsArg::Normal(deviation) => {
                // The Box-Muller transform.
                let angle = std::f64::consts::TAU * unit(mix(first));
                0.5 + deviation * (-2.0 * u.ln()).sqrt() * angle.cos()
            }
            CountsArg::Power(exponent) => u.powf(exponent),
            CountsArg::Zipf(exponent) => {
                (1.0 + first as u32 as f64 % f64::from(n_ranks)).powf(-exponent)
            }
            CountsArg::Sparse(probability) => f64::from(u8::from(u <= probability)),
            CountsArg::Listed(list) => {
                let at = match to {
                    Some(to) if list.len() > n_ranks as usize => {
                        from as usize * n_ranks as usize + to as usize
                    }
                    _ => from as usize,
                };
                return list[at] as usize;
            }
        };
        (part.clamp(0.0, 1.0) * most as f64).round() as usize
    }

    /// Elements of the longest block, if the sizes are listed.
    pub fn longest_listed(self) -> Option<u64> {
        match self {
            CountsArg::Listed(list) => list.iter().copied().max(),
            _ => None,
        }
    }

    /// Refuses collectives without blocks, and lists with a wrong number of sizes.
    ///
    /// # Errors
    /// [`CliError::Usage`].
    pub fn check_for(self, collective: Collective, n_ranks: u32) -> Result<(), CliError> {
        let payload = collective.payload();
        if !matches!(payload, Payload::Blocks | Payload::Pairs) {
            return Err(CliError::Usage(format!("{collective} has no blocks: leave out --counts")));
        }
        self.check(n_ranks, payload == Payload::Pairs).map_err(CliError::Usage)
    }

    /// Checks that a list has one number for each rank or each pair.
    fn check(self, n_ranks: u32, is_for_pairs: bool) -> Result<(), String> {
        let CountsArg::Listed(list) = self else { return Ok(()) };
        let (n, found) = (n_ranks as usize, list.len());
        // The limit ensures that sums of sizes in bytes over all pairs of ranks fit in 64 bits.
        let all = list.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
        if all.saturating_mul(u64::from(n_ranks)) > MOST_ELEMENTS {
            return Err(format!(
                "the numbers in the file of --counts are elements; their sum must be at most {}",
                MOST_ELEMENTS / u64::from(n_ranks)
            ));
        }
        if found == n || is_for_pairs && found == n * n {
            return Ok(());
        }
        let pairs =
            if is_for_pairs { format!(", or {} for its pairs", n * n) } else { String::new() };
        Err(format!("the file of --counts has {found} numbers; {n} ranks need {n}{pairs}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_look_like_themselves() {
        let sizes = |text: &str| -> Vec<usize> {
            let counts: CountsArg = text.parse().unwrap();
            (0..64)
                .flat_map(|from| (0..64).map(move |to| counts.of(7, 64, 1000, from, Some(to))))
                .collect()
        };
        let mean = |text: &str| sizes(text).iter().sum::<usize>() / 4096;
        assert!((470..530).contains(&mean("uniform")), "{}", mean("uniform"));
        assert!((470..530).contains(&mean("normal:0.1")), "{}", mean("normal:0.1"));
        assert!((180..220).contains(&mean("power:4")), "{}", mean("power:4"));
        assert!((50..100).contains(&mean("zipf")), "{}", mean("zipf"));
        assert!((80..120).contains(&mean("sparse:0.1")), "{}", mean("sparse:0.1"));
        assert!(sizes("sparse").iter().all(|&size| size == 0 || size == 1000));
        assert_eq!(
            "zipf:0".parse::<CountsArg>().unwrap_err(),
            "the number of `zipf:0` must be above 0 and at most 100"
        );
        assert!("nofile".parse::<CountsArg>().unwrap_err().contains("not a distribution"));
    }
}
