//! Forbids system calls to a process, to test kernels and policies without them.

use std::io;

const ALWAYS: u32 = libc::BPF_JA;
/// For all threads of the process.
const EVERYWHERE: libc::c_ulong = libc::SECCOMP_FILTER_FLAG_TSYNC;

/// Refuses `userfaultfd` with EPERM, to this process and the processes that it starts, irrevocably.
///
/// Allocates nothing, so that it may be called between `fork` and `exec`.
///
/// # Errors
/// If the system has no seccomp filters.
pub fn userfaultfd() -> io::Result<()> {
    forbid(EVERYWHERE, libc::SYS_userfaultfd as u32, ALWAYS, 0)
}

/// Refuses to start threads and processes, to this thread, irrevocably.
///
/// # Errors
/// If the system has no seccomp filters.
pub fn new_threads() -> io::Result<()> {
    forbid(0, libc::SYS_clone3 as u32, ALWAYS, 0)?;
    forbid(0, libc::SYS_clone as u32, ALWAYS, 0)
}

/// Refuses `mprotect` calls that would make memory executable, with the scope of [`userfaultfd`](fn@userfaultfd).
/// Functions can then no longer be patched.
///
/// # Errors
/// If the system has no seccomp filters.
pub fn changed_code() -> io::Result<()> {
    forbid(
        EVERYWHERE,
        libc::SYS_mprotect as u32,
        libc::BPF_JSET | libc::BPF_K,
        libc::PROT_EXEC as u32,
    )
}

/// Refuses a system call if its third argument compares to `value` as `condition` says (a BPF jump condition). `flags`
/// are those of a seccomp filter.
fn forbid(flags: libc::c_ulong, number: u32, condition: u32, value: u32) -> io::Result<()> {
    let step = |code: u32, [yes, no]: [u8; 2], k: u32| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // Offsets in `struct seccomp_data`: 0 is the call's number, 32 the lower half of the third argument. Tests make
    // no calls of other architectures.
    let load = |at: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, [0, 0], at);
    let mut steps = [
        load(0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, [0, 3], number),
        load(32),
        step(libc::BPF_JMP | condition, [0, 1], value),
        step(libc::BPF_RET | libc::BPF_K, [0, 0], refuse),
        step(libc::BPF_RET | libc::BPF_K, [0, 0], libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the arguments are constants, and a program that outlives the call; the kernel copies it.
    unsafe {
        let one: libc::c_ulong = 1;
        let zero: libc::c_ulong = 0;
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) != 0
            || libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
