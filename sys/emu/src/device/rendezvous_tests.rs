//! The other user: what he may have prepared is refused, and nothing of it is changed.

use super::*;
use crate::own::private_dir;
use crate::own::user;
use proptest::prelude::*;
use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const SIZE: usize = 2;

fn plan() -> Plan {
    Plan::new(SIZE, SIZE)
}

fn meeting(path: &Path) -> Meeting {
    Meeting { path: path.to_path_buf(), is_ours: false, timeout: Duration::from_secs(5) }
}

fn try_open(path: &Path) -> Result<Opened, String> {
    open(&meeting(path), SIZE, plan()).map_err(|e| e.to_string())
}

fn refused(path: &Path) -> String {
    match try_open(path) {
        Ok(_) => panic!("{} was taken", path.display()),
        Err(text) => text,
    }
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// The record of a job that waits for its second rank.
fn record(path: &Path) -> Record {
    Record::read(&std::fs::read_to_string(path).expect("was written")).expect("is ours")
}

#[test]
fn ranks_share_memory_that_nobody_can_cut() {
    let dir = dir();
    let path = dir.path().join("meet");
    let (first, second) = (try_open(&path).unwrap(), try_open(&path).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let header = |opened: &Opened| {
        let header: &Header = opened.arena.at(crate::arena::Off::new(0));
        header.attached.fetch_add(1, Ordering::AcqRel)
    };
    assert_eq!((header(&first), header(&second)), (0, 1));
    let about = second.memory.metadata().unwrap();
    assert_eq!((about.mode() & 0o777, about.nlink()), (0o600, 0));
    assert!(second.memory.set_len(10).is_err(), "memory that shrinks kills whoever touches it");
    assert!(second.memory.set_len(plan().len * 2).is_err());
}

#[test]
fn a_file_that_a_job_has_left_is_used_again() {
    let dir = dir();
    let path = dir.path().join("meet");
    let first = try_open(&path).unwrap();
    let old = record(&path);
    drop(first);
    let again = try_open(&path).unwrap();
    assert_ne!(record(&path).token, old.token);
    // The descriptor of the first may by now be that of something else.
    for other in ["/dev/null", "/proc/self/exe"] {
        let file = File::open(other).unwrap();
        let stale = Record { fd: file.as_raw_fd() as u32, ..record(&path) };
        assert!(follow(&stale, SIZE, plan()).unwrap().is_none(), "{other}");
    }
    let foreign = Record { token: 5, ..record(&path) };
    assert!(follow(&foreign, SIZE, plan()).unwrap().is_none(), "another memory");
    drop(again);
}

#[test]
fn a_file_that_names_another_file_leaves_that_alone() {
    let dir = dir();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o600)).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&victim).unwrap();
    let path = dir.path().join("meet");
    let prepared = Record {
        host: host(),
        ranks: SIZE,
        bytes: 8,
        token: 1,
        pid: std::process::id(),
        fd: file.as_raw_fd() as u32,
    };
    std::fs::write(&path, prepared.write()).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let opened = try_open(&path).expect("as if the file were empty");
    assert_ne!(record(&path), prepared);
    drop(opened);
    // Also memory without a name that is not sealed, as another user's program might pass on.
    // SAFETY: a name that ends in zero; the descriptor is new.
    let loose = unsafe {
        let fd = libc::memfd_create(c"x".as_ptr(), libc::MFD_ALLOW_SEALING);
        libc::fchmod(fd, 0o600);
        File::from_raw_fd(fd)
    };
    loose.set_len(plan().len).unwrap();
    let prepared = Record { bytes: plan().len, fd: loose.as_raw_fd() as u32, ..prepared };
    assert!(follow(&prepared, SIZE, plan()).unwrap().is_none(), "it might shrink");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn links_and_other_things_are_not_followed() {
    let dir = dir();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("victim"), "").unwrap();
    symlink(at("victim"), at("link")).unwrap();
    assert!(refused(&at("link")).contains("symbolic link"));
    symlink(at("nothing"), at("dangling")).unwrap();
    assert!(refused(&at("dangling")).contains("symbolic link"));
    assert!(!at("nothing").exists());
    std::fs::set_permissions(at("victim"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::hard_link(at("victim"), at("second name")).unwrap();
    assert!(refused(&at("second name")).contains("hard links"));
    assert_eq!(std::fs::metadata(at("victim")).unwrap().len(), 0);
    let pipe = std::ffi::CString::new(at("pipe").to_str().unwrap()).unwrap();
    // SAFETY: a path that ends in zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    assert!(refused(&at("pipe")).contains("no regular file"));
    assert!(refused(dir.path()).contains("opened"), "a directory");
    std::fs::write(at("shared"), "").unwrap();
    std::fs::set_permissions(at("shared"), PermissionsExt::from_mode(0o666)).unwrap();
    assert!(refused(&at("shared")).contains("written by others"));
}

/// Only root can make a file that belongs to another; as root, the tests do.
#[test]
fn another_users_file_is_refused() {
    let dir = dir();
    let path = dir.path().join("his");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    if user() == 0 {
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        assert!(refused(&path).contains("another user"));
    } else {
        // The system's own files are another user's.
        let text = refused(Path::new("/etc/hostname"));
        assert!(text.contains("cannot be opened") || text.contains("another user"), "{text}");
    }
}

#[test]
fn junk_is_refused_and_left_as_it_is() {
    let dir = dir();
    let path = dir.path().join("meet");
    let ours = Record { host: host(), ranks: 2, bytes: 1, token: 1, pid: 1, fd: 1 };
    let elsewhere = Record { host: "elsewhere".into(), ..ours };
    for (junk, wanted) in [
        (b"something else\n".to_vec(), "fresh or empty file"),
        (vec![0xff; 100], "fresh or empty file"),
        (vec![b'x'; 1 << 20], "fresh or empty file"),
        (format!("{MAGIC}\n").into_bytes(), "fresh or empty file"),
        (elsewhere.write().into_bytes(), "another host"),
    ] {
        std::fs::write(&path, &junk).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let text = refused(&path);
        assert!(text.contains(wanted), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), junk);
    }
}

#[test]
fn a_job_of_another_size_is_told() {
    let dir = dir();
    let path = dir.path().join("meet");
    let _first = try_open(&path).unwrap();
    let Err(error) = open(&meeting(&path), 3, Plan::new(3, 3)) else { panic!("joined") };
    assert!(error.to_string().contains("a job of 2 ranks, this is one of 3"), "{error}");
}

#[test]
fn the_directory_for_launched_ranks_is_private() {
    let dir = dir();
    let made = private_dir(dir.path()).unwrap();
    assert_eq!(std::fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
    assert_eq!(private_dir(dir.path()).unwrap(), made);
    std::fs::set_permissions(&made, PermissionsExt::from_mode(0o755)).unwrap();
    assert!(private_dir(dir.path()).is_err());
    std::fs::remove_dir(&made).unwrap();
    symlink(dir.path(), &made).unwrap();
    assert!(private_dir(dir.path()).is_err(), "a link that somebody has prepared");
}

proptest! {
    /// What was written is read; of anything else nothing comes but None.
    #[test]
    fn records_come_back(ranks: usize, bytes: u64, token: u64, pid in 1u32..=i32::MAX as u32, fd: u32) {
        let record = Record { host: "a-b-c".into(), ranks, bytes, token, pid, fd };
        let text = record.write();
        prop_assert!((text.len() as u64) < LONGEST);
        prop_assert_eq!(Record::read(&text), Some(record));
        for cut in 0..text.len() - 1 {
            prop_assert_eq!(Record::read(&text[..cut]).filter(|r| r.write() == text), None);
        }
    }

    #[test]
    fn no_text_does_harm(text in "\\PC{0,200}", lines in prop::collection::vec("[0-9a-f -]{0,20}", 0..6)) {
        let _ = Record::read(&text);
        let _ = Record::read(&format!("{MAGIC}\n{}", lines.join("\n")));
    }
}

#[test]
fn seeds_do_no_harm() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/rendezvous");
    let files = std::fs::read_dir(seeds).expect("seeds");
    let seeds = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    assert!(seeds.map(|seed| play(&seed)).count() > 0);
}
