//! Intervals that should contain 90 % of the measured times.

use super::accuracy::quantile;

crate::named! {
    /// Classes of a vector's length, by the cost that dominates.
    pub enum SizeClass {
        /// To 2 KiB: latency.
        Short = "to 2 KiB",
        /// To 128 KiB: software.
        Medium = "to 128 KiB",
        /// To 8 MiB: software and bandwidth.
        Long = "to 8 MiB",
        /// Above: bandwidth.
        Huge = "above 8 MiB",
    }
}

impl SizeClass {
    /// The class of a vector of `bytes` bytes.
    pub fn of(bytes: u64) -> Self {
        match bytes {
            0..=2048 => Self::Short,
            2049..=131_072 => Self::Medium,
            131_073..=8_388_608 => Self::Long,
            _ => Self::Huge,
        }
    }
}

crate::named! {
    /// The software that performs a call.
    pub enum Software {
        /// MPI messages.
        Mpi = "over MPI",
        /// One port.
        OnePort = "one port",
        /// Several ports.
        Ports = "several ports",
    }
}

/// Rows whose predictions have errors for the same reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorClass {
    /// The length of the vector.
    pub size: SizeClass,
    /// The software that performs the call.
    pub software: Software,
}

impl ErrorClass {
    const N: usize = SizeClass::ALL.len() * Software::ALL.len();

    /// All classes, by length, then by software.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_size = |size| Software::ALL.map(|software| ErrorClass { size, software });
        SizeClass::ALL.into_iter().flat_map(of_size)
    }

    fn index(self) -> usize {
        self.size as usize * Software::ALL.len() + self.software as usize
    }
}

/// For each class, bounds of ln(predicted / measured) over the square root of log2 of the number of ranks. Errors of
/// steps add up, and the number of steps is about that logarithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals([[f64; 2]; ErrorClass::N]);

/// The quantiles that serve as bounds. Errors of rows of one shape are correlated, and there are few shapes, so the
/// bounds are a little wider than 90 % of the errors that they are computed from.
const BOUNDS: [f64; 2] = [0.025, 0.975];
/// A class with fewer errors than this gets the bounds of all errors.
const FEWEST: usize = 12;

impl Intervals {
    /// Intervals from errors of predictions whose measured times were left out of the fit: class, ranks, ln(predicted
    /// / measured). `None` if there are no errors.
    pub fn of(errors: &[(ErrorClass, u32, f64)]) -> Option<Self> {
        let bounds = |fewest: usize, is_in: &dyn Fn(ErrorClass) -> bool| {
            let chosen = errors.iter().filter(|(class, ..)| is_in(*class));
            let mut scaled: Vec<f64> =
                chosen.map(|(_, ranks, error)| error / spread(*ranks)).collect();
            scaled.sort_by(f64::total_cmp);
            (scaled.len() >= fewest).then(|| BOUNDS.map(|bound| quantile(&scaled, bound)))
        };
        let mut intervals = [bounds(1, &|_| true)?; ErrorClass::N];
        for class in ErrorClass::all() {
            if let Some(own) = bounds(FEWEST, &|other| other == class) {
                intervals[class.index()] = own;
            }
        }
        Some(Intervals(intervals))
    }

    /// Intervals with given bounds, in the order of [`ErrorClass::all`].
    pub const fn new(bounds: [[f64; 2]; 12]) -> Self {
        Intervals(bounds)
    }

    /// Returns the bounds of a class: ln(predicted / measured) over the square root of log2 of the number of ranks.
    pub fn bounds(&self, class: ErrorClass) -> [f64; 2] {
        self.0[class.index()]
    }

    /// Returns the interval around a prediction that should contain the measured time in 90 % of all cases.
    pub fn around(&self, class: ErrorClass, ranks: u32, predicted: f64) -> [f64; 2] {
        let [low, high] = self.bounds(class).map(|bound| bound * spread(ranks));
        [predicted * (-high).exp(), predicted * (-low).exp()]
    }
}

/// The square root of log2 of the number of ranks, at least 1.
fn spread(ranks: u32) -> f64 {
    f64::from(ranks.max(2)).log2().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: ErrorClass = ErrorClass { size: SizeClass::Long, software: Software::Ports };

    #[test]
    fn intervals_hold_what_they_are_made_of_and_grow_with_the_ranks() {
        let errors: Vec<_> = (0..101).map(|k| (CLASS, 16, (f64::from(k) - 40.0) / 100.0)).collect();
        let intervals = Intervals::of(&errors).unwrap();
        let within = |&&(class, ranks, error): &&(ErrorClass, u32, f64)| {
            let [low, high] = intervals.around(class, ranks, 50.0);
            let measured = 50.0 / error.exp();
            (low..=high).contains(&measured)
        };
        assert_eq!(errors.iter().filter(within).count(), 95);
        let width = |ranks| {
            let [low, high] = intervals.around(CLASS, ranks, 50.0);
            (high / low).ln()
        };
        assert!((width(256) / width(16) - 2f64.sqrt()).abs() < 1e-9);
        // A class without errors has the bounds of all errors.
        let other = ErrorClass { size: SizeClass::Short, software: Software::Mpi };
        assert_eq!(intervals.bounds(other), intervals.bounds(CLASS));
        assert_eq!(Intervals::of(&[]), None);
    }

    #[test]
    fn classes_are_in_order() {
        let indices: Vec<usize> = ErrorClass::all().map(ErrorClass::index).collect();
        assert_eq!(indices, (0..ErrorClass::N).collect::<Vec<_>>());
        let of = [4, 2048, 2049, 131_072, 131_073, 8 << 20, (8 << 20) + 1].map(SizeClass::of);
        use SizeClass::{Huge, Long, Medium, Short};
        assert_eq!(of, [Short, Short, Medium, Medium, Long, Long, Huge]);
    }
}
