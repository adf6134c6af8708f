//! Standard errors of fitted values.

use std::collections::BTreeMap;

use super::cholesky::Cholesky;
use super::problem::{FitError, Problem, robust_weight};

/// The prior standard deviation of a logarithm if almost nothing is known.
const NOTHING_KNOWN: f64 = 4.0;

/// An unknown that the observations do not determine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Undetermined {
    /// Index of the unknown.
    pub unknown: usize,
    /// The standard error of its logarithm, if it is fitted together with the unknowns that are not removed before
    /// it.
    pub error: f64,
}

impl Problem {
    /// The standard error of the logarithm of each value: H⁻¹ M H⁻¹, where H is the curvature of the sum and M the
    /// covariance of its gradient over the groups, whose observations have correlated errors (the "sandwich" of Huber
    /// 1967; Liang and Zeger 1986 with groups). The prior values count in both.
    ///
    /// # Errors
    /// [`FitError::Prediction`].
    pub fn standard_errors(
        &self,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        values: &[f64],
    ) -> Result<Vec<f64>, FitError> {
        let spread = Spread::new(self, model, values)?;
        let all: Vec<usize> = (0..self.unknowns.len()).collect();
        let sigma: Vec<f64> = self.unknowns.iter().map(|unknown| unknown.sigma).collect();
        Ok(spread.errors(&all, &sigma))
    }

    /// Returns the unknowns whose logarithm has a standard error above `limit` from the observations alone, without
    /// prior values. The unknown with the largest error is removed, then that with the largest error of the others,
    /// until the rest are determined.
    ///
    /// # Errors
    /// [`FitError::Prediction`].
    pub fn undetermined(
        &self,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        values: &[f64],
        limit: f64,
    ) -> Result<Vec<Undetermined>, FitError> {
        let spread = Spread::new(self, model, values)?;
        let sigma = vec![NOTHING_KNOWN; self.unknowns.len()];
        let mut left: Vec<usize> = (0..self.unknowns.len()).collect();
        let mut out = Vec::new();
        while !left.is_empty() {
            let errors = spread.errors(&left, &sigma);
            let worst = (0..left.len()).max_by(|&a, &b| errors[a].total_cmp(&errors[b]));
            let worst = worst.expect("there is one left");
            if errors[worst] <= limit {
                break;
            }
            out.push(Undetermined { unknown: left.remove(worst), error: errors[worst] });
        }
        Ok(out)
    }
}

/// Curvature and gradients of the sum at a point.
struct Spread {
    n: usize,
    /// Curvature of the observations' terms, without those of the prior values.
    curvature: Vec<f64>,
    gradients: Vec<Vec<f64>>,
}

impl Spread {
    fn new(
        problem: &Problem,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        values: &[f64],
    ) -> Result<Self, FitError> {
        let n = problem.unknowns.len();
        let at: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let residuals = problem.residuals(model, &at)?;
        let jacobian = problem.jacobian(model, &at)?;
        let second_derivatives: Vec<f64> =
            residuals.iter().map(|r| robust_weight(*r).powi(3)).collect();
        let curvature = problem.curvature(&jacobian, &second_derivatives);
        let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for ((row, r), observation) in jacobian.chunks(n).zip(&residuals).zip(&problem.observations)
        {
            let sum = groups.entry(observation.group).or_insert_with(|| vec![0.0; n]);
            row.iter().zip(sum).for_each(|(j, sum)| *sum += j * robust_weight(*r) * r);
        }
        Ok(Spread { n, curvature, gradients: groups.into_values().collect() })
    }

    /// Standard errors of the unknowns `of`, with all others fixed; `sigma` has their prior standard deviations.
    fn errors(&self, of: &[usize], sigma: &[f64]) -> Vec<f64> {
        let m = of.len();
        let mut curvature = vec![0.0; m * m];
        for (a, &i) in of.iter().enumerate() {
            for (b, &j) in of.iter().enumerate() {
                curvature[a * m + b] = self.curvature[i * self.n + j];
            }
            curvature[a * m + a] += sigma[i].powi(-2);
        }
        let Some(factor) = Cholesky::new(m, &curvature) else {
            return of.iter().map(|&i| sigma[i]).collect();
        };
        let mut variance = vec![0.0; m];
        let mut add = |gradient: &[f64]| {
            let moved = factor.solve(gradient);
            moved.iter().zip(&mut variance).for_each(|(x, sum)| *sum += x * x);
        };
        for gradient in &self.gradients {
            add(&of.iter().map(|&i| gradient[i]).collect::<Vec<f64>>());
        }
        for (a, &i) in of.iter().enumerate() {
            let mut known = vec![0.0; m];
            known[a] = 1.0 / sigma[i];
            add(&known);
        }
        variance.into_iter().map(f64::sqrt).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::tests::{TRUTH, measured, problem, times};
    use super::super::problem::{Problem, Unknown};

    /// Data from the model itself, with 4 % noise: parameters come back within a few of their standard
    /// errors, and those are as large as the parameters really scatter.
    #[test]
    fn standard_errors_are_the_scatter_of_repeated_fits() {
        let mut scores = Vec::new();
        let mut squares = [0.0; 3];
        let mut claimed = [0.0; 3];
        const REPEATS: u32 = 40;
        for seed in 0..REPEATS {
            let problem = problem(measured(0.04, seed));
            let found = problem.fit(&times, &[1000.0, 10.0, 1000.0], 30).unwrap();
            let errors = problem.standard_errors(&times, &found.values).unwrap();
            for k in 0..3 {
                let off = (found.values[k] / TRUTH[k]).ln();
                scores.push((off / errors[k]).abs());
                squares[k] += off * off / f64::from(REPEATS);
                claimed[k] += errors[k] / f64::from(REPEATS);
            }
        }
        scores.sort_by(f64::total_cmp);
        assert!(scores[scores.len() - 1] < 4.0, "{scores:?}");
        // Of a normal distribution two thirds are within one standard error.
        let within_one = scores.iter().filter(|score| **score < 1.0).count();
        assert!((65..=97).contains(&within_one), "{within_one} of {}", scores.len());
        for k in 0..3 {
            let ratio = claimed[k] / squares[k].sqrt();
            assert!((0.7..1.4).contains(&ratio), "{k}: {ratio}");
        }
    }

    #[test]
    fn what_data_do_not_determine_is_named() {
        // The fourth unknown has no effect; the fifth has one only together with the first.
        let model = |values: &[f64]| times(&[values[0] + values[4], values[1], values[2]]);
        let start = [1000.0, TRUTH[1], TRUTH[2], 5.0, 617.0];
        let unknowns = start.map(|source| Unknown { source, sigma: 0.2 });
        let problem = Problem::new(unknowns.to_vec(), measured(0.04, 3), 0.05).unwrap();
        let out = problem.undetermined(&model, &start, 0.5).unwrap();
        let mut named: Vec<usize> = out.iter().map(|out| out.unknown).collect();
        named.sort_unstable();
        assert_eq!(named, [3, 4], "{out:?}");
        assert!(out.iter().all(|out| out.error > 0.5));
        // The prior value alone decides if nothing is measured.
        let errors = problem.standard_errors(&model, &start).unwrap();
        assert!((errors[3] - 0.2).abs() < 1e-6 && errors[1] < 0.05, "{errors:?}");
    }
}
