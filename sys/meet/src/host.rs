//! Identity of this host, and this process's number on it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// Returns a number that is equal in two processes exactly if they can share memory: they run under one kernel, in
/// the same PID and user namespaces, and see one `/proc`. (The kernel lets no process open a file of a process in
/// another user namespace.) So each container is a host of its own, unless containers share these namespaces.
pub fn host() -> u64 {
    let spaces = ["/proc/self/ns/pid", "/proc/self/ns/user"].map(std::fs::read_link);
    // A /proc of another PID namespace works among processes that all have it. Without /proc a process can find no
    // other process.
    let apart = match proc_pid() {
        Some(shown) if shown == std::process::id() => None,
        Some(_) => std::fs::metadata("/proc").ok().map(|proc| proc.dev()),
        None => Some(fresh_number()),
    };
    let mut hasher = DefaultHasher::new();
    (kernel(), spaces.map(Result::ok), apart).hash(&mut hasher);
    hasher.finish()
}

/// Returns a number for the running kernel. Containers of one machine share it, as they share its cores.
pub fn kernel() -> u64 {
    let mut hasher = DefaultHasher::new();
    match std::fs::read("/proc/sys/kernel/random/boot_id") {
        Ok(boot) if !boot.is_empty() => boot.hash(&mut hasher),
        _ => rustix::system::uname().nodename().to_bytes().hash(&mut hasher),
    }
    hasher.finish()
}

/// Returns this process's number in `/proc`, which may be that of another PID namespace; `None` without `/proc`.
pub fn proc_pid() -> Option<u32> {
    std::fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// Returns a number that no other run has: the standard library seeds its hashers from the system's entropy.
pub fn fresh_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
