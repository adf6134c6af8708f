//! Ranks that die, hang, leave, or are late: all other ranks end with an error that names the rank at fault, also
//! ranks that do not wait for it but for a rank that does.
//!
//! Ranks are processes that make the same call in rounds; the victim fails in the middle.

use std::time::{Duration, Instant};

use crate::common::four_at_a_time;
use crate::common::processes::{ranks, run_scenario, start};
use hopbine::reduce::Op;
use hopbine::{CallOptions, Communicator, Error, Fault, Hardware, init};
use hopbine_meet::Stat;
use hopbine_testing::processes::{Ended, wait, wait_until};

mod late;

/// The rank that fails.
const VICTIM: u32 = 2;
/// Enough ranks that some wait for the victim only through others.
const RANKS: usize = 6;
/// Rounds before the failure.
const GOOD_ROUNDS: usize = 20;
const FATE: &str = "HOPBINE_TEST_FATE";

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| {
        Some(match name {
            "ring" => || rounds(ring),
            "small" => || rounds(small),
            "gates" => || rounds(gates),
            "tested" => || rounds(tested),
            "bcast" => || rounds(bcast),
            "missing" => missing,
            "two" => || two(ring, |comm| comm.duplicate().map(Some)),
            "gates_beside" => || two(gates, without_the_victim),
            "gates_and_plan" => || rounds(gates_and_plan),
            "ends_early" => ends_early,
            "workerless" => workerless,
            "headless" => headless,
            _ => return None,
        })
    });
}

type Round = fn(&Communicator) -> Result<(), Error>;

/// Rounds of a call until the call fails.
fn rounds(round: Round) {
    let world = init().unwrap();
    let comm = world.communicator();
    let fate = std::env::var(FATE).unwrap();
    for number in 0.. {
        if comm.rank() == VICTIM && number == GOOD_ROUNDS {
            meet(&fate);
        }
        let began = Instant::now();
        if let Err(error) = round(comm) {
            println!("ERROR after {} ms: {error:?}: {error}", began.elapsed().as_millis());
            let again = comm.with(by_plan()).barrier().unwrap_err();
            assert!(matches!(again, Error::Poisoned(_)), "{again}");
            return;
        }
    }
}

fn meet(fate: &str) {
    match fate {
        // Dies during one of the next calls.
        "killed" => drop(std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            raise(libc::SIGKILL);
        })),
        "stopped" => {
            // Meanwhile the workers complete the previous round. A process that is stopped within that round keeps
            // the emulated device from ending its peers' registrations, which no hardware would do.
            std::thread::sleep(Duration::from_millis(300));
            raise(libc::SIGSTOP);
        }
        "leaves" => std::process::exit(0),
        "late" => late::come_late(),
        "other call" => {}
        _ => panic!("there is no fate {fate}"),
    }
}

fn raise(signal: libc::c_int) {
    // SAFETY: sends a signal to this process, which has no handlers.
    let code = unsafe { libc::kill(libc::getpid(), signal) };
    assert_eq!(code, 0);
}

fn by_plan() -> CallOptions {
    CallOptions::new().hardware(Hardware::Never)
}

/// Every rank waits only for its neighbour.
fn ring(comm: &Communicator) -> Result<(), Error> {
    let mut vector = vec![1.0; 20_000];
    comm.with(CallOptions::new().algorithm("bucket")).allreduce_in_place(&mut vector, Op::Max)
}

fn small(comm: &Communicator) -> Result<(), Error> {
    comm.with(by_plan()).allreduce_in_place(&mut [1.0; 3], Op::Max)
}

fn gates(comm: &Communicator) -> Result<(), Error> {
    comm.with(CallOptions::new().hardware(Hardware::Always)).barrier()
}

/// No rank waits: every rank tests, and computes meanwhile.
fn tested(comm: &Communicator) -> Result<(), Error> {
    let mut vector = vec![1.0; 20_000];
    comm.with(by_plan()).scope(|scope| {
        let request = scope.allreduce_in_place(&mut vector, Op::Max)?;
        while !request.test() {
            std::thread::sleep(Duration::from_micros(100));
        }
        request.wait().map(drop)
    })
}

/// The second communicator of the other ranks does not contain the victim.
fn without_the_victim(comm: &Communicator) -> Result<Option<Communicator>, Error> {
    comm.split(Some(u32::from(comm.rank() == VICTIM)), 0)
}

/// Every rank has two threads with one communicator each. The victim dies in a call of the first communicator, a
/// `round`.
fn two(round: Round, second: impl Fn(&Communicator) -> Result<Option<Communicator>, Error>) {
    let world = init().unwrap();
    let comm = world.communicator();
    let second = second(comm).unwrap().unwrap();
    let began = std::thread::scope(|threads| {
        let other = threads.spawn(|| while small(&second).is_ok() {});
        for number in 0.. {
            if comm.rank() == VICTIM && number == GOOD_ROUNDS {
                raise(libc::SIGKILL);
            }
            let began = Instant::now();
            if let Err(error) = round(comm) {
                println!("ERROR after {} ms: {error:?}: {error}", began.elapsed().as_millis());
                break;
            }
        }
        let began = Instant::now();
        other.join().unwrap();
        began
    });
    // The other thread's calls fail as well.
    println!("OTHER after {} ms", began.elapsed().as_millis());
    assert!(matches!(small(&second).unwrap_err(), Error::Poisoned(_)));
}

/// The root waits for no rank until the other ranks stop receiving.
fn bcast(comm: &Communicator) -> Result<(), Error> {
    comm.with(by_plan()).bcast(&mut [1u8; 1500], 0)
}

/// After some rounds the victim makes the call by plan, not by gates.
fn gates_and_plan(comm: &Communicator) -> Result<(), Error> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ROUND: AtomicUsize = AtomicUsize::new(0);
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    if comm.rank() == VICTIM && round >= GOOD_ROUNDS { small(comm) } else { gates(comm) }
}

/// Runs the scenario; returns how the other ranks ended, and how the victim ended.
fn run(scenario: &str, fate: &str, timeout: u32, env: &[(&str, &str)]) -> (Vec<Ended>, Ended) {
    let timeout = timeout.to_string();
    let mut all = vec![(FATE, fate), ("HOPBINE_TIMEOUT", &timeout)];
    all.extend_from_slice(env);
    let (dir, mut children) = start(RANKS, scenario, &all);
    let mut victim = children.remove(VICTIM as usize);
    if fate == "late" {
        for other in &mut children {
            wait_until("an error", || other.stdout().contains("ERROR") || other.has_ended());
        }
        late::let_go(&dir);
    }
    let others = wait(children);
    // A stopped process does not end by itself.
    if fate == "stopped" {
        victim.kill();
    }
    (others, wait(vec![victim]).remove(0))
}

/// The line with the error of a rank that was not at fault.
fn error_of(ended: &Ended) -> &str {
    assert!(ended.status.success(), "{}", ended.text());
    ended.stdout.lines().find(|line| line.starts_with("ERROR")).expect("an error")
}

fn names_the_victim(error: &str, faults: &[Fault]) -> bool {
    let blamed = faults
        .iter()
        .any(|fault| error.contains(&format!("Blame {{ rank: {VICTIM}, fault: {fault:?}, by: ")));
    // The wire's own error for a failed put.
    let by_wire = error.contains("Wire {") && error.contains(&format!("peer: Some({VICTIM})"));
    blamed || (by_wire && faults.contains(&Fault::Unreachable))
}

#[test]
fn a_rank_that_is_gone_is_named_by_all_others_before_the_timeout() {
    // Much longer than the search for the rank at fault takes, so that a busy machine does not matter.
    const TIMEOUT: u32 = 60;
    let workers = [("HOPBINE_DRIVE", "workers"), ("HOPBINE_TORUS", "3x2")];
    // Some peers are reached over another wire.
    let per_node = [("HOPBINE_TORUS", "3"), ("HOPBINE_RANKS_PER_NODE", "2")];
    let cases: [(_, _, &[_]); 15] = [
        ("ring", "killed", &per_node),
        ("tested", "leaves", &per_node),
        ("two", "killed", &[]),
        ("two", "killed", &workers),
        ("gates_beside", "killed", &[]),
        ("gates_beside", "killed", &workers),
        ("ring", "killed", &[("HOPBINE_TORUS", "6")]),
        ("ring", "killed", &workers),
        ("small", "killed", &[]),
        ("gates", "killed", &[]),
        ("gates", "leaves", &workers),
        ("tested", "killed", &[]),
        ("tested", "leaves", &workers),
        ("bcast", "killed", &[]),
        ("ring", "leaves", &[]),
    ];
    four_at_a_time(cases, |(scenario, fate, env)| {
        let (others, victim) = run(scenario, fate, TIMEOUT, env);
        assert_eq!(victim.status.success(), fate == "leaves", "{scenario}: {}", victim.text());
        for ended in &others {
            let error = error_of(ended);
            assert!(names_the_victim(error, &[Fault::Unreachable]), "{scenario}, {fate}: {error}");
            let text = error.strip_prefix("ERROR after ").unwrap().split(' ').next().unwrap();
            let waited: u32 = text.parse().unwrap();
            assert!(waited < 1000 * TIMEOUT, "{scenario}, {fate}: {error}");
        }
    });
}

#[test]
fn a_rank_that_hangs_or_comes_late_is_named_after_the_timeout() {
    let cases = [
        ("small", "late", [("HOPBINE_DRIVE", "inline")]),
        ("gates", "late", [("HOPBINE_DRIVE", "workers")]),
        ("ring", "stopped", [("HOPBINE_TORUS", "6")]),
        ("gates", "stopped", [("HOPBINE_TORUS", "3x2")]),
        ("tested", "stopped", [("HOPBINE_DRIVE", "workers")]),
    ];
    four_at_a_time(cases, |(scenario, fate, env)| {
        let env = [env[0], ("HOPBINE_ON_TIMEOUT", "fail")];
        let (others, victim) = run(scenario, fate, 4, &env);
        for ended in &others {
            let error = error_of(ended);
            assert!(names_the_victim(error, &[Fault::Absent]), "{scenario}, {fate}: {error}");
        }
        if fate == "late" {
            // The late rank learns that the other ranks have given up.
            let error = error_of(&victim);
            assert!(error.contains("Lost") && names_the_victim(error, &[Fault::Absent]), "{error}");
        }
    });
}

#[test]
fn a_rank_in_another_call_is_named() {
    let (others, victim) = run("gates_and_plan", "other call", 4, &[]);
    for ended in &others {
        let error = error_of(ended);
        assert!(names_the_victim(error, &[Fault::Elsewhere]), "{error}");
    }
    // The victim finds another rank at the gates, or is told that it is at fault.
    assert!(error_of(&victim).contains("Elsewhere"), "{}", victim.text());
}

/// Asks for all ranks that are gone, not only for the first one that was noticed.
fn missing() {
    let mut world = init().unwrap();
    if [1, VICTIM].contains(&world.communicator().rank()) {
        std::process::exit(0);
    }
    let error = small(world.communicator()).unwrap_err();
    println!("ERROR {error:?}");
    println!("MISSING {:?}", world.missing().unwrap());
}

#[test]
fn all_that_are_missing_can_be_asked_for() {
    let (others, _) = run("missing", "", 5, &[]);
    for (index, ended) in others.iter().enumerate().filter(|(index, _)| *index != 1) {
        let error = error_of(ended);
        assert!(error.contains("Unreachable") || error.contains("peer: Some("), "{index}: {error}");
        assert!(ended.stdout.contains("MISSING [1, 2]"), "{}", ended.text());
    }
}

/// Rank 0 skips a call in which the other ranks wait for it, and waits for them at the end.
fn ends_early() {
    let world = init().unwrap();
    let comm = world.communicator();
    if comm.rank() != 0 {
        let error = small(comm).unwrap_err();
        assert!(matches!(error, Error::Lost { blame, .. } if blame.rank == 0), "{error}");
        return;
    }
    let error = world.finish().unwrap_err();
    assert!(matches!(error, Error::Ending { .. }), "{error}");
    assert!(error.to_string().starts_with("at the end: rank 0 waited"), "{error}");
}

#[test]
fn who_ends_without_the_others_is_told() {
    four_at_a_time(["emu", "shm"], |backend| {
        ranks(3, "ends_early", &[("HOPBINE_BACKEND", backend), ("HOPBINE_TIMEOUT", "2")]);
    });
}

/// One rank cannot start its worker threads.
fn workerless() {
    if std::env::var("HOPBINE_RANK").unwrap() == "1" {
        hopbine_testing::forbidden::new_threads().unwrap();
    }
    let error = init().map(drop).unwrap_err().to_string();
    let reason = "rank 1: start-up failed: starting a worker thread: ";
    assert!(error.contains(reason), "{error}");
}

#[test]
fn no_rank_joins_a_world_that_a_rank_cannot_join() {
    four_at_a_time(["emu", "shm"], |backend| {
        ranks(3, "workerless", &[("HOPBINE_BACKEND", backend), ("HOPBINE_DRIVE", "workers")]);
    });
}

/// Ends the first thread of this process.
fn end_first_thread() {
    extern "C" fn end_thread(_: libc::c_int) {
        // SAFETY: ends the calling thread.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    let handler = end_thread as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler allocates nothing; the first thread of the process only waits.
    unsafe {
        let process = libc::getpid();
        assert_ne!(libc::signal(libc::SIGUSR1, handler), libc::SIG_ERR);
        assert_eq!(libc::syscall(libc::SYS_tgkill, process, process, libc::SIGUSR1), 0);
    }
    wait_until("the end of the first thread", || {
        Stat::of(std::process::id()).unwrap().expect("is this process").state == b'Z'
    });
}

/// The other threads of each rank go on after its first thread has ended, or start the world.
fn headless() {
    let goes_on = || {
        let ends_before = std::env::var(FATE).unwrap() == "before";
        if ends_before {
            end_first_thread();
        }
        let world = init().unwrap();
        if !ends_before {
            end_first_thread();
        }
        // No rank reads the memory of one whose first thread has not ended.
        world.communicator().barrier().unwrap();
        let mut vector = vec![1u64; 1 << 19];
        for _ in 0..3 {
            world.communicator().with(by_plan()).allreduce_in_place(&mut vector, Op::Max).unwrap();
        }
        assert_eq!(vector, vec![1; 1 << 19]);
        world.finish().unwrap();
        println!("went on");
        std::process::exit(0);
    };
    std::thread::spawn(goes_on).join().unwrap();
}

#[test]
fn a_rank_lives_without_its_first_thread() {
    for fate in ["after", "before"] {
        let variables = [("HOPBINE_BACKEND", "shm"), (FATE, fate)];
        let (_dir, ranks) = start(3, "headless", &variables);
        for rank in wait(ranks) {
            let is_well = rank.status.success() && rank.stdout.contains("went on");
            assert!(is_well, "{fate}: {}", rank.text());
        }
    }
}
