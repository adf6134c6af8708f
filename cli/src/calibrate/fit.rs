//! Fits a machine's parameters to measured times.

use std::collections::HashMap;

use hopbine_torus::fit::{FitError, Fitted, Observation, Problem, Unknown, family_weights};
use hopbine_torus::sim::{Machine, Origin, Parameter, QUANTITIES, Quantity};

use crate::measured::cases::{MeasuredCase, predicted};
use crate::progress::Bar;

/// Error of a good prediction, as a difference of logarithms. The influence of an error on the fit grows only up to it.
const SCALE: f64 = 0.08;
/// Prior standard deviation of the logarithm of a parameter without a source.
const UNKNOWN: f64 = 4.0;
/// The times determine a parameter only if the standard error of its logarithm is at most this.
const DETERMINED: f64 = 0.5;
/// Maximum number of steps of the fit.
const MOST_STEPS: usize = 12;

/// A quantity of the model with its fitted value.
#[derive(Clone, Debug)]
pub struct FittedQuantity {
    pub quantity: Quantity,
    pub value: f64,
    /// The standard error of the logarithm of the value; None if the quantity was not fitted.
    pub error: Option<f64>,
    /// Source of the value.
    pub source: String,
}

/// A machine with fitted parameters.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub machine: Machine,
    pub found: Vec<FittedQuantity>,
    pub steps: usize,
}

impl Calibration {
    /// The fitted quantity that a parameter belongs to.
    pub fn found(&self, parameter: &Parameter) -> Option<&FittedQuantity> {
        let name = (parameter.section, parameter.name);
        self.found.iter().find(|found| found.quantity.names.contains(&name))
    }
}

impl FittedQuantity {
    /// Source and accuracy of the value.
    pub fn remark(&self) -> String {
        match self.error {
            Some(error) => format!("{}, standard error {:.0} %", self.source, 100.0 * error),
            None => self.source.clone(),
        }
    }
}

/// Upper bound of the evaluations of the model, for the progress bar.
pub fn most_evaluations() -> u64 {
    let n = QUANTITIES.iter().filter(|quantity| is_fitted(quantity)).count() as u64;
    // Two fits, each with steps, every parameter alone, and the curvature at the end.
    2 * (MOST_STEPS as u64 * (11 + 2 * n) + 4 * n + 1 + 2 * n + 1)
}

fn is_fitted(quantity: &Quantity) -> bool {
    !matches!(quantity.origin, Origin::Fixed(_))
}

/// Fits the parameters of `start` to measured times. Parameters that the times do not determine are reset to the
/// values of their sources, and the others are fitted a second time.
///
/// # Errors
/// [`FitError`].
pub fn calibrate(
    cases: &[&MeasuredCase],
    start: &Machine,
    bar: &Bar,
) -> Result<Calibration, FitError> {
    let fitted: Vec<usize> = (0..QUANTITIES.len()).filter(|&k| is_fitted(&QUANTITIES[k])).collect();
    let mut fit = Fit::new(cases, start.clone(), fitted, bar)?;
    let mut result = fit.run()?;
    let out = fit.problem.undetermined(&|values| fit.times(values), &result.values, DETERMINED)?;
    let undetermined: HashMap<usize, f64> =
        out.iter().map(|out| (fit.fitted[out.unknown], out.error)).collect();
    if !undetermined.is_empty() {
        let mut machine = fit.machine(&result.values);
        for &k in undetermined.keys() {
            let source = match QUANTITIES[k].origin {
                Origin::Known { value, .. } => value,
                _ => QUANTITIES[k].value(start),
            };
            QUANTITIES[k].set(&mut machine, source);
        }
        let is_determined = |k: &usize| !undetermined.contains_key(k);
        let fitted = fit.fitted.into_iter().filter(is_determined).collect();
        fit = Fit::new(cases, machine, fitted, bar)?;
        result = fit.run()?;
    }
    let errors = fit.problem.standard_errors(&|values| fit.times(values), &result.values)?;
    let machine = fit.machine(&result.values);
    let found = QUANTITIES.iter().enumerate().map(|(k, quantity)| FittedQuantity {
        quantity: *quantity,
        value: quantity.value(&machine),
        error: fit.fitted.iter().position(|&of| of == k).map(|at| errors[at]),
        source: source(quantity, undetermined.get(&k).copied()),
    });
    Ok(Calibration { found: found.collect(), steps: result.steps, machine })
}

/// A fit of some quantities.
struct Fit<'a> {
    cases: &'a [&'a MeasuredCase],
    /// Holds the values of all quantities that are not fitted.
    machine: Machine,
    /// Indices of the fitted quantities in `QUANTITIES`.
    fitted: Vec<usize>,
    problem: Problem,
    bar: &'a Bar,
}

impl<'a> Fit<'a> {
    fn new(
        cases: &'a [&'a MeasuredCase],
        machine: Machine,
        fitted: Vec<usize>,
        bar: &'a Bar,
    ) -> Result<Self, FitError> {
        let unknown = |&k: &usize| match QUANTITIES[k].origin {
            Origin::Known { value, sigma, .. } => Unknown { source: value, sigma },
            _ => Unknown { source: QUANTITIES[k].value(&machine), sigma: UNKNOWN },
        };
        let unknowns = fitted.iter().map(unknown).collect();
        let problem = Problem::new(unknowns, observations(cases), SCALE)?;
        Ok(Fit { cases, machine, fitted, problem, bar })
    }

    /// Runs the fit, starting from the values of the machine.
    fn run(&self) -> Result<Fitted, FitError> {
        let start: Vec<f64> =
            self.fitted.iter().map(|&k| QUANTITIES[k].value(&self.machine)).collect();
        self.problem.fit(&|values| self.times(values), &start, MOST_STEPS)
    }

    /// The machine with these values of the fitted quantities.
    fn machine(&self, values: &[f64]) -> Machine {
        let mut machine = self.machine.clone();
        for (&k, &value) in self.fitted.iter().zip(values) {
            QUANTITIES[k].set(&mut machine, value);
        }
        machine
    }

    fn times(&self, values: &[f64]) -> Vec<f64> {
        self.bar.advance(1);
        predicted(self.cases, &self.machine(values))
    }
}

/// Observations with weights. The total weight of an algorithm is the square root of the number of its times. Times
/// of one algorithm on one shape with one number of ports form a group, since their errors are correlated.
fn observations(cases: &[&MeasuredCase]) -> Vec<Observation> {
    let families: Vec<_> =
        cases.iter().map(|case| (case.row.collective, &case.row.algorithm)).collect();
    let mut groups = HashMap::new();
    let rows = cases.iter().zip(family_weights(&families)).map(|(case, weight)| {
        let row = &case.row;
        let n_groups = groups.len();
        let group = (row.collective, &row.algorithm, row.ports, &row.shape);
        let group = *groups.entry(group).or_insert(n_groups);
        Observation { time: row.us, weight, group }
    });
    rows.collect()
}

fn source(quantity: &Quantity, undetermined: Option<f64>) -> String {
    let alone = |error: f64| match error {
        error if error > 2.0 => "the times do not tell its value".to_owned(),
        error => format!("its standard error by the times alone is {:.0} %", 100.0 * error),
    };
    match (quantity.origin, undetermined) {
        (origin, None) => origin.to_string(),
        (Origin::Known { source, .. }, Some(error)) => {
            format!("not determined: {source}; {}", alone(error))
        }
        (_, Some(error)) => format!("not determined: unchanged; {}", alone(error)),
    }
}
