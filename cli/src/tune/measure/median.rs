//! Medians with confidence intervals.

use hopbine_torus::fit::quantile;
use serde::{Deserialize, Serialize};

/// The median of a sample, with an interval that contains the median of the distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Median {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Median {
    /// The median of values in any order. The interval is the narrowest one between two order statistics, equally far
    /// from either end, that contains the distribution's median with at least this probability, for any distribution.
    /// The j-th of n values is above the median if fewer than j values are below it, and the number of values below
    /// it is binomial with p = 1/2 (Le Boudec 2010, Performance Evaluation of Computer and Communication Systems,
    /// theorem 2.1; Hoefler and Belli 2015, rules 5 and 6, use this for times of parallel programs). `None` for too
    /// few values.
    pub fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        // Probability that fewer than `j` values are below the median.
        let mut fewer = 0.0;
        let mut exactly = 0.5f64.powi(n as i32);
        let mut inside = 0;
        for j in 1..=n / 2 {
            fewer += exactly;
            exactly *= (n + 1 - j) as f64 / j as f64;
            if 1.0 - 2.0 * fewer < confidence {
                break;
            }
            inside = j;
        }
        let value = quantile(&sorted, 0.5);
        (inside > 0).then(|| Median { value, low: sorted[inside - 1], high: sorted[n - inside] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// As in the tables of Le Boudec, appendix A: for 95 %, all of 6 values, the 4th to 12th of 15, the 10th to 21st
    /// of 30; for 99 %, the 3rd to 13th of 15.
    #[test]
    fn intervals_are_between_order_statistics() {
        let of = |n: u32, confidence: f64| {
            let values: Vec<f64> = (1..=n).rev().map(f64::from).collect();
            Median::of(&values, confidence).map(|found| (found.low, found.high))
        };
        assert_eq!(of(5, 0.95), None);
        assert_eq!(of(6, 0.95), Some((1.0, 6.0)));
        assert_eq!(of(15, 0.95), Some((4.0, 12.0)));
        assert_eq!(of(30, 0.95), Some((10.0, 21.0)));
        assert_eq!(of(15, 0.99), Some((3.0, 13.0)));
        assert_eq!(Median::of(&[1.0; 8], 0.99).unwrap().value, 1.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0, 9.0], 0.5), 3.0);
    }

    /// Uses a skewed distribution, as that of times is.
    #[test]
    fn they_hold_the_median_as_often_as_they_say() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let held = (0..4000).filter(|_| {
            let values: Vec<f64> = (0..15).map(|_| 1.0 / (1.0 - random.random::<f64>())).collect();
            let found = Median::of(&values, 0.95).unwrap();
            (found.low..=found.high).contains(&2.0)
        });
        let held = held.count();
        assert!((3800..3960).contains(&held), "{held} of 4000");
    }
}
