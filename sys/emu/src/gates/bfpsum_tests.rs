use super::*;
use proptest::prelude::*;

fn sum(xs: &[f64]) -> f64 {
    let all = xs.iter().map(|x| PartialSum::of(*x));
    all.reduce(PartialSum::merge).unwrap().round()
}

/// The cases that were measured: 2^T + 2^k - 2^T keeps 2^k from 2^L up.
#[test]
fn the_grid_is_the_measured_one() {
    for t in -6..100i32 {
        let keep_from = 80 * (t.div_euclid(80) - 1);
        let large = 2f64.powi(t);
        for k in t - 165..=t {
            let small = 2f64.powi(k);
            let expect = if k >= keep_from { small } else { 0.0 };
            assert_eq!(sum(&[large, small, -large]), expect, "T {t} k {k}");
            assert_eq!(sum(&[small, -large, large]), expect, "T {t} k {k}");
        }
    }
}

#[test]
fn special_values() {
    assert!(sum(&[f64::NAN, 1.0]).is_nan());
    assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    assert_eq!(sum(&[f64::INFINITY, -1e300]), f64::INFINITY);
    assert_eq!(sum(&[1.0, f64::NEG_INFINITY]), f64::NEG_INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    assert_eq!(sum(&[-0.0, -0.0]).to_bits(), 0);
    assert_eq!(sum(&[1.0, -1.0]).to_bits(), 0);
    let tiny = f64::from_bits(1);
    assert_eq!(sum(&[tiny, tiny, tiny]), f64::from_bits(3));
    assert_eq!(sum(&[f64::MIN_POSITIVE, -tiny]), f64::from_bits((1 << 52) - 1));
}

#[test]
fn ties_go_to_even() {
    let one = 1.0f64;
    let half_step = 2f64.powi(-53);
    assert_eq!(sum(&[one, half_step]), one);
    assert_eq!(sum(&[one, half_step, 2f64.powi(-70)]), one + 2.0 * half_step);
    let odd = one + 2.0 * half_step;
    assert_eq!(sum(&[odd, half_step]), one + 4.0 * half_step);
    assert_eq!(sum(&[-odd, -half_step]), -one - 4.0 * half_step);
}

proptest! {
    /// A sum of two addends is rounded as by the processor if all bits are kept.
    #[test]
    fn two_addends_are_rounded_once(a in any::<f64>(), e in -75i32..=75) {
        prop_assume!(a.is_finite() && a != 0.0);
        let b = a * 1.337 * 2f64.powi(e);
        prop_assume!(b.is_finite());
        // Bits may be lost below the grid only if the smaller addend is more than 27 + 53 bits below the larger one.
        let (x, y) = (a.abs().max(b.abs()), a.abs().min(b.abs()));
        prop_assume!(y == 0.0 || x / y < 2f64.powi(26));
        prop_assert_eq!(sum(&[a, b]).to_bits(), (a + b).to_bits());
        prop_assert_eq!(sum(&[a, -b]).to_bits(), (a - b).to_bits());
    }

    /// Compares with sums of integers, which are exact in i128.
    #[test]
    fn many_integers_are_exact(xs in prop::collection::vec(-(1i64 << 52)..(1i64 << 52), 1..200),
                               scale in -1000i32..900) {
        let exact: i128 = xs.iter().map(|x| i128::from(*x)).sum();
        // `scale` becomes a multiple of the grid, so that no digit is lost.
        let scale = scale / 80 * 80;
        let unit = 2f64.powi(scale);
        let got = sum(&xs.iter().map(|x| *x as f64 * unit).collect::<Vec<_>>());
        prop_assert_eq!(got, exact as f64 * unit);
    }

    /// Every order and every tree gives the same bits.
    #[test]
    fn order_does_not_matter(bits in prop::collection::vec(any::<u64>(), 2..20), cut in 1usize..19) {
        let xs: Vec<f64> = bits.iter().map(|b| f64::from_bits(*b)).filter(|x| !x.is_nan()).collect();
        prop_assume!(xs.len() > 1);
        let cut = cut % (xs.len() - 1) + 1;
        let forward = sum(&xs);
        let backward = sum(&xs.iter().rev().copied().collect::<Vec<_>>());
        let part = |s: &[f64]| s.iter().map(|x| PartialSum::of(*x)).reduce(PartialSum::merge).unwrap();
        let tree = PartialSum::load(&part(&xs[cut..]).store()).merge(part(&xs[..cut])).round();
        prop_assert!(forward.to_bits() == backward.to_bits() || forward.is_nan() && backward.is_nan());
        prop_assert!(forward.to_bits() == tree.to_bits() || forward.is_nan() && tree.is_nan());
    }
}
