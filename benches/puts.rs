//! Costs of the emulated device: posts and polls of small puts, then a table of puts between threads and between
//! processes. The table compares each put with a lower bound from the same run: a copy of the same size (`memcpy`,
//! `process_vm_writev`), or a flag in shared memory.
//!
//! The processes run this program again; `HOPBINE_BENCH_MEET` names the file through which they find each other. A
//! sample of the table is 4 to 32 MiB, or 500 round trips. The table shows medians.

use criterion::{Criterion, criterion_group};
use std::hint::spin_loop;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use utofu_emu::Job;
use utofu_sys::*;

#[path = "../sys/emu/tests/common/mod.rs"]
mod common;
use common::{EndPoint, Exchange, RMT, TCQ};
mod pair;
use pair::{Reach, Row, Shared};

/// Environment variable of a rank's process: the file through which it finds the other rank.
const MEET: &str = "HOPBINE_BENCH_MEET";
/// Environment variable of a rank's process: the number of samples.
const SAMPLES: &str = "HOPBINE_BENCH_SAMPLES";

/// One thread posts to itself and polls both queues, which measures the code alone.
fn to_oneself(b: &mut Criterion) {
    let job = Job::threads(vec![[0; 6]]);
    let _me = job.enter(0);
    let mut buf = vec![0u64; 8192];
    let ep = EndPoint::open(&mut buf);
    b.bench_function("put 8 B to oneself, polling TCQ and MRQ", |b| {
        b.iter(|| {
            assert_eq!(ep.put(ep.id, ep.stadd, ep.stadd + 64, 8, 0, TCQ | RMT), 0);
            assert!(ep.poll_tcq().is_ok());
            assert_eq!(ep.poll_mrq().0, 0);
        });
    });
    b.bench_function("poll an empty MRQ", |b| {
        b.iter(|| assert_eq!(ep.poll_mrq().0, UTOFU_ERR_NOT_FOUND));
    });
    ep.close();
}

/// Two threads play ping-pong; the one-way time is half an iteration.
fn ping_pong(b: &mut Criterion) {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let ends = Exchange::new(2);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let _me = job.enter(1);
            let mut buf = vec![0u64; 1024];
            let ep = EndPoint::open(&mut buf);
            let all = ends.gather(1, (ep.id, ep.stadd));
            while !stop.load(Ordering::Relaxed) {
                match ep.poll_mrq().0 {
                    UTOFU_SUCCESS => ep.piggyback8(all[0].0, 1, all[0].1, 0, RMT),
                    _ => spin_loop(),
                }
            }
            ends.gather(1, (0, 0));
            ep.close();
        });
        let _me = job.enter(0);
        let mut buf = vec![0u64; 1024];
        let ep = EndPoint::open(&mut buf);
        let all = ends.gather(0, (ep.id, ep.stadd));
        b.bench_function("ping-pong of 8 B between two threads, there and back", |b| {
            b.iter(|| {
                ep.piggyback8(all[1].0, 1, all[1].1, 0, RMT);
                while ep.poll_mrq().0 == UTOFU_ERR_NOT_FOUND {
                    spin_loop();
                }
            });
        });
        stop.store(true, Ordering::Relaxed);
        ends.gather(0, (0, 0));
        ep.close();
    });
}

criterion_group!(benches, to_oneself, ping_pong);

/// Two ranks as threads of this process.
fn between_threads(samples: usize) -> Vec<Row> {
    let job = Job::threads(Job::coords_for_shape(&[1, 2]).unwrap());
    let shared = Shared::default();
    std::thread::scope(|s| {
        s.spawn(|| {
            let _me = job.enter(1);
            pair::play(1, &shared, Reach::Copy, samples);
        });
        let _me = job.enter(0);
        pair::play(0, &shared, Reach::Copy, samples)
    })
}

/// Two ranks as processes. Rank 0 prints the rows, and this process parses them.
fn between_processes(samples: usize) -> Vec<Row> {
    let dir = tempfile::tempdir().unwrap();
    let meet = dir.path().join("meet");
    std::fs::File::create(&meet).unwrap().set_len(size_of::<Shared>() as u64).unwrap();
    let ranks = ["0", "1"].map(|rank| {
        Command::new(std::env::current_exe().unwrap())
            .env(MEET, &meet)
            .env(SAMPLES, samples.to_string())
            .env("HOPBINE_RANK", rank)
            .env("HOPBINE_SIZE", "2")
            .env("HOPBINE_RENDEZVOUS", dir.path().join("rendezvous"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let outputs = ranks.map(|rank| rank.wait_with_output().unwrap());
    assert!(outputs.iter().all(|output| output.status.success()), "a rank's process failed");
    let text = String::from_utf8_lossy(&outputs[0].stdout);
    let rows = text.lines().map(|line| {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("three words in a line");
        Row {
            bytes: word().parse().unwrap(),
            put: word().parse().unwrap(),
            floor: word().parse().unwrap(),
        }
    });
    rows.collect()
}

/// Runs one rank in a process of its own.
fn as_process(meet: &Path) {
    let number = |name| std::env::var(name).unwrap().parse().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(meet).unwrap();
    // SAFETY: a new mapping of a file that has this size and is not truncated while it is in use.
    let ptr = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size_of::<Shared>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(ptr, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    // SAFETY: the mapping has only atomics, for which zeros are valid, is aligned to a page and is never unmapped.
    let shared = unsafe { &*ptr.cast::<Shared>() };
    let rank = number("HOPBINE_RANK");
    for Row { bytes, put, floor } in pair::play(rank, shared, Reach::Kernel, number(SAMPLES)) {
        println!("{bytes} {put} {floor}");
    }
}

fn show(between: &str, floors: [&str; 2], rows: &[Row]) {
    for (index, &Row { bytes, put, floor }) in rows.iter().enumerate() {
        let size = match bytes {
            8 => "8 B".to_owned(),
            _ if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
            _ if bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
            _ => format!("{} MiB-1", (bytes + 1) >> 20),
        };
        let shown = |ns: f64| match bytes == 8 {
            true => format!("{ns:.0} ns"),
            false => format!("{:.2} GB/s", bytes as f64 / ns),
        };
        let against = floors[usize::from(index > 0)];
        let (p, f, ratio) = (shown(put), shown(floor), put / floor);
        println!("{between:<10} {size:>9} {p:>12} {f:>12}  {against:<18} {ratio:>6.2}");
    }
}

fn main() {
    if let Some(meet) = std::env::var_os(MEET) {
        return as_process(Path::new(&meet));
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
    // As in criterion, a run without `--bench` only checks that the program works.
    let samples = if std::env::args().any(|arg| arg == "--bench") { 201 } else { 3 };
    let threads = between_threads(samples);
    let processes = between_processes(samples);
    println!(
        "\nPuts between two ranks, medians of {samples} samples; ratio of times, 1 is the floor"
    );
    println!("between         size          put        floor  floor is            ratio");
    show("threads", ["a flag", "memcpy"], &threads);
    show("processes", ["a flag", "process_vm_writev"], &processes);
}
