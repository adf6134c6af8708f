//! Limits of the host: memory, threads, processes, open files.
//!
//! Emulated ranks and the checker run in one process. If a request needs more than the host has, the host kills the
//! process without a message. Therefore the command compares requests with the limits first.

use std::path::Path;

use hopbine_torus::Shape;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::CliError;

/// Refuses work that needs more memory than is available.
///
/// # Errors
/// [`CliError::Memory`], with advice.
pub fn check_memory(what: String, needed: u64, instead: &'static str) -> Result<(), CliError> {
    match available_memory() {
        Some(available) if needed > available => Err(CliError::Memory {
            what,
            needed_mib: needed >> 20,
            available_mib: available >> 20,
            instead,
        }),
        _ => Ok(()),
    }
}

/// Bytes that plans need while they are generated, for each node of the shape's longest dimension; measured on rings
/// of a million nodes.
const PER_NODE_OF_A_RING: u64 = 700;
/// Bytes for each rank if the plans of all ranks are needed.
const PER_RANK: u64 = 1000;

/// Refuses shapes whose plans, of one rank or of `all` ranks, need more memory than is available.
///
/// # Errors
/// [`CliError::Memory`].
pub fn check_plans(shape: &Shape, all: bool) -> Result<(), CliError> {
    let longest = shape.sizes().into_iter().max().map_or(1, u64::from);
    let ranks = if all { u64::from(shape.n_ranks()) } else { 0 };
    let what = format!("plans for {shape}");
    let needed = longest * PER_NODE_OF_A_RING + ranks * PER_RANK;
    check_memory(what, needed, "use a smaller torus, or one of more dimensions")
}

/// Bytes that this process can allocate, if the host reports it: the minimum of free memory and the limits of control
/// groups and `ulimit -v`.
fn available_memory() -> Option<u64> {
    let limits = [
        control_groups("memory", &["memory.max", "memory.limit_in_bytes"]),
        getrlimit(Resource::As).current,
    ];
    limits.into_iter().chain([free_memory()]).flatten().min()
}

fn free_memory() -> Option<u64> {
    Some(meminfo("MemAvailable")? * 1024)
}

/// A number of `/proc/meminfo` in the kernel's unit: KiB, except for counts.
pub fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Threads and processes that are left for other programs, at most half of a limit.
const OTHER_TASKS: u64 = 200;
/// Memory mappings of a thread (stack, guard and others), as measured with 1024 threads.
const MAPS_PER_THREAD: u64 = 5;
/// Memory mappings of the rest of this process.
const OTHER_MAPS: u64 = 2000;

/// Refuses more threads in this process than the host allows.
///
/// # Errors
/// [`CliError::Host`], naming the limit.
pub fn check_threads(what: &str, threads: u64, instead: &'static str) -> Result<(), CliError> {
    check_tasks(what, threads, instead)?;
    let maps = number("/proc/sys/vm/max_map_count");
    let most = maps.map(|maps| maps.saturating_sub(OTHER_MAPS) / MAPS_PER_THREAD);
    within(what, "threads", threads, most, "vm.max_map_count", instead)
}

/// Refuses more threads and processes than the host allows.
///
/// # Errors
/// [`CliError::Host`], naming the limit.
pub fn check_tasks(what: &str, tasks: u64, instead: &'static str) -> Result<(), CliError> {
    let limits = [
        ("kernel.pid_max", number("/proc/sys/kernel/pid_max")),
        ("kernel.threads-max", number("/proc/sys/kernel/threads-max")),
        ("pids.max of the control group", control_groups("pids", &["pids.max"])),
        ("ulimit -u", getrlimit(Resource::Nproc).current),
    ];
    for (name, limit) in limits {
        let most = limit.map(tasks_within);
        within(what, "threads and processes", tasks, most, name, instead)?;
    }
    Ok(())
}

fn tasks_within(limit: u64) -> u64 {
    limit - OTHER_TASKS.min(limit / 2)
}

/// Refuses more open files than this process may have, after raising its own limit as far as permitted.
///
/// # Errors
/// [`CliError::Host`], naming the limit.
pub fn check_files(what: &str, files: u64, instead: &'static str) -> Result<(), CliError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|most| most < files) {
        let current = Some(maximum.map_or(files, |most| most.min(files)));
        // If this fails, the unchanged limit is checked below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
    within(what, "open files", files, getrlimit(Resource::Nofile).current, "ulimit -n", instead)
}

fn within(
    what: &str,
    things: &'static str,
    needed: u64,
    most: Option<u64>,
    limit: &'static str,
    instead: &'static str,
) -> Result<(), CliError> {
    match most {
        Some(most) if needed > most => {
            let what = what.to_owned();
            Err(CliError::Host { what, things, needed, most, limit, instead })
        }
        _ => Ok(()),
    }
}

fn number(file: impl AsRef<Path>) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The smallest value of a limit, in the files of these names, in this process's control groups and their ancestors.
fn control_groups(controller: &str, files: &[&str]) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    least_of_all(Path::new("/sys/fs/cgroup"), &groups, controller, files)
}

/// As [`control_groups`], for the groups of `/proc/self/cgroup` below `root`. Version 2 has one tree of groups, without
/// the name of a controller; version 1 one for each controller, and systems with both have the limits there.
fn least_of_all(root: &Path, groups: &str, controller: &str, files: &[&str]) -> Option<u64> {
    let trees = groups.lines().filter_map(|line| {
        let (tree, group) = line.split_once(':')?.1.split_once(':')?;
        (tree.is_empty() || tree == controller).then(|| (root.join(tree), group))
    });
    trees
        .flat_map(|(tree, group)| files.iter().filter_map(move |file| least(&tree, group, file)))
        .min()
}

/// The smallest number in the files of that name from `group` up to `root`; `max` means no limit.
fn least(root: &Path, group: &str, file: &str) -> Option<u64> {
    let group = root.join(group.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(root));
    groups.filter_map(|group| number(group.join(file))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_numbers_for_them_are_refused() {
        assert!(check_threads("nothing", 1, "").is_ok());
        let error = check_threads("all", u64::MAX, "use less").unwrap_err().to_string();
        assert!(error.starts_with("all need 18446744073709551615 threads"), "{error}");
        assert!(error.ends_with("; use less"), "{error}");
        assert!(check_files("nothing", 1, "").is_ok());
    }

    #[test]
    fn a_low_limit_still_allows_some_tasks() {
        assert_eq!([2, 200, 4096].map(tasks_within), [1, 100, 3896]);
    }

    #[test]
    fn the_least_limit_of_all_control_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("job/step");
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(least(root.path(), "/job/step", "memory.max"), None);
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(least(root.path(), "/job/step", "memory.max"), None);
        std::fs::write(root.path().join("job/memory.max"), "4096\n").unwrap();
        assert_eq!(least(root.path(), "/job/step", "memory.max"), Some(4096));
        std::fs::write(inner.join("memory.max"), "512\n").unwrap();
        assert_eq!(least(root.path(), "/job/step", "memory.max"), Some(512));
        assert_eq!(least(root.path(), "/job", "memory.max"), Some(4096));
        assert_eq!(least(root.path(), "/", "memory.max"), None);
    }

    #[test]
    fn limits_count_in_both_versions_of_control_groups() {
        let root = tempfile::tempdir().unwrap();
        let groups = "9:pids:/job\n4:memory:/job\n1:name=systemd:/job\n0::/job\n";
        let limit = |controller| {
            let files = ["pids.max", "memory.max", "memory.limit_in_bytes"];
            least_of_all(root.path(), groups, controller, &files)
        };
        for (file, value) in [
            ("memory/job/memory.limit_in_bytes", 4096),
            ("pids/pids.max", 7),
            ("job/memory.max", 512),
        ] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{value}\n")).unwrap();
            let controller = if file.starts_with("pids") { "pids" } else { "memory" };
            assert_eq!(limit(controller), Some(value));
        }
    }

    #[test]
    fn what_no_host_has_is_refused() {
        assert!(check_memory("nothing".to_owned(), 0, "").is_ok());
        if available_memory().is_some() {
            let error = check_memory("all".to_owned(), u64::MAX, "use less").unwrap_err();
            assert!(error.to_string().ends_with("are available; use less"), "{error}");
        }
    }
}
