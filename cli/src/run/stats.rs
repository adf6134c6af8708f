//! Order statistics of measured times.

use hopbine_torus::fit::quantile;

/// The times of a row, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowTimes {
    /// Number of measured iterations.
    pub n: usize,
    /// Median time.
    pub median: f64,
    /// 10th percentile.
    pub p10: f64,
    /// 90th percentile.
    pub p90: f64,
}

impl RowTimes {
    /// The statistics of times in any order; `None` if there are none.
    pub fn of(mut seconds: Vec<f64>) -> Option<Self> {
        seconds.sort_by(f64::total_cmp);
        (!seconds.is_empty()).then(|| RowTimes {
            n: seconds.len(),
            median: quantile(&seconds, 0.5),
            p10: quantile(&seconds, 0.1),
            p90: quantile(&seconds, 0.9),
        })
    }
}

/// Formats a duration with three digits and a unit.
pub fn show(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    three_digits(value, unit)
}

/// Formats bytes per second with three digits and a unit.
pub fn show_rate(bytes_per_second: f64) -> String {
    let (value, unit) = match bytes_per_second {
        b if b < 1e3 => (b, "B/s"),
        b if b < 1e6 => (b / 1e3, "kB/s"),
        b if b < 1e9 => (b / 1e6, "MB/s"),
        b => (b / 1e9, "GB/s"),
    };
    three_digits(value, unit)
}

fn three_digits(value: f64, unit: &str) -> String {
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        let times = RowTimes::of((0..=10).rev().map(f64::from).collect()).unwrap();
        assert_eq!(times, RowTimes { n: 11, median: 5.0, p10: 1.0, p90: 9.0 });
        let times = RowTimes::of(vec![2.0, 1.0]).unwrap();
        assert_eq!(times.median, 1.5);
        assert!((times.p90 - 1.9).abs() < 1e-12);
        assert_eq!(RowTimes::of(vec![]), None);
    }

    #[test]
    fn durations_have_three_digits() {
        assert_eq!(show(1.234e-6), "1.23 us");
        assert_eq!(show(12.34e-6), "12.3 us");
        assert_eq!(show(0.1234), "123 ms");
        assert_eq!(show(2.5), "2.50 s");
        assert_eq!(show_rate(61_200.0), "61.2 kB/s");
        assert_eq!(show_rate(2.5e9), "2.50 GB/s");
    }
}
