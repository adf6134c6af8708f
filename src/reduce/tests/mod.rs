//! Tests of `reduce` as a whole: every loop of every version against a reference that shares no code with it.

mod folds;
mod halves;
mod kernels;
mod reference;
mod semantics;
mod texts;
mod values;
mod words;

use super::kernels::Baseline;
use super::table::find_in;
use super::{Dtype, Op, Reducer};

/// A reducer for every defined pair in every version of the loops that this processor can run, with a label.
fn all_reducers() -> Vec<(String, Reducer)> {
    let mut reducers = Vec::new();
    for dtype in all_dtypes() {
        for op in all_ops().filter(|op| op.defined_for(dtype)) {
            let baseline = find_in(Baseline, dtype, op).expect("a defined pair has loops");
            reducers
                .push((format!("{dtype} {op} baseline"), Reducer { dtype, op, kernels: baseline }));
            #[cfg(target_arch = "x86_64")]
            if let Some(version) = super::x86::Avx2::detect() {
                let kernels = find_in(version, dtype, op).expect("a defined pair has loops");
                reducers.push((format!("{dtype} {op} avx2"), Reducer { dtype, op, kernels }));
            }
            #[cfg(target_arch = "aarch64")]
            if let Some(version) = super::sve::Sve::detect() {
                let kernels = find_in(version, dtype, op).expect("a defined pair has loops");
                reducers.push((format!("{dtype} {op} sve"), Reducer { dtype, op, kernels }));
            }
        }
    }
    reducers
}

fn all_dtypes() -> impl Iterator<Item = Dtype> {
    Dtype::ALL.into_iter().chain(Dtype::PAIRS)
}

fn all_ops() -> impl Iterator<Item = Op> {
    Op::ALL.into_iter().chain(Op::LOCATIONS)
}

fn reducer(dtype: Dtype, op: Op) -> Reducer {
    Reducer::new(dtype, op).expect("the test asks for a defined pair")
}
