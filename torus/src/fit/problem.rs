//! Robust least squares with damping, on logarithms.

use std::collections::HashMap;

use super::cholesky::Cholesky;

/// A parameter to fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unknown {
    /// Prior value, in the parameter's own unit; above 0.
    pub source: f64,
    /// Standard deviation of the logarithm of the prior value; several if almost nothing is known.
    pub sigma: f64,
}

/// One measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The time, in the unit of the model's times; above 0.
    pub time: f64,
    /// Weight in the sum; 0 excludes the observation.
    pub weight: f64,
    /// Observations of one group have correlated errors.
    pub group: usize,
}

/// Why a fit fails.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No unknown is left to fit.
    #[error("the times determine no parameter: measure more algorithms, sizes and shapes")]
    NoUnknowns,
    /// There are too few measured times.
    #[error(
        "{observations} measured times do not determine {unknowns} parameters: there must be more times than parameters"
    )]
    TooFew {
        /// Observations with a weight above 0.
        observations: usize,
        /// Number of unknowns.
        unknowns: usize,
    },
    /// A measured time, or a value of a source, that has no logarithm.
    #[error("{value} has no logarithm: times, and what is known of parameters, must be above 0")]
    NotPositive {
        /// The value.
        value: f64,
    },
    /// The model predicts a time that is not above 0.
    #[error("the model predicts {value} for observation {observation}: times must be above 0")]
    Prediction {
        /// Index of the observation, from 0.
        observation: usize,
        /// The prediction.
        value: f64,
    },
}

/// A fit to solve: unknowns and observations.
///
/// The fit minimises the sum over observations of sqrt(1 + (w e / s)²) - 1, where e is ln(predicted / measured), w
/// the weight and s the scale, plus half of (ln(value / source) / sigma)² for each unknown. This loss grows linearly
/// for large errors, which limits the influence of an observation that no parameters explain.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) unknowns: Vec<Unknown>,
    pub(super) observations: Vec<Observation>,
    pub(super) scale: f64,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// The values, in the order of the unknowns.
    pub values: Vec<f64>,
    /// The sum at these values.
    pub cost: f64,
    /// Number of steps taken.
    pub steps: usize,
}

/// Derivatives are differences over this much of a logarithm on both sides. Simulated times are smooth only piece by
/// piece (they depend on which port gets a lock first); a difference over less would not see the next piece.
pub(super) const REACH: f64 = 0.05;
/// The longest step, of a logarithm.
const LONGEST: f64 = 0.5;
/// The damping factors that are tried, and the fractions of a step.
const DAMPING: [f64; 5] = [1e-3, 1e-2, 0.1, 1.0, 10.0];
const PARTS: [f64; 2] = [1.0, 0.4];
/// Steps along single unknowns at the end, of the logarithm.
const ALONE: [f64; 2] = [0.1, 0.03];
/// The fit stops after a step that reduces the sum by less than this part.
const LEAST_GAIN: f64 = 1e-3;

impl Problem {
    /// Creates a problem; `scale` is the error of a good model, of the logarithm.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(
        unknowns: Vec<Unknown>,
        observations: Vec<Observation>,
        scale: f64,
    ) -> Result<Self, FitError> {
        let sources = unknowns.iter().map(|unknown| unknown.source);
        let mut values = sources.chain(observations.iter().map(|row| row.time));
        if let Some(value) = values.find(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(FitError::NotPositive { value });
        }
        if unknowns.is_empty() {
            return Err(FitError::NoUnknowns);
        }
        let n_counted = observations.iter().filter(|row| row.weight > 0.0).count();
        if n_counted <= unknowns.len() {
            return Err(FitError::TooFew { observations: n_counted, unknowns: unknowns.len() });
        }
        Ok(Problem { unknowns, observations, scale })
    }

    /// Takes damped Gauss-Newton steps (Levenberg 1944, Marquardt 1963) from `start`, each the best of several
    /// lengths, then varies each unknown alone. `model` predicts the times of all observations for given values.
    ///
    /// # Errors
    /// [`FitError::Prediction`].
    pub fn fit(
        &self,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        start: &[f64],
        most_steps: usize,
    ) -> Result<Fitted, FitError> {
        let n = self.unknowns.len();
        let mut at: Vec<f64> = start.iter().map(|value| value.ln()).collect();
        let mut best = self.cost(model, &at)?;
        let mut steps = 0;
        while steps < most_steps {
            let residuals = self.residuals(model, &at)?;
            let jacobian = self.jacobian(model, &at)?;
            let robust_weight: Vec<f64> = residuals.iter().map(|r| robust_weight(*r)).collect();
            let mut gradient = vec![0.0; n];
            for (row, (r, w)) in jacobian.chunks(n).zip(residuals.iter().zip(&robust_weight)) {
                row.iter().zip(&mut gradient).for_each(|(j, sum)| *sum += j * w * r);
            }
            for (k, unknown) in self.unknowns.iter().enumerate() {
                gradient[k] += (at[k] - unknown.source.ln()) / unknown.sigma.powi(2);
            }
            let mut hessian = self.curvature(&jacobian, &robust_weight);
            for (k, unknown) in self.unknowns.iter().enumerate() {
                hessian[k * n + k] += unknown.sigma.powi(-2);
            }
            let mut found = (best, at.clone());
            for damping in DAMPING {
                let mut damped = hessian.clone();
                (0..n).for_each(|k| damped[k * n + k] *= 1.0 + damping);
                let Some(factor) = Cholesky::new(n, &damped) else { continue };
                let step = factor.solve(&gradient);
                for part in PARTS {
                    let moved = at.iter().zip(&step);
                    let moved: Vec<f64> =
                        moved.map(|(x, d)| x - part * d.clamp(-LONGEST, LONGEST)).collect();
                    let cost = self.cost(model, &moved)?;
                    if cost < found.0 {
                        found = (cost, moved);
                    }
                }
            }
            let is_last = found.0 > best * (1.0 - LEAST_GAIN);
            (best, at) = found;
            steps += 1;
            if is_last {
                break;
            }
        }
        for step in ALONE {
            for k in 0..n {
                for step in [step, -step] {
                    let mut moved = at.clone();
                    moved[k] += step;
                    let cost = self.cost(model, &moved)?;
                    if cost < best {
                        (best, at) = (cost, moved);
                        break;
                    }
                }
            }
        }
        Ok(Fitted { values: at.iter().map(|x| x.exp()).collect(), cost: best, steps })
    }

    /// Weighted errors in units of the scale.
    pub(super) fn residuals(
        &self,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        at: &[f64],
    ) -> Result<Vec<f64>, FitError> {
        let values: Vec<f64> = at.iter().map(|x| x.exp()).collect();
        let rows = model(&values).into_iter().zip(&self.observations).enumerate();
        let residual = |(observation, (value, row)): (usize, (f64, &Observation))| {
            if !(value.is_finite() && value > 0.0) {
                return Err(FitError::Prediction { observation, value });
            }
            Ok((value / row.time).ln() * row.weight / self.scale)
        };
        rows.map(residual).collect()
    }

    fn cost(&self, model: &dyn Fn(&[f64]) -> Vec<f64>, at: &[f64]) -> Result<f64, FitError> {
        let residuals = self.residuals(model, at)?;
        let of_rows: f64 = residuals.iter().map(|r| (1.0 + r * r).sqrt() - 1.0).sum();
        let known = self.unknowns.iter().zip(at);
        let of_sources: f64 = known
            .map(|(unknown, x)| 0.5 * ((x - unknown.source.ln()) / unknown.sigma).powi(2))
            .sum();
        Ok(of_rows + of_sources)
    }

    /// Derivatives of the residuals, a row for each observation.
    pub(super) fn jacobian(
        &self,
        model: &dyn Fn(&[f64]) -> Vec<f64>,
        at: &[f64],
    ) -> Result<Vec<f64>, FitError> {
        let n = self.unknowns.len();
        let mut jacobian = vec![0.0; self.observations.len() * n];
        for k in 0..n {
            let side = |by: f64| {
                let mut moved = at.to_vec();
                moved[k] += by;
                self.residuals(model, &moved)
            };
            let (above, below) = (side(REACH)?, side(-REACH)?);
            for (row, (above, below)) in above.iter().zip(&below).enumerate() {
                jacobian[row * n + k] = (above - below) / (2.0 * REACH);
            }
        }
        Ok(jacobian)
    }

    /// The weighted square of a Jacobian, without the terms of the prior values.
    pub(super) fn curvature(&self, jacobian: &[f64], weights: &[f64]) -> Vec<f64> {
        let n = self.unknowns.len();
        let mut sum = vec![0.0; n * n];
        for (row, weight) in jacobian.chunks(n).zip(weights) {
            for i in 0..n {
                let part = row[i] * weight;
                (0..n).for_each(|j| sum[i * n + j] += part * row[j]);
            }
        }
        sum
    }
}

/// The derivative of an observation's loss, divided by its residual.
pub(super) fn robust_weight(residual: f64) -> f64 {
    1.0 / (1.0 + residual * residual).sqrt()
}

/// Weights with which the influence of a family grows with the square root of its number of observations, scaled so
/// that the mean square of all weights is 1. `families` contains the family of each observation.
pub fn family_weights<K: std::hash::Hash + Eq>(families: &[K]) -> Vec<f64> {
    let mut count: HashMap<&K, f64> = HashMap::new();
    families.iter().for_each(|family| *count.entry(family).or_default() += 1.0);
    let weights: Vec<f64> = families.iter().map(|family| count[family].powf(-0.25)).collect();
    let square = weights.iter().map(|w| w * w).sum::<f64>() / weights.len().max(1) as f64;
    weights.iter().map(|w| w / square.sqrt()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Steps, bytes and threads of 180 calls, and a model of their times with three parameters.
    pub fn calls() -> Vec<[f64; 3]> {
        let sizes = (0..20).map(|k| 32.0 * 2f64.powi(k));
        let of_size = |bytes| {
            [3.0, 6.0, 9.0].map(|steps| [1.0, 3.0, 6.0].map(|threads| [steps, bytes, threads]))
        };
        sizes.flat_map(of_size).flatten().collect()
    }

    pub fn times(values: &[f64]) -> Vec<f64> {
        let [latency, speed, wake] = values else { panic!("three values") };
        let time = |[steps, bytes, threads]: [f64; 3]| {
            steps * latency + bytes / (threads * speed) + (threads - 1.0) * wake
        };
        calls().into_iter().map(time).collect()
    }

    /// Noise with a standard deviation of about 1, from a textbook generator (Numerical Recipes, ranqd1).
    pub fn noise(seed: u32) -> impl FnMut() -> f64 {
        let mut state = seed;
        let mut uniform = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / f64::from(u32::MAX)
        };
        move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    pub const TRUTH: [f64; 3] = [1617.0, 6.335, 1725.0];

    /// Measured times of the calls: the model's, with noise of standard deviation `sigma` in the logarithm.
    pub fn measured(sigma: f64, seed: u32) -> Vec<Observation> {
        let mut noise = noise(seed);
        let observe = |(group, time): (usize, f64)| Observation {
            time: time * (sigma * noise()).exp(),
            weight: 1.0,
            group,
        };
        times(&TRUTH).into_iter().enumerate().map(observe).collect()
    }

    pub fn problem(observations: Vec<Observation>) -> Problem {
        let unknowns = TRUTH.map(|value| Unknown { source: value * 1.7, sigma: 4.0 });
        Problem::new(unknowns.to_vec(), observations, 0.05).unwrap()
    }

    #[test]
    fn a_model_finds_its_own_parameters() {
        let start = [400.0, 20.0, 6000.0];
        let exact = problem(measured(0.0, 1)).fit(&times, &start, 30).unwrap();
        for (value, truth) in exact.values.iter().zip(TRUTH) {
            assert!((value / truth - 1.0).abs() < 2e-3, "{value} for {truth}");
        }
        let again = problem(measured(0.0, 1)).fit(&times, &start, 30).unwrap();
        assert_eq!(exact, again);
    }

    #[test]
    fn rows_that_nothing_explains_do_not_decide() {
        let mut observations = measured(0.01, 2);
        observations.iter_mut().step_by(11).for_each(|row| row.time *= 30.0);
        let found = problem(observations).fit(&times, &[1000.0, 10.0, 1000.0], 30).unwrap();
        for (value, truth) in found.values.iter().zip(TRUTH) {
            assert!((value / truth - 1.0).abs() < 0.05, "{value} for {truth}");
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let few = Problem::new(
            vec![Unknown { source: 1.0, sigma: 4.0 }; 3],
            measured(0.0, 1)[..3].to_vec(),
            0.05,
        );
        assert_eq!(few.unwrap_err(), FitError::TooFew { observations: 3, unknowns: 3 });
        let mut observations = measured(0.0, 1);
        observations[7].time = 0.0;
        let zero = Problem::new(vec![], observations, 0.05);
        assert_eq!(zero.unwrap_err(), FitError::NotPositive { value: 0.0 });
        let none = Problem::new(vec![], measured(0.0, 1), 0.05);
        assert_eq!(none.unwrap_err(), FitError::NoUnknowns);
        let nothing = problem(measured(0.0, 1)).fit(&|_| vec![f64::INFINITY; 180], &TRUTH, 3);
        let error = FitError::Prediction { observation: 0, value: f64::INFINITY };
        assert_eq!(nothing.unwrap_err(), error);
    }

    #[test]
    fn large_families_do_not_drown_small_ones() {
        let families: Vec<u32> = (0..16).map(|_| 0).chain([1]).collect();
        let weights = family_weights(&families);
        let square = |of: &[f64]| of.iter().map(|w| w * w).sum::<f64>();
        assert!((square(&weights[..16]) / square(&weights[16..]) - 4.0).abs() < 1e-9);
        assert!((square(&weights) / 17.0 - 1.0).abs() < 1e-9);
    }
}
