//! Permission for other ranks to access this process's memory. Yama with `ptrace_scope` 1 restricts this access to
//! the process's ancestors, to one process that it names, and to the named process's descendants. Ranks name the
//! nearest common ancestor of all ranks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{PTracer, Pid, set_ptracer};

use crate::host::proc_pid;
use crate::process::Stat;

/// Processes named by the permissions in force; `None` for all processes of this user.
static GRANTED: Mutex<Vec<Option<u32>>> = Mutex::new(Vec::new());

/// A permission, which is in force as long as this value lives.
#[derive(Debug)]
#[must_use = "others may reach this process's memory only as long as this value lives"]
pub struct PtracePermission(Option<u32>);

/// Returns how far Yama restricts access to a process's memory (`kernel.yama.ptrace_scope`): 0 not at all, 1 to its
/// ancestors and processes that it names, 2 to administrators, 3 to no process; `None` without Yama.
pub fn yama_scope() -> Option<u32> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    scope.trim().parse().ok()
}

impl PtracePermission {
    /// Gives permission to the processes with these numbers. `None` if that would change nothing: without Yama, and
    /// with a `ptrace_scope` other than 1.
    pub fn for_processes(others: &[u32]) -> Option<PtracePermission> {
        (yama_scope() == Some(1)).then(|| PtracePermission::of(common_ancestor(others)))
    }

    fn of(named: Option<u32>) -> PtracePermission {
        let mut all = granted();
        all.push(named);
        set_tracer(&all);
        PtracePermission(named)
    }
}

impl Drop for PtracePermission {
    fn drop(&mut self) {
        let mut all = granted();
        let own = all.iter().position(|named| *named == self.0);
        own.map(|at| all.swap_remove(at));
        set_tracer(&all);
    }
}

fn granted() -> MutexGuard<'static, Vec<Option<u32>>> {
    GRANTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names one process for all permissions; all processes, if the permissions name several.
fn set_tracer(all: &[Option<u32>]) {
    // Without Yama the call fails, and has no effect.
    let _ = set_ptracer(tracer(all));
}

/// Returns the argument of the system call for these permissions.
fn tracer(all: &[Option<u32>]) -> PTracer {
    let Some((first, rest)) = all.split_first() else { return PTracer::None };
    let pid = first.filter(|_| rest.iter().all(|named| named == first));
    pid.and_then(|pid| Pid::from_raw(pid as i32)).map_or(PTracer::Any, PTracer::ProcessID)
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
    fn one_is_named_for_all_leaves_and_nobody_after_the_last() {
        assert!(matches!(tracer(&[]), PTracer::None));
        let seven = tracer(&[Some(7), Some(7)]);
        assert!(matches!(seven, PTracer::ProcessID(pid) if pid.as_raw_nonzero().get() == 7));
        for several in [&[Some(7), Some(8)][..], &[Some(7), None], &[None]] {
            assert!(matches!(tracer(several), PTracer::Any));
        }
        let before = granted().len();
        let (one, other) = (PtracePermission::of(Some(7)), PtracePermission::of(None));
        drop(one);
        assert_eq!(*granted(), [None]);
        drop(other);
        assert_eq!(granted().len(), before);
    }
}
