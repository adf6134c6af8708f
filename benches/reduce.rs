//! Question: how close the reduction kernels come to the speed of memory.
//!
//! `cargo bench -p hopbine-benches --bench reduce` runs the criterion groups, then prints a table of ratios; with `--
//! ratios` it prints only the table. The lower bound is a loop that moves the same bytes (two reads and one write per
//! lane) with the cheapest operation, an exclusive or, with AVX2 if the processor has it. The table also shows the
//! rate of a plain copy. Kernel and lower bound alternate within the measurement of the table, so that other load
//! slows both: the ratios are more reliable than the rates.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use hopbine::reduce::{Dtype, Op, Reducer};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A vector whose bytes are a moderate number in every element type, at an address aligned for all types.
fn operand(dtype: Dtype, bytes: usize) -> Vec<u128> {
    let one: &[u8] = match dtype {
        Dtype::F16 => &[0x00, 0x3c],
        Dtype::Bf16 => &[0x80, 0x3f],
        Dtype::F32 | Dtype::ComplexF32 => &[0, 0, 0x80, 0x3f],
        Dtype::F64 | Dtype::ComplexF64 => &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        _ => &[1],
    };
    let mut pattern = [0u8; 16];
    for (byte, value) in pattern.iter_mut().zip(one.iter().cycle()) {
        *byte = *value;
    }
    vec![u128::from_le_bytes(pattern); bytes / 16]
}

#[inline(always)]
fn xor_lanes(dst: &mut [u64], src: &[u64]) {
    for (d, s) in dst.iter_mut().zip(src) {
        *d ^= *s;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn xor_avx2(dst: &mut [u64], src: &[u64]) {
    xor_lanes(dst, src);
}

/// The lower bound: two reads and one write.
#[inline(never)]
fn floor(dst: &mut [u128], src: &[u128]) {
    let dst = bytemuck::cast_slice_mut(dst);
    let src = bytemuck::cast_slice(src);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the line above has checked that the processor has AVX2.
        return unsafe { xor_avx2(dst, src) };
    }
    xor_lanes(dst, src);
}

fn sum(reducer: &Reducer, dst: &mut [u128], src: &[u128]) {
    reducer.reduce_into(bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(src));
}

fn reducer(dtype: Dtype) -> Reducer {
    Reducer::new(dtype, Op::Sum).expect("every type has a sum")
}

fn label(bytes: usize) -> String {
    if bytes < MIB { format!("{}KiB", bytes / KIB) } else { format!("{}MiB", bytes / MIB) }
}

/// Measured cases: every type with sizes that fit in a cache, only the most used types with larger sizes.
fn cases() -> Vec<(usize, Vec<Dtype>)> {
    let most_used = vec![Dtype::F32, Dtype::F64, Dtype::I32];
    vec![
        (16 * KIB, Dtype::ALL.to_vec()),
        (MIB, Dtype::ALL.to_vec()),
        (64 * MIB, most_used.clone()),
        (256 * MIB, most_used),
    ]
}

fn criterion_groups(criterion: &mut Criterion) {
    for (bytes, dtypes) in cases() {
        let mut group = criterion.benchmark_group(format!("sum/{}", label(bytes)));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        group.sample_size(if bytes > MIB { 10 } else { 20 });

        let src = operand(Dtype::I8, bytes);
        let mut dst = src.clone();
        group.bench_function("copy", |b| b.iter(|| black_box(&mut dst).copy_from_slice(&src)));
        group.bench_function("floor", |b| b.iter(|| floor(black_box(&mut dst), &src)));
        for dtype in dtypes {
            let reducer = reducer(dtype);
            let src = operand(dtype, bytes);
            dst.copy_from_slice(&src);
            group.bench_function(BenchmarkId::from_parameter(dtype), |b| {
                b.iter(|| sum(&reducer, black_box(&mut dst), &src));
            });
        }
        group.finish();
    }
}

/// Seconds of one call, averaged over enough calls to hide the clock's resolution.
fn seconds(calls: usize, mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64() / calls as f64
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Prints medians of rounds in which copy, lower bound and kernel alternate.
fn ratio_table() {
    println!("\nsum, medians; GB/s of result; ratio = time / time of the floor (2 reads, 1 write)");
    println!(
        "{:>8} {:>5} {:>9} {:>9} {:>9} {:>6}",
        "bytes", "type", "copy", "floor", "kernel", "ratio"
    );
    for (bytes, dtypes) in cases() {
        let calls = (2 * MIB / bytes).max(1);
        let rounds = if bytes > MIB { 15 } else { 101 };
        for dtype in dtypes {
            let reducer = reducer(dtype);
            let src = operand(dtype, bytes);
            let mut dst = src.clone();
            let [mut copies, mut floors, mut kernels] = [const { Vec::new() }; 3];
            for _ in 0..rounds {
                copies.push(seconds(calls, || black_box(&mut dst).copy_from_slice(&src)));
                floors.push(seconds(calls, || floor(black_box(&mut dst), &src)));
                dst.copy_from_slice(&src);
                kernels.push(seconds(calls, || sum(&reducer, black_box(&mut dst), &src)));
            }
            let [copy, floor, kernel] = [copies, floors, kernels].map(median);
            let rate = |time: f64| bytes as f64 / time / 1e9;
            println!(
                "{:>8} {:>5} {:>9.1} {:>9.1} {:>9.1} {:>6.2}",
                label(bytes),
                dtype,
                rate(copy),
                rate(floor),
                rate(kernel),
                kernel / floor
            );
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let table_only = arguments.iter().any(|argument| argument == "ratios");
    if !table_only {
        let mut criterion = Criterion::default().configure_from_args();
        criterion_groups(&mut criterion);
        criterion.final_summary();
    }
    // `cargo test` runs benches with `--test` only to check that they work; then the table is omitted.
    if !arguments.iter().any(|argument| argument == "--test" || argument == "--list") {
        ratio_table();
    }
}
