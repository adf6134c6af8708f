//! The processes of a job, from the start of the first to the end of the last.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hopbine_meet::variables::{
    BACKEND, EMU_MACHINE, EMU_SLOWER, RANK, RANKS_PER_NODE, RENDEZVOUS, SIZE, TIMEOUT, TORUS,
    from_environment,
};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::iterator::Signals;

use super::directory::Directory;
use super::forward::{self, Forwarder, Writer};
use super::guardian::{self, Guardian};
use super::messages::Messages;
use super::signals;
use super::threads::{POLL, in_time, thread};
use super::{Settings, from_user_env, library_path};
use crate::error::{CliError, Outcome};

/// Time between SIGTERM and SIGKILL.
const KILL_DELAY: Duration = Duration::from_secs(2);
/// Time to wait for the last output, which processes left behind by ranks may keep open, and which nobody may read
/// after a failure.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// The running ranks, and the channel of events about them.
pub(super) struct LaunchedJob {
    /// The ranks. No rank is reaped before the job ends, so that the id of its process group is not reused and
    /// processes that it has left behind can be killed.
    ranks: Vec<Child>,
    n_running: usize,
    events: Receiver<Event>,
    sender: Sender<Event>,
    outputs: Vec<Forwarder>,
    messages: Messages,
    grace: Duration,
    /// The signal that interrupted the start of the ranks.
    interrupted: Option<libc::c_int>,
    _guardian: Guardian,
    // The directory contains the rendezvous and is removed last.
    directory: Directory,
}

enum Event {
    Ended(usize, io::Result<ExitStatus>),
    Signal(libc::c_int),
    /// Standard output or standard error of the launcher cannot be written.
    OutputLost(io::Error),
}

impl LaunchedJob {
    /// Starts all ranks, or those before a signal that ends the job. If a rank cannot be started, no rank remains.
    ///
    /// # Errors
    /// [`CliError::Start`], naming the program.
    pub(super) fn start(
        settings: &Settings,
        signals: &mut Signals,
    ) -> Result<LaunchedJob, CliError> {
        let directory = Directory::new()
            .map_err(|source| CliError::Write { path: std::env::temp_dir(), source })?;
        // SAFETY: no thread has been started yet.
        let guardian = unsafe { Guardian::start(directory.path(), &directory.rendezvous()) };
        let guardian = guardian.map_err(|error| {
            CliError::Usage(format!("cannot start the process that guards the job: {error}"))
        })?;
        let libraries = library_path(settings, directory.path())?;
        let (sender, events) = channel();
        let mut job = LaunchedJob {
            ranks: Vec::new(),
            n_running: 0,
            events,
            sender,
            outputs: Vec::new(),
            messages: Messages::start().map_err(CliError::Output)?,
            grace: settings.grace,
            interrupted: None,
            _guardian: guardian,
            directory,
        };
        for rank in 0..settings.ranks {
            job.interrupted = signals.pending().find(|&signal| signals::is_end(signal));
            if job.interrupted.is_some() {
                break;
            }
            // If this fails, dropping the job kills the earlier ranks.
            let started = job.command(settings, rank, libraries.as_ref()).spawn();
            started
                .and_then(|child| job.supervise(rank as usize, child, settings.tag_output))
                .map_err(|source| CliError::Start {
                    program: PathBuf::from(&settings.program),
                    source,
                })?;
        }
        Ok(job)
    }

    fn command(&self, settings: &Settings, rank: u32, libraries: Option<&OsString>) -> Command {
        let mut command = Command::new(&settings.program);
        command
            .args(&settings.arguments)
            .env(RANK.name, rank.to_string())
            .env(SIZE.name, settings.ranks.to_string())
            .env(RENDEZVOUS.name, self.directory.rendezvous())
            .env(RANKS_PER_NODE.name, settings.ranks_per_node.to_string())
            .stdin(input(rank))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate process group: a signal from the terminal reaches the rank once, forwarded by the launcher.
            .process_group(0);
        // By default, ranks on one host use the emulator.
        match settings.backend {
            Some(backend) => _ = command.env(BACKEND.name, backend.name()),
            None if cfg!(feature = "emu") && BACKEND.get(&from_environment).is_none() => {
                command.env(BACKEND.name, "emu");
            }
            None => {}
        }
        match &settings.torus {
            Some(torus) => _ = command.env(TORUS.name, torus.to_string()),
            // The torus of an outer job's launcher is not that of these ranks.
            None if TORUS.get(&from_user_env).is_none() => _ = command.env_remove(TORUS.name),
            None => {}
        }
        if let Some(timeout) = settings.timeout {
            command.env(TIMEOUT.name, timeout.to_string());
        }
        if let Some(machine) = &settings.machine {
            command.env(EMU_MACHINE.name, machine);
        }
        if let Some(slower) = settings.slower {
            command.env(EMU_SLOWER.name, slower.to_string());
        }
        if let Some(libraries) = libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let launcher = std::process::id();
        // SAFETY: the function only makes system calls that are safe between fork and exec.
        unsafe { command.pre_exec(move || signals::prepare_child(launcher)) };
        if let Some(shares) = &settings.shares {
            // SAFETY: as for `prepare_child`.
            unsafe { command.pre_exec(shares.binder(rank)) };
        }
        command
    }

    fn supervise(&mut self, rank: usize, mut child: Child, tagged: bool) -> io::Result<()> {
        let id = child.id();
        let tag = if tagged { format!("[{rank}] ") } else { String::new() };
        let pipes: [(Option<OwnedFd>, Writer); 2] = [
            (child.stdout.take().map(OwnedFd::from), forward::to_stdout),
            (child.stderr.take().map(OwnedFd::from), forward::to_stderr),
        ];
        self.ranks.push(child);
        self.n_running += 1;
        for (pipe, writer) in pipes {
            let Some(pipe) = pipe else { continue };
            let sender = self.sender.clone();
            // The receiver is gone if the job has ended.
            let lost = move |error| _ = sender.send(Event::OutputLost(error));
            self.outputs.push(Forwarder::start(pipe, tag.clone(), writer, lost)?);
        }
        let sender = self.sender.clone();
        thread(move || {
            let _ = sender.send(Event::Ended(rank, wait_without_reaping(id)));
        })?;
        Ok(())
    }

    /// Waits until the last rank has ended, and handles failures and signals in the meantime.
    ///
    /// # Errors
    /// [`CliError::Output`] if the ranks' output can no longer be written.
    pub(super) fn watch(mut self, mut signals: Signals) -> Result<Outcome, CliError> {
        let sender = self.sender.clone();
        // This thread ends with the process.
        std::thread::spawn(move || {
            let mut received = signals.forever();
            received.all(|signal| sender.send(Event::Signal(signal)).is_ok())
        });
        let mut first_failure = None;
        let mut lost = None;
        let mut end = Escalation::default();
        if let Some(signal) = self.interrupted {
            self.messages.say(format!("{} while ranks were started", signals::name(signal)));
            self.signal(signal);
            end.begin(self.grace);
        }
        while self.n_running > 0 {
            let event = match end.next {
                Some(at) => self.events.recv_timeout(at.saturating_duration_since(Instant::now())),
                None => self.events.recv().map_err(RecvTimeoutError::from),
            };
            match event {
                Ok(Event::Ended(rank, status)) => {
                    self.n_running -= 1;
                    let Some((text, code)) = rank_failure(&status) else { continue };
                    // Ranks that the launcher has terminated are not reported as failed.
                    if !end.terminated {
                        self.messages.say(format!("rank {rank} {text}"));
                    } else if lost.is_some() {
                        continue;
                    }
                    if first_failure.is_none() {
                        first_failure = Some(code);
                        end.begin(self.grace);
                    }
                }
                Ok(Event::Signal(signal)) => {
                    self.signal(signal);
                    if signals::is_end(signal) {
                        // The grace period starts with the first such signal.
                        end.begin(self.grace);
                    }
                }
                Ok(Event::OutputLost(error)) => {
                    lost.get_or_insert(error);
                    end.begin(Duration::ZERO);
                }
                Err(_) => {
                    if !end.terminated && first_failure.is_some() {
                        let others = match self.n_running {
                            1 => "last rank".to_owned(),
                            n => format!("other {n} ranks"),
                        };
                        self.messages.say(format!("terminating the {others}"));
                    } else if !end.terminated && lost.as_ref().is_some_and(is_closed) {
                        self.messages
                            .say("standard output is closed: the ranks are terminated".to_owned());
                    }
                    self.signal(end.escalate());
                }
            }
        }
        if end.next.is_some() {
            // Processes that ranks have left behind get the same signals, and time for their last output if they
            // still have a pipe open.
            if !self.finish_output(Duration::ZERO) {
                self.signal(libc::SIGTERM);
                self.finish_output(KILL_DELAY);
            }
            self.signal(libc::SIGKILL);
            guardian::kill_job(&self.directory.rendezvous());
        }
        let is_ended = end.next.is_some();
        let limit = if is_ended { OUTPUT_TIMEOUT } else { Duration::MAX };
        let last_signal = self.drain(limit, &mut lost);
        if !is_ended && last_signal.is_none() {
            let flushed = self.outputs.iter().try_for_each(Forwarder::flush);
            lost = lost.or(flushed.err());
        }
        let has_none_left = || !self.outputs.iter().any(Forwarder::has_rest);
        let is_cut = (is_ended || last_signal.is_some()) && !in_time(has_none_left, OUTPUT_TIMEOUT);
        if is_cut {
            self.messages
                .say("the end of the ranks' output is lost: it was not read in time".to_owned());
        }
        self.messages.finish(OUTPUT_TIMEOUT);
        let status = |signal| 128 + signal as u8;
        let interrupted = self.interrupted.map(status);
        match (interrupted.or(first_failure).or(last_signal.map(status)), lost) {
            (Some(code), _) => Ok(Outcome::Status(code)),
            (None, Some(error)) if end.terminated && is_closed(&error) => {
                Ok(Outcome::Status(status(libc::SIGPIPE)))
            }
            (None, Some(error)) => Err(CliError::Output(error)),
            (None, None) if is_cut => Ok(Outcome::Wrong),
            (None, None) => Ok(Outcome::Well),
        }
    }

    /// Forwards the output that is still in the pipes when all ranks have ended, until a signal, which it returns.
    /// `limit` is for a reader that takes nothing. A process that a rank has left behind may keep a pipe open for
    /// ever: [`OUTPUT_TIMEOUT`] limits the time in which nothing is written.
    fn drain(&self, limit: Duration, lost: &mut Option<io::Error>) -> Option<libc::c_int> {
        let (mut idle, begun) = (Duration::ZERO, Instant::now());
        loop {
            let is_over = self.finish_output(Duration::ZERO)
                || idle >= OUTPUT_TIMEOUT
                || begun.elapsed() >= limit;
            match self.events.recv_timeout(if is_over { Duration::ZERO } else { POLL }) {
                Ok(Event::OutputLost(error)) => _ = lost.get_or_insert(error),
                Ok(Event::Signal(signal)) if signals::is_end(signal) && !is_over => {
                    return Some(signal);
                }
                Ok(_) => {}
                Err(_) if is_over => return None,
                Err(_) if self.outputs.iter().any(Forwarder::has_lines) => {}
                Err(_) => idle += POLL,
            }
        }
    }

    fn signal(&self, signal: libc::c_int) {
        for rank in &self.ranks {
            // SAFETY: no memory is involved. The process group belongs to a child that has not been reaped, so its id
            // has not been reused.
            unsafe { libc::kill(-(rank.id() as libc::pid_t), signal) };
        }
    }

    /// Forwards the output that is still in the pipes. Returns false if a pipe is still open after `wait`: a process
    /// that a rank has left behind may keep it open for ever.
    fn finish_output(&self, wait: Duration) -> bool {
        in_time(|| self.outputs.iter().all(Forwarder::is_finished), wait)
    }
}

/// Standard input of a rank: rank 0 inherits the launcher's, unless it is a terminal, from which background processes
/// may not read; the other ranks read nothing.
fn input(rank: u32) -> Stdio {
    if rank == 0 && !io::stdin().is_terminal() { Stdio::inherit() } else { Stdio::null() }
}

/// Whether the reader of the output has closed it.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

impl Drop for LaunchedJob {
    fn drop(&mut self) {
        // All ranks have ended by now, unless an error has occurred.
        if self.n_running > 0 {
            self.signal(libc::SIGKILL);
        }
        for rank in &mut self.ranks {
            // A child that cannot be waited for does not exist.
            let _ = rank.wait();
        }
    }
}

/// Waits for the end of a child without reaping it.
fn wait_without_reaping(child: u32) -> io::Result<ExitStatus> {
    let child = Pid::from_raw(child as i32).ok_or(io::ErrorKind::NotFound)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = retry_on_intr(|| waitid(WaitId::Pid(child), options))?;
    let status = status.ok_or(io::ErrorKind::NotFound)?;
    // As wait() encodes it: an exit status in the upper byte, or the number of a signal.
    let exit = status.exit_status().map(|code| code << 8);
    Ok(ExitStatus::from_raw(exit.or(status.terminating_signal()).unwrap_or_default()))
}

/// Escalation of signals that end the ranks.
#[derive(Default)]
struct Escalation {
    /// The time of the next, stronger signal.
    next: Option<Instant>,
    terminated: bool,
}

impl Escalation {
    fn begin(&mut self, grace: Duration) {
        // A time beyond the clock's range never comes.
        let at = Instant::now().checked_add(grace);
        self.next = self.next.into_iter().chain(at).min();
    }

    /// Returns the signal to send now, and schedules the next.
    fn escalate(&mut self) -> libc::c_int {
        self.next = Some(Instant::now() + KILL_DELAY);
        if std::mem::replace(&mut self.terminated, true) { libc::SIGKILL } else { libc::SIGTERM }
    }
}

/// Description of a rank's failure, and the exit status that represents it; None for success.
fn rank_failure(status: &io::Result<ExitStatus>) -> Option<(String, u8)> {
    let (text, code) = match status {
        Ok(status) if status.success() => return None,
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => (format!("ended with exit status {code}"), code),
            (None, Some(signal)) => {
                (format!("was killed by signal {signal} ({})", signals::name(signal)), 128 + signal)
            }
            (None, None) => ("ended in an unknown way".to_owned(), 1),
        },
        Err(error) => (format!("cannot be waited for: {error}"), 1),
    };
    Some((text, u8::try_from(code).unwrap_or(1)))
}
