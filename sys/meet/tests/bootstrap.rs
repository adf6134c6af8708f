//! The exchange among threads, through a file and in memory, with the same expectations.

use std::path::Path;
use std::thread;
use std::time::Duration;

use hopbine_meet::{Bootstrap, BootstrapError, Exchange, LocalExchange, Phase, Records};
use rustix::fs::{CWD, FileType, Mode, mknodat};

const TIMEOUT: Duration = Duration::from_secs(60);

/// For tests of the timeout itself.
const SHORT: Duration = Duration::from_secs(1);

/// Returns the result of `attempt` with a timeout that is long enough for the ranks that exist to meet. On a busy
/// machine [`SHORT`] is too short, and `attempt` returns `None`.
fn in_time<R>(attempt: impl Fn(Duration) -> Option<R>) -> R {
    let mut timeouts = (0..4).map(|n| SHORT * 4u32.pow(n));
    timeouts.find_map(attempt).expect("the ranks meet")
}

/// Runs `body` as every rank, each in a thread; returns the ranks' results.
fn ranks<R: Send>(size: usize, body: impl Fn(usize) -> R + Sync) -> Vec<R> {
    hopbine_testing::ranks::ranks(0..size, |rank, _| body(rank))
}

fn by_file(path: &Path, rank: usize, size: usize) -> Bootstrap {
    Bootstrap::join(path, (rank, size), TIMEOUT, false).expect("everyone comes")
}

/// Two ranks that have met through files of a directory.
fn two(body: impl Fn(usize, Bootstrap, &Path) + Sync) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    ranks(2, |rank| body(rank, by_file(&path, rank, 2), dir.path()));
}

/// Checks that every exchange must pass.
fn check(x: &mut dyn Exchange) {
    let (rank, size) = (x.rank(), x.size());
    // Different lengths: empty messages, and messages longer than a record of the file.
    for scale in [0, 1, 700, 5000] {
        let message = |r: usize| vec![(r * 7 + scale) as u8; r * scale];
        let want: Vec<_> = (0..size).map(message).collect();
        assert_eq!(
            x.allgather(&message(rank)).expect("everyone takes part"),
            want.iter().collect::<Records>()
        );
    }
    // Many short rounds: no rank may see a neighbour's message of an earlier or later round.
    for round in 0..30u64 {
        let value = |r: usize| (round << 8 | r as u64).to_le_bytes().to_vec();
        let want: Vec<_> = (0..size).map(value).collect();
        assert_eq!(
            x.allgather(&value(rank)).expect("everyone takes part"),
            want.iter().collect::<Records>()
        );
    }
    x.barrier().expect("everyone takes part");
}

#[test]
fn threads_exchange_in_memory() {
    for size in [1, 2, 5] {
        let group = LocalExchange::group(size, TIMEOUT);
        hopbine_testing::ranks::ranks(group, |_, mut x| check(&mut x));
    }
}

#[test]
fn ranks_exchange_through_a_file_and_what_it_held_before_does_no_harm() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    // Reuses one file, also with another number of ranks.
    for size in [1, 4, 4, 3] {
        ranks(size, |rank| check(&mut by_file(&path, rank, size)));
    }
    std::fs::write(&path, vec![0xa5; 100_000]).expect("can be written");
    std::fs::write(dir.path().join("meet.all"), vec![0xa5; 100_000]).expect("can be written");
    ranks(2, |rank| check(&mut by_file(&path, rank, 2)));
}

/// Ranks meet again immediately, before other ranks have read the last answer.
#[test]
fn ranks_meet_again_at_the_same_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    ranks(3, |rank| {
        for round in 0..30u8 {
            let mut x = by_file(&path, rank, 3);
            let all = x.allgather(&[round]).expect("everyone takes part");
            assert_eq!(all, [[round]; 3].iter().collect());
        }
    });
}

/// Files that another user may have prepared are refused, and not changed.
#[test]
fn files_of_others_are_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    let refused = |path: &Path| match Bootstrap::join(path, (0, 1), TIMEOUT, false) {
        Err(e @ BootstrapError::File { .. }) => e.to_string(),
        other => panic!("{other:?}"),
    };
    std::fs::write(at("victim"), "precious").expect("can be written");
    symlink(at("victim"), at("link")).expect("can be made");
    assert!(refused(&at("link")).contains("symbolic link"));
    symlink(at("nothing"), at("dangling")).expect("can be made");
    assert!(refused(&at("dangling")).contains("symbolic link"));
    assert!(!at("nothing").exists());
    std::fs::hard_link(at("victim"), at("second name")).expect("can be made");
    assert!(refused(&at("second name")).contains("hard links"));
    std::fs::write(at("open"), "").expect("can be written");
    std::fs::set_permissions(at("open"), PermissionsExt::from_mode(0o666)).expect("can be set");
    assert!(refused(&at("open")).contains("written by others"));
    refused(dir.path());
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("can be made");
    assert!(refused(&at("pipe")).contains("not a regular file"));
    // Rank 0's file next to a valid one.
    symlink(at("victim"), at("good.all")).expect("can be made");
    assert!(refused(&at("good")).contains("symbolic link"));
    assert_eq!(std::fs::read(at("victim")).expect("is there"), b"precious");
    // Created files belong to this user only.
    drop(by_file(&at("made"), 0, 1));
    for name in ["made", "made.all"] {
        assert_eq!(std::fs::metadata(at(name)).expect("is there").mode() & 0o777, 0o600);
    }
}

/// Files are truncated while ranks meet: no rank crashes.
#[test]
fn files_that_shrink_end_in_a_missing_rank() {
    two(|rank, mut x, dir| {
        if rank == 0 {
            x.set_timeout(SHORT);
            assert!(matches!(x.barrier(), Err(BootstrapError::Missing { .. })));
        } else {
            for name in ["meet", "meet.all"] {
                let file = std::fs::OpenOptions::new().write(true).open(dir.join(name));
                file.expect("is there").set_len(100).expect("can be cut");
            }
        }
    });
}

#[test]
fn a_late_rank_is_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    for _ in 0..2 {
        ranks(3, |rank| {
            // In the second round the other ranks meanwhile see the old records of this rank.
            if rank == 1 {
                thread::sleep(Duration::from_millis(100));
            }
            check(&mut by_file(&path, rank, 3));
        });
    }
}

#[test]
fn a_rank_that_never_appears_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    let errors = in_time(|timeout| {
        let join =
            |i| Bootstrap::join(&path, (i * 2, 3), timeout, false).expect_err("rank 1 is absent");
        let errors = ranks(2, join);
        let met = |e: &_| matches!(e, BootstrapError::Missing { missing, .. } if missing.len() < 2);
        errors.iter().all(met).then_some(errors)
    });
    for e in errors {
        let BootstrapError::Missing { missing, phase, size, .. } = &e else {
            panic!("{e}");
        };
        assert_eq!((missing.as_slice(), *phase, *size), ([1].as_slice(), Phase::Arrival, 3));
        assert!(e.to_string().contains("rank(s) 1 of 3"), "{e}");
    }
}

#[test]
fn a_rank_that_stops_taking_part_is_named_with_the_exchange() {
    two(|rank, mut x, _| {
        x.barrier().expect("both take part");
        if rank == 0 {
            x.set_timeout(SHORT);
            match x.barrier() {
                Err(BootstrapError::Missing { missing, phase, .. }) => {
                    assert_eq!((missing, phase), (vec![1], Phase::Exchange(2)));
                }
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn ranks_that_disagree_on_their_number_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    let errors = in_time(|timeout| {
        let join =
            |r| Bootstrap::join(&path, (r, [2, 3][r]), timeout, false).expect_err("2 is not 3");
        let errors = ranks(2, join);
        let met = |e: &_| matches!(e, BootstrapError::Missing { other_size: Some(_), .. });
        errors.iter().all(met).then_some(errors)
    });
    assert!(errors[0].to_string().contains("HOPBINE_SIZE=3"), "{}", errors[0]);
    assert!(errors[1].to_string().contains("HOPBINE_SIZE=2"), "{}", errors[1]);
}

/// If two processes have the same rank, the process whose hello is overwritten reports it.
#[test]
fn a_rank_that_comes_twice_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    for rank in [0, 1] {
        let errors = in_time(|timeout| {
            let errors =
                ranks(2, |_| Bootstrap::join(&path, (rank, 2), timeout, false).expect_err("alone"));
            let is_twice = |e: &_| matches!(e, BootstrapError::Twice { rank: r, .. } if *r == rank);
            (errors.iter().filter(|e| is_twice(e)).count() == 1).then_some(errors)
        });
        assert!(errors.iter().any(|e| e.to_string().contains("rank 0 of 2") || rank == 1));
    }
}

/// The files that ranks of one launcher create are removed, whether the ranks have met or not.
#[test]
fn files_of_one_job_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("meet");
    let left = || std::fs::read_dir(dir.path()).expect("is there").count();
    ranks(3, |rank| {
        check(&mut Bootstrap::join(&path, (rank, 3), TIMEOUT, true).expect("everyone comes"));
    });
    assert_eq!(left(), 0);
    // Some ranks meet again before rank 0 has removed the files, or while it does.
    let join = |rank| Bootstrap::join(&path, (rank, 3), 20 * SHORT, true).expect("everyone comes");
    ranks(3, |rank| {
        for round in 0..300u16 {
            let message = round.to_le_bytes();
            let all = join(rank).allgather(&message).expect("everyone takes part");
            assert_eq!(all, [message; 3].iter().collect());
        }
    });
    assert_eq!(left(), 0);
    // Rank 1 ends when rank 0 waits for it no longer.
    ranks(2, |rank| {
        let exchange = Bootstrap::join(&path, (rank, 2), TIMEOUT, true).expect("both come");
        if rank == 1 {
            hopbine_testing::processes::wait_until("the files are removed", || left() == 0);
        }
        drop(exchange);
    });
    assert_eq!(left(), 0);
    for absent in 0..3 {
        let errors = ranks(2, |i| {
            let rank = (absent + 1 + i) % 3;
            Bootstrap::join(&path, (rank, 3), SHORT, true).expect_err("one is absent")
        });
        assert!(errors.iter().all(|e| matches!(e, BootstrapError::Missing { .. })), "{errors:?}");
        assert_eq!(left(), 0, "without rank {absent}");
    }
}

#[test]
fn a_rank_of_another_release_is_named_with_both_protocols() {
    const RECORD: usize = 4096;
    let dir = tempfile::tempdir().expect("a directory");
    for (me, other) in [(0, 1), (1, 0)] {
        let path = dir.path().join(format!("meet{me}"));
        // Each rank has three records; the first is its hello.
        let mut bytes = vec![0; 6 * RECORD];
        bytes[3 * RECORD * other..][..8].copy_from_slice(b"hopbine\x09");
        std::fs::write(&path, bytes).expect("a file");
        let error =
            Bootstrap::join(&path, (me, 2), SHORT, false).expect_err("nobody else is there");
        let said = format!("rank {other} uses protocol 9, rank {me} protocol 1: all ranks");
        assert!(error.to_string().contains(&said), "{error}");
        let BootstrapError::Missing { other_protocol, .. } = error else { panic!("{error:?}") };
        assert_eq!(other_protocol, Some((other, 9, 1)));
    }
}

#[test]
fn in_memory_a_missing_and_a_departed_rank_are_named() {
    let mut group = LocalExchange::group(3, Duration::from_millis(100));
    match group[0].allgather(b"x") {
        Err(BootstrapError::Missing { missing, .. }) => assert_eq!(missing, [1, 2]),
        other => panic!("{other:?}"),
    }
    let mut group = LocalExchange::group(2, TIMEOUT);
    drop(group.pop());
    match group[0].barrier() {
        Err(BootstrapError::Gone { gone, .. }) => assert_eq!(gone, 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everyone_agrees_on_who_lacks_something() {
    let group = LocalExchange::group(4, TIMEOUT);
    hopbine_testing::ranks::ranks(group, |_, mut exchange| {
        let rank = exchange.rank();
        let lacking = |reason: &str| Err(format!("{reason} on {rank}"));
        let mine = if rank % 2 == 1 { lacking("no luck") } else { Ok(&[7u8][..]) };
        let refusal = exchange.agree(mine).unwrap().unwrap_err();
        assert_eq!(refusal.to_string(), "rank 1: no luck on 1");
        // The exchange is still in step; contributions may be empty, or differ in length.
        let mine = vec![rank as u8; rank];
        let all = exchange.agree(Ok(&mine)).unwrap().unwrap();
        let expected: [&[u8]; 4] = [&[], &[1], &[2, 2], &[3, 3, 3]];
        assert_eq!(all, expected.iter().collect());
    });
}
