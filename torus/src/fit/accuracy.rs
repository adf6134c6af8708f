//! Statistics of the errors of predictions.

/// A quantile of values in ascending order, interpolated linearly between neighbours.
///
/// # Panics
/// If there are no values.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// The accuracy of predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Accuracy {
    /// Number of rows.
    pub n: usize,
    /// Median of |predicted / measured - 1|.
    pub median: f64,
    /// 90th percentile of |predicted / measured - 1|.
    pub p90: f64,
    /// Mean of ln(predicted / measured): above 0 if predictions are too long.
    pub bias: f64,
}

impl Accuracy {
    /// The accuracy for given errors, ln(predicted / measured); `None` if there are no errors.
    pub fn of(errors: &[f64]) -> Option<Self> {
        let mut off: Vec<f64> = errors.iter().map(|error| error.exp_m1().abs()).collect();
        off.sort_by(f64::total_cmp);
        let n = off.len();
        (n > 0).then(|| Accuracy {
            n,
            median: quantile(&off, 0.5),
            p90: quantile(&off, 0.9),
            bias: errors.iter().sum::<f64>() / n as f64,
        })
    }
}

/// Regrets of taking the algorithm that is predicted to be fastest. The regret of a cell is that algorithm's measured
/// time over the best measured time; a cell counts if it has a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Regrets {
    /// Number of cells.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// 90th percentile.
    pub p90: f64,
}

impl Regrets {
    /// The regret of a cell with these pairs of predicted and measured times; `None` for fewer than two pairs.
    pub fn of_cell(pairs: &[(f64, f64)]) -> Option<f64> {
        let chosen = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0))?.1;
        let best = pairs.iter().map(|pair| pair.1).fold(f64::INFINITY, f64::min);
        (pairs.len() > 1).then_some(chosen / best)
    }

    /// Statistics of the regrets of cells; `None` if there are no cells.
    pub fn of(cells: &[f64]) -> Option<Self> {
        let mut sorted = cells.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        (n > 0).then(|| Regrets {
            n,
            mean: sorted.iter().sum::<f64>() / n as f64,
            p90: quantile(&sorted, 0.9),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_summed_up() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[7.0], 0.9), 7.0);
        let errors = [1.1f64, 0.8, 1.0, 2.0].map(f64::ln);
        let accuracy = Accuracy::of(&errors).unwrap();
        assert!((accuracy.median - 0.15).abs() < 1e-12, "{accuracy:?}");
        assert!((accuracy.p90 - 0.76).abs() < 1e-12, "{accuracy:?}");
        assert!((accuracy.bias - 1.76f64.ln() / 4.0).abs() < 1e-12, "{accuracy:?}");
        assert_eq!(Accuracy::of(&[]), None);
    }

    #[test]
    fn regret_is_of_what_is_ranked_first() {
        assert_eq!(Regrets::of_cell(&[(2.0, 10.0), (1.0, 12.0), (3.0, 8.0)]), Some(1.5));
        assert_eq!(Regrets::of_cell(&[(2.0, 10.0)]), None);
        let regrets = Regrets::of(&[1.0, 1.0, 1.3]).unwrap();
        assert!((regrets.mean - 1.1).abs() < 1e-12 && regrets.n == 3);
        assert_eq!(Regrets::of(&[]), None);
    }
}
