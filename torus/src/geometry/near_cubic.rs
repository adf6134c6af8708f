//! Shapes for a given number of nodes, if nothing else is known.

/// Sizes of a torus with `n` nodes and at most three dimensions that is as near to a cube as
/// the divisors of `n` allow: of all ways to write `n` as a product of three, the one with the
/// smallest sum, in descending order, without sizes of 1. A single node is `[1]`.
///
/// ```
/// assert_eq!(hopbine_torus::geometry::near_cubic(8), [2, 2, 2]);
/// assert_eq!(hopbine_torus::geometry::near_cubic(12), [3, 2, 2]);
/// assert_eq!(hopbine_torus::geometry::near_cubic(7), [7]);
/// assert_eq!(hopbine_torus::geometry::near_cubic(u32::MAX).iter().product::<u32>(), u32::MAX);
/// ```
///
/// # Panics
/// If `n` is 0.
pub fn near_cubic(n: u32) -> Vec<u32> {
    assert!(n > 0, "a torus has at least one node");
    let divisors =
        |n: u32| (1..).take_while(move |&d| d <= n / d).filter(move |d| n.is_multiple_of(*d));
    let mut best = [n, 1, 1];
    let sum = |sizes: &[u32; 3]| sizes.iter().map(|&size| u64::from(size)).sum::<u64>();
    // The smallest of three factors is at most the cube root; larger ones repeat the same products.
    for smallest in divisors(n) {
        for middle in divisors(n / smallest) {
            let sizes = [n / smallest / middle, middle, smallest];
            if sum(&sizes) < sum(&best) {
                best = sizes;
            }
        }
    }
    best.sort_unstable_by(|a, b| b.cmp(a));
    let mut sizes: Vec<u32> = best.into_iter().filter(|&size| size > 1).collect();
    if sizes.is_empty() {
        sizes.push(1);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_cubic_has_the_right_product_and_the_smallest_sum() {
        for n in 1..=300u32 {
            let sizes = near_cubic(n);
            assert_eq!(sizes.iter().product::<u32>(), n);
            assert!(sizes.is_sorted_by(|a, b| a >= b) && (1..=3).contains(&sizes.len()));
            let mut padded = sizes.clone();
            padded.resize(3, 1);
            let sum: u32 = padded.iter().sum();
            for a in 1..=n {
                for b in (1..=n / a).filter(|b| n.is_multiple_of(a * b)) {
                    assert!(sum <= a + b + n / a / b, "{n}: {sizes:?} or {a}x{b}");
                }
            }
        }
        assert_eq!(near_cubic(1), [1]);
        assert_eq!(near_cubic(158_976), [64, 54, 46]);
    }
}
