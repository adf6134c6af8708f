//! Permission for other ranks to access this process's memory. Yama with `ptrace_scope` 1 restricts this access to
//! the process's ancestors, to one process that it names, and to the named process's descendants. Ranks name the
//! nearest common ancestor of all ranks.
//!
//! A process has one such name, which it cannot read, and other libraries set it as well: Open MPI and UCX name all
//! processes. So where an MPI may be in the process, ranks name all processes, too, and a name is never taken back:
//! the other library's reads would fail.

use std::sync::{Mutex, PoisonError};

use rustix::process::{PTracer, Pid, set_ptracer};

use crate::host::proc_pid;
use crate::launcher::Launched;
use crate::process::Stat;
use crate::variables::{Lookup, from_environment};

/// The process that this one has named; `Some(None)` for all processes of this user.
static NAMED: Mutex<Option<Option<u32>>> = Mutex::new(None);

/// Returns how far Yama restricts access to a process's memory (`kernel.yama.ptrace_scope`): 0 not at all, 1 to its
/// ancestors and processes that it names, 2 to administrators, 3 to no process; `None` without Yama.
pub fn yama_scope() -> Option<u32> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    scope.trim().parse().ok()
}

/// Permits the processes with these numbers to access this process's memory, until its end. Does nothing where that
/// would change nothing: without Yama, and with a `ptrace_scope` other than 1.
pub fn permit_access(others: &[u32]) {
    if yama_scope() != Some(1) {
        return;
    }
    let wanted = if may_have_mpi(&from_environment) { None } else { common_ancestor(others) };
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let all = named_for_both(*named, wanted);
    *named = Some(all);
    let pid = all.and_then(|pid| Pid::from_raw(pid as i32));
    // The system has no reason to refuse it; if it did, the ranks would find out that they cannot read.
    let _ = set_ptracer(pid.map_or(PTracer::Any, PTracer::ProcessID));
}

/// Returns the process to name if others have been permitted before.
fn named_for_both(before: Option<Option<u32>>, wanted: Option<u32>) -> Option<u32> {
    wanted.filter(|_| before.is_none_or(|before| before == wanted))
}

/// Whether an MPI may run in this process: a launcher of MPI's or Slurm's has started it, or it has loaded one.
fn may_have_mpi(get: Lookup<'_>) -> bool {
    // SAFETY: looks up a name in the libraries of this process.
    let is_loaded = unsafe { !libc::dlsym(libc::RTLD_DEFAULT, c"MPI_Init".as_ptr()).is_null() };
    is_loaded || Launched::find(get) != Ok(None) || Launched::without_size(get).is_some()
}

/// Returns the nearest common ancestor of this process and all others, where a process counts as its own ancestor;
/// `None` if that is process 1, or cannot be seen.
fn common_ancestor(others: &[u32]) -> Option<u32> {
    let this = std::process::id();
    // A /proc of another PID namespace has other process ids.
    if proc_pid() != Some(this) {
        return None;
    }
    let chain = |process: u32| {
        // Chains are short; the bound prevents an endless loop on a malformed /proc.
        let next = |&process: &u32| {
            let stat = Stat::of(process).ok().flatten();
            stat.map(|stat| stat.parent).filter(|&parent| parent > 1)
        };
        std::iter::successors(Some(process), next).take(64)
    };
    let mut common: Vec<u32> = chain(this).collect();
    for &other in others {
        let theirs: Vec<u32> = chain(other).collect();
        let met = common.iter().position(|process| theirs.contains(process))?;
        common.drain(..met);
    }
    common.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, kill_process};
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_nearest_common_ancestor_is_named_also_behind_shells() {
        // Behind two shells, neither of which execs the program that it starts.
        let mut children: Vec<_> = (0..2)
            .map(|_| {
                let script = "sh -c 'sleep 100 & echo $!; wait'; :";
                let mut command = Command::new("sh");
                command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        let ranks: Vec<u32> = children
            .iter_mut()
            .map(|child| {
                let mut line = String::new();
                BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
                line.trim().parse().unwrap()
            })
            .collect();
        let this = std::process::id();
        assert_eq!(common_ancestor(&ranks), Some(this));
        assert_eq!(common_ancestor(&[]), Some(this));
        assert_eq!(common_ancestor(&[this, ranks[0]]), Some(this));
        for (rank, child) in ranks.iter().zip(&mut children) {
            // A descendant of this test, which its parent has not reaped.
            kill_process(Pid::from_raw(*rank as i32).unwrap(), Signal::KILL).unwrap();
            child.wait().unwrap();
        }
        assert_eq!(common_ancestor(&[u32::MAX]), None);
    }

    #[test]
    fn one_is_named_for_all_and_all_for_several() {
        assert_eq!(named_for_both(None, Some(7)), Some(7));
        assert_eq!(named_for_both(Some(Some(7)), Some(7)), Some(7));
        for (before, wanted) in
            [(Some(Some(7)), Some(8)), (Some(Some(7)), None), (Some(None), Some(7)), (None, None)]
        {
            assert_eq!(named_for_both(before, wanted), None);
        }
    }

    #[test]
    fn a_launcher_may_have_started_a_program_with_mpi() {
        let with = |variables: &[(&str, &str)]| {
            let find = |name: &str| variables.iter().find(|(other, _)| *other == name);
            may_have_mpi(&|name| find(name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(!with(&[]) && !with(&[("HOPBINE_RANK", "0"), ("HOPBINE_SIZE", "2")]));
        for variables in [
            &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")][..],
            &[("PMI_RANK", "0"), ("PMI_SIZE", "not a number")],
            &[("PMIX_RANK", "0")],
        ] {
            assert!(with(variables), "{variables:?}");
        }
    }
}
