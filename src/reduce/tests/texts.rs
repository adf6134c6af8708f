//! Names, error texts, and the table of operators that are defined for each type.

use std::collections::HashSet;

use half::{bf16, f16};
use num_complex::Complex;

use super::{all_dtypes, all_ops};
use crate::reduce::{Datatype, Dtype, Op, Pair, ReduceError, Reducer};

#[test]
fn names_come_back_and_are_all_different() {
    for dtype in Dtype::ALL {
        assert_eq!(dtype.to_string().parse(), Ok(dtype));
    }
    for op in Op::ALL {
        assert_eq!(op.to_string().parse(), Ok(op));
    }
    let names: HashSet<_> = all_dtypes().map(Dtype::name).collect();
    assert_eq!(names.len(), all_dtypes().count());
    let names: HashSet<_> = all_ops().map(Op::name).collect();
    assert_eq!(names.len(), all_ops().count());
}

#[test]
fn names_are_padded_in_tables() {
    assert_eq!(format!("{:>5}|{:<5}|", Dtype::F32, Op::Sum), "  f32|sum  |");
}

#[test]
fn an_unknown_name_is_answered_with_the_valid_ones() {
    assert_eq!(
        "float".parse::<Dtype>().unwrap_err().to_string(),
        "unknown element type \"float\"; valid are: i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c32 c64"
    );
    assert_eq!(
        "SUM".parse::<Op>().unwrap_err().to_string(),
        "unknown operator \"SUM\"; valid are: sum prod min max land lor lxor band bor bxor"
    );
}

#[test]
fn an_undefined_pair_is_answered_with_the_defined_operators() {
    let error = Reducer::new(Dtype::ComplexF32, Op::Max).unwrap_err();
    assert_eq!(error, ReduceError::Undefined { op: Op::Max, dtype: Dtype::ComplexF32 });
    assert_eq!(
        error.to_string(),
        "operator max is not defined for elements of type c32; defined are: sum prod"
    );
}

/// `defined_for` and the table of loops, which are separate in the source, must agree.
#[test]
fn a_reducer_exists_exactly_where_the_operator_is_defined() {
    let mut defined = 0;
    for dtype in all_dtypes() {
        for op in all_ops() {
            match Reducer::new(dtype, op) {
                Ok(reducer) => {
                    assert!(op.defined_for(dtype), "{dtype} {op}");
                    assert_eq!((reducer.dtype(), reducer.op()), (dtype, op));
                    defined += 1;
                }
                Err(error) => {
                    assert!(!op.defined_for(dtype), "{dtype} {op}");
                    assert_eq!(error, ReduceError::Undefined { op, dtype });
                }
            }
        }
    }
    assert_eq!(defined, 8 * 10 + 4 * 4 + 2 * 2 + 5 * 2);
}

#[test]
fn rust_types_know_their_element_type() {
    let integers = [i8::DTYPE, i16::DTYPE, i32::DTYPE, i64::DTYPE];
    let unsigned = [u8::DTYPE, u16::DTYPE, u32::DTYPE, u64::DTYPE];
    let floats = [f16::DTYPE, bf16::DTYPE, f32::DTYPE, f64::DTYPE];
    let complex = [Complex::<f32>::DTYPE, Complex::<f64>::DTYPE];
    assert_eq!([&integers[..], &unsigned, &floats, &complex].concat(), Dtype::ALL);
    let pairs = [Pair::<i32, i32>::DTYPE, Pair::<i64, i64>::DTYPE, Pair::<f32, f32>::DTYPE];
    assert_eq!(pairs, Dtype::PAIRS[..3]);
    assert_eq!([Pair::<f64, f64>::DTYPE, Pair::<f32, i32>::DTYPE], Dtype::PAIRS[3..]);
}

#[test]
fn a_reducer_goes_to_any_thread() {
    fn sendable<T: Copy + Send + Sync>(_: T) {}
    sendable(super::reducer(Dtype::I8, Op::Sum));
}
