//! Question: the time of an allreduce on emulated ranks, from call to return, with the same length in every call and
//! with changing lengths; and of a sum of three integers and a barrier, by the barrier gates and by plan.
//!
//! Ranks are threads that share the cores of this machine, so the numbers measure the engine and the endpoint, not a
//! network. The inputs are fixed. The tests verify correctness; each benchmark checks its result once.

use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{CallOptions, EmulationConfig, Hardware, emulate};

fn allreduce(criterion: &mut Criterion) {
    for (name, sizes) in [("2", &[2][..]), ("2x2x2", &[2, 2, 2]), ("4x4x4", &[4, 4, 4])] {
        let mut group = criterion.benchmark_group(format!("allreduce/{name}"));
        group.sample_size(10);
        for bytes in [8usize, 1 << 10, 16 << 10, 128 << 10, 1 << 20] {
            group.throughput(Throughput::Bytes(bytes as u64));
            let id = BenchmarkId::from_parameter(bytes);
            group.bench_with_input(id, &bytes, |bencher, &bytes| {
                bencher.iter_custom(|iters| {
                    let config = EmulationConfig::new(Shape::torus(sizes).expect("a shape"));
                    let times = emulate(&config, |comm| {
                        let send = vec![f64::from(comm.rank()); bytes / 8];
                        let mut recv = vec![0.0; bytes / 8];
                        let mut run = || comm.allreduce(&send, &mut recv, Op::Sum);
                        // The measurement excludes the first contact of the ranks and compilation.
                        for _ in 0..4 {
                            run().expect("no failure");
                        }
                        comm.barrier().expect("no failure");
                        let start = Instant::now();
                        for _ in 0..iters {
                            run().expect("no failure");
                        }
                        let time = start.elapsed();
                        let n = f64::from(comm.size());
                        assert!(recv.iter().all(|&sum| sum == n * (n - 1.0) / 2.0));
                        time
                    });
                    times.expect("no rank fails")[0]
                });
            });
        }
        group.finish();
    }
}

fn small(criterion: &mut Criterion) {
    for (name, sizes) in [("2", &[2][..]), ("2x2x2", &[2, 2, 2]), ("4x4x4", &[4, 4, 4])] {
        let mut group = criterion.benchmark_group(format!("small/{name}"));
        group.sample_size(10);
        for hardware in [Hardware::Always, Hardware::Never] {
            let by = if hardware == Hardware::Always { "gates" } else { "plan" };
            for what in ["barrier", "sum of 3 i64"] {
                let id = BenchmarkId::new(what, by);
                group.bench_function(id, |bencher| {
                    bencher.iter_custom(|iters| {
                        let config = EmulationConfig::new(Shape::torus(sizes).expect("a shape"));
                        let times = emulate(&config, |comm| {
                            let comm = comm.with(CallOptions::new().hardware(hardware));
                            let mut sum = [0i64; 3];
                            let mut run = || {
                                if what == "barrier" {
                                    return comm.barrier();
                                }
                                sum = [i64::from(comm.rank()); 3];
                                comm.allreduce_in_place(&mut sum, Op::Sum)
                            };
                            for _ in 0..4 {
                                run().expect("no failure");
                            }
                            let start = Instant::now();
                            for _ in 0..iters {
                                run().expect("no failure");
                            }
                            let time = start.elapsed();
                            let n = i64::from(comm.size());
                            assert!(what == "barrier" || sum == [n * (n - 1) / 2; 3]);
                            time
                        });
                        times.expect("no rank fails")[0]
                    });
                });
            }
        }
        group.finish();
    }
}

/// Uses more lengths than the number of cached programs: each call compiles a program and allocates its working
/// memory.
fn changing(criterion: &mut Criterion) {
    for (name, sizes) in [("2", &[2][..]), ("2x2", &[2, 2])] {
        let mut group = criterion.benchmark_group(format!("changing/{name}"));
        group.sample_size(10);
        for (elements, lengths) in
            [100, 5_000, 100_000].into_iter().flat_map(|n| [(n, 1), (n, 400)])
        {
            let id = BenchmarkId::new(format!("{lengths} lengths"), elements);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|iters| {
                    let config = EmulationConfig::new(Shape::torus(sizes).expect("a shape"));
                    let times = emulate(&config, |comm| {
                        let comm = comm.with(CallOptions::new().hardware(Hardware::Never));
                        let mut vector = vec![1.0; elements + lengths];
                        let mut run = |call: u64| {
                            let len = elements + call as usize % lengths;
                            comm.allreduce_in_place(&mut vector[..len], Op::Max)
                                .expect("no failure");
                        };
                        (0..400).for_each(&mut run);
                        comm.barrier().expect("no failure");
                        let start = Instant::now();
                        (0..iters).for_each(&mut run);
                        let time = start.elapsed();
                        assert!(vector.iter().all(|&value| value == 1.0));
                        time
                    });
                    times.expect("no rank fails")[0]
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, allreduce, small, changing);
criterion_main!(benches);
