//! Linear equations with a symmetric, positive definite matrix of a few dozen rows.

/// A matrix, stored as its Cholesky factor.
pub(super) struct Cholesky {
    n: usize,
    /// The factor, row by row; entries above the diagonal are not read.
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors an n x n matrix, given row by row; `None` if it is not positive definite.
    pub fn new(n: usize, matrix: &[f64]) -> Option<Self> {
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = matrix[i * n + j] - dot;
                lower[i * n + j] = match i == j {
                    true if rest > 0.0 => rest.sqrt(),
                    true => return None,
                    false => rest / lower[j * n + j],
                };
            }
        }
        Some(Cholesky { n, lower })
    }

    /// Returns the x for which the matrix times x is `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (n, lower) = (self.n, &self.lower);
        let mut x = right.to_vec();
        for i in 0..n {
            let dot: f64 = (0..i).map(|k| lower[i * n + k] * x[k]).sum();
            x[i] = (x[i] - dot) / lower[i * n + i];
        }
        for i in (0..n).rev() {
            let dot: f64 = (i + 1..n).map(|k| lower[k * n + i] * x[k]).sum();
            x[i] = (x[i] - dot) / lower[i * n + i];
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let matrix = [4.0, 2.0, 0.6, 2.0, 5.0, 1.5, 0.6, 1.5, 3.0];
        let x = Cholesky::new(3, &matrix).unwrap().solve(&[1.0, -2.0, 7.0]);
        for (row, right) in matrix.chunks(3).zip([1.0, -2.0, 7.0]) {
            let left: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((left - right).abs() < 1e-12, "{left} for {right}");
        }
        assert!(Cholesky::new(2, &[1.0, 2.0, 2.0, 4.0]).is_none());
    }
}
