//! Processes whose output is read from the start, and which end with their test at the latest.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Timeout of [`wait`]: much longer than any test takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(180);

const PAUSE: Duration = Duration::from_millis(2);

/// Exit status and complete output of a process.
#[derive(Debug)]
pub struct Ended {
    /// Exit status of the process.
    pub status: ExitStatus,
    /// Text that the process wrote to standard output.
    pub stdout: String,
    /// Text that the process wrote to standard error.
    pub stderr: String,
}

impl Ended {
    /// Standard output, then standard error.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// The bytes read from one pipe so far, and the thread that reads it.
#[derive(Debug)]
struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Reader {
    /// Starts to read at once: a process that fills its pipe would block.
    fn start(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut chunk) {
                theirs.lock().expect("nobody panics with it").extend_from_slice(&chunk[..n]);
            }
        });
        Reader { bytes, thread }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("nobody panics with it")).into_owned()
    }
}

/// A process that is killed when the value is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdout: Reader,
    stderr: Reader,
}

impl Process {
    /// Starts `command` without standard input.
    ///
    /// # Panics
    /// If the command cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = Reader::start(child.stdout.take().expect("is piped"));
        let stderr = Reader::start(child.stderr.take().expect("is piped"));
        Process { child, stdout, stderr }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process, unless it has ended.
    ///
    /// # Panics
    /// If the system refuses the signal.
    pub fn signal(&mut self, signal: i32) {
        if !self.has_ended() {
            send_signal(&mut self.child, signal);
        }
    }

    /// Kills the process, also if it has already ended.
    pub fn kill(&mut self) {
        self.child.kill().expect("is our child");
    }

    /// Whether the process is stopped by a signal.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        // The state follows the name, which may contain any character and ends with the last parenthesis.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    }

    /// Text that the process has written to standard output so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Text that the process has written to standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("is our child").is_some()
    }

    fn ended(mut self) -> Ended {
        let status = self.child.wait().expect("is our child");
        // Children of the process that outlive it may keep the pipes open.
        let end = Instant::now() + Duration::from_secs(5);
        let readers = [&self.stdout, &self.stderr];
        while readers.iter().any(|reader| !reader.thread.is_finished()) && Instant::now() < end {
            thread::sleep(PAUSE);
        }
        Ended { status, stdout: self.stdout.text(), stderr: self.stderr.text() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that has not been waited for.
///
/// # Panics
/// If the system refuses the signal.
#[track_caller]
pub fn send_signal(child: &mut Child, signal: i32) {
    // SAFETY: no memory is involved. The process has not been reaped, so the id is still its own.
    let code = unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    assert_eq!(code, 0, "signal {signal}");
}

/// Waits until `condition` holds.
///
/// # Panics
/// If `condition` does not hold within [`DEADLINE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "not within {DEADLINE:?}: {what}");
        thread::sleep(PAUSE);
    }
}

/// Waits until all processes have ended.
///
/// # Panics
/// If a process has not ended within [`DEADLINE`]. Then all processes are killed, and the panic's message contains
/// the output of each.
#[must_use]
pub fn wait(processes: Vec<Process>) -> Vec<Ended> {
    wait_within(DEADLINE, processes)
}

fn wait_within(deadline: Duration, mut processes: Vec<Process>) -> Vec<Ended> {
    let end = Instant::now() + deadline;
    let hangs = |process: &mut Process| {
        while !process.has_ended() {
            if Instant::now() > end {
                return true;
            }
            thread::sleep(PAUSE);
        }
        false
    };
    let hanging: Vec<bool> = processes.iter_mut().map(hangs).collect();
    if !hanging.contains(&true) {
        return processes.into_iter().map(Process::ended).collect();
    }
    let mut texts = String::new();
    for (number, (process, hangs)) in processes.iter().zip(hanging).enumerate() {
        let state = if hangs { "hangs" } else { "has ended" };
        texts += &format!("-- {number} {state}\n{}{}", process.stdout(), process.stderr());
    }
    panic!("processes have not ended within {deadline:?}:\n{texts}");
}

/// Runs `command` to its end.
///
/// # Panics
/// As [`Process::start`] and [`wait`].
#[must_use]
pub fn run(command: &mut Command) -> Ended {
    wait(vec![Process::start(command)]).remove(0)
}

/// Writes a program, such as a script, that can be started at once. Another process writes it: children that other
/// tests start meanwhile would inherit this process's file that is open for writing, and a program that is open for
/// writing cannot be started.
///
/// # Panics
/// If it cannot be written.
pub fn write_program(path: &Path, program: &[u8]) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let (mut child, _limit) = shell.spawn_in_time();
    let written = child.stdin.take().expect("is piped").write_all(program);
    let status = child.wait().expect("is our child");
    assert!(written.is_ok() && status.success(), "{}: {written:?}, {status}", path.display());
}

/// Kills its process when dropped, and after [`DEADLINE`].
#[derive(Debug)]
pub struct Limit {
    _over: mpsc::Sender<()>,
}

fn spawn_within(deadline: Duration, command: &mut Command) -> (Child, Limit) {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // The descriptor denotes the process also when it has been reaped.
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    let (over, is_over) = mpsc::channel();
    thread::spawn(move || {
        let _ = is_over.recv_timeout(deadline);
        let _ = pidfd_send_signal(process, Signal::KILL);
    });
    (child, Limit { _over: over })
}

/// A [`Command::output`] and a [`Command::spawn`] that cannot hang.
pub trait OutputInTime {
    /// Runs the command to its end, without standard input. Bytes of its output that are not UTF-8 are replaced.
    ///
    /// # Panics
    /// As [`run`].
    #[must_use]
    fn output_in_time(&mut self) -> Output;

    /// Starts the command with the pipes that it has been given. Whoever reads them, or waits for the child, does so
    /// until [`DEADLINE`] at most.
    ///
    /// # Panics
    /// If the command cannot be started.
    #[must_use]
    fn spawn_in_time(&mut self) -> (Child, Limit);
}

impl OutputInTime for Command {
    fn output_in_time(&mut self) -> Output {
        let Ended { status, stdout, stderr } = run(self);
        Output { status, stdout: stdout.into_bytes(), stderr: stderr.into_bytes() }
    }

    fn spawn_in_time(&mut self) -> (Child, Limit) {
        spawn_within(DEADLINE, self)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn what_a_process_writes_and_its_status_are_kept() {
        let long = shell("head -c 1000000 /dev/zero; echo err >&2; exit 3");
        let [long, short] = <[Ended; 2]>::try_from(wait(vec![long, shell("echo out")])).unwrap();
        assert_eq!(
            (long.status.code(), long.stdout.len(), &*long.stderr),
            (Some(3), 1_000_000, "err\n")
        );
        assert_eq!((short.status.code(), short.text()), (Some(0), "out\n".to_owned()));
    }

    #[test]
    fn what_hangs_is_named_and_killed() {
        let (hangs, ends) = (shell("echo before; exec sleep 600"), shell("echo well"));
        wait_until("the first line", || !hangs.stdout().is_empty());
        let id = hangs.id();
        let waited = thread::spawn(move || {
            let _ = wait_within(Duration::from_millis(300), vec![ends, hangs]);
        });
        let message = *waited.join().unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("-- 0 has ended\nwell\n-- 1 hangs\nbefore\n"), "{message}");
        assert!(!std::fs::exists(format!("/proc/{id}")).unwrap());
    }

    /// Also while another thread starts programs, which have this process's files for a moment.
    #[test]
    fn a_program_can_be_started_when_it_is_written() {
        use std::os::unix::process::CommandExt;
        let path = std::env::temp_dir().join(format!("hopbine-program-{}", std::process::id()));
        let others = thread::spawn(|| {
            let mut slow = Command::new("true");
            // SAFETY: `nanosleep` may be called between fork and exec.
            unsafe {
                slow.pre_exec(|| {
                    libc::nanosleep(
                        &libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 },
                        std::ptr::null_mut(),
                    );
                    Ok(())
                })
            };
            for _ in 0..200 {
                assert!(slow.status().unwrap().success());
            }
        });
        // Long, so that children are forked while it is written.
        let program = [&b"#!/bin/sh\necho well\nexit\n"[..], &[b'#'; 1 << 20]].concat();
        while !others.is_finished() {
            write_program(&path, &program);
            assert_eq!(Command::new(&path).output().unwrap().stdout, b"well\n");
        }
        others.join().unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_child_ends_at_its_limit_and_with_it() {
        let mut sleeps = Command::new("sleep");
        sleeps.arg("600");
        let (mut late, _limit) = spawn_within(Duration::from_millis(50), &mut sleeps);
        let (mut dropped, limit) = sleeps.spawn_in_time();
        drop(limit);
        for child in [&mut late, &mut dropped] {
            assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        }
    }

    #[test]
    fn a_stopped_process_is_seen_and_ends_with_its_value() {
        let stopped = shell("kill -STOP $$");
        wait_until("the stop", || stopped.is_stopped());
        let id = stopped.id();
        drop(stopped);
        assert!(!std::fs::exists(format!("/proc/{id}")).unwrap());
    }
}
