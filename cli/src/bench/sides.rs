//! The sides of a comparison: the library with its choice of algorithm or a named algorithm, its C interface, an MPI,
//! and the MPI with hopbine preloaded.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hopbine_meet::variables::{BACKEND, from_environment};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use super::Args;
use crate::error::CliError;
use crate::installed::library_dir;
use crate::launch::signals;

/// The C program that times an MPI's collectives, as `hopbine bench-rank` times those of hopbine.
const PROGRAM: &str = include_str!("collectives.c");
/// The header that maps the MPI calls of that program to hopbine's C interface.
const INTERFACE: &str = include_str!("interface.h");

/// One side of the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The library, with a named algorithm or its own choice.
    Hopbine(Option<String>),
    /// The C program, compiled with the library's C interface, at this path.
    Interface(PathBuf),
    /// The C program with the MPI.
    Mpi,
    /// The C program with the MPI and this library preloaded.
    Preload(PathBuf),
}

impl Side {
    /// The side's name in tables and files.
    pub fn name(&self) -> String {
        match self {
            Side::Hopbine(None) => "hopbine".to_owned(),
            Side::Hopbine(Some(algorithm)) => format!("hopbine {algorithm}"),
            Side::Interface(_) => "hopbine in C".to_owned(),
            Side::Mpi => "MPI".to_owned(),
            Side::Preload(_) => "MPI, hopbine preloaded".to_owned(),
        }
    }
}

/// An MPI, and the C program compiled for it.
pub struct Mpi {
    /// The MPI's name, as its launcher prints it.
    pub about: String,
    launcher: Vec<String>,
    directory: TempDir,
}

/// One measured time of a side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideTime {
    pub collective: String,
    pub bytes: u64,
    pub us: f64,
}

/// The sides to compare.
pub struct Sides {
    pub all: Vec<Side>,
    /// The MPI, if one is requested and available.
    pub mpi: Option<Mpi>,
    /// Directory of the C program for the C interface; deleted when this is dropped.
    pub directory: Option<TempDir>,
    /// Remarks on sides that are left out.
    pub notes: Vec<String>,
}

/// Returns the requested sides that are available.
///
/// # Errors
/// [`CliError::Bench`] if a requested MPI or C compiler does not compile the program.
pub fn sides(args: &Args) -> Result<Sides, CliError> {
    let mut notes = Vec::new();
    let mut sides = vec![Side::Hopbine(None)];
    sides.extend(args.algorithms.iter().map(|name| Side::Hopbine(Some(name.clone()))));
    let directory = args.cc.as_deref().map(in_c).transpose()?;
    sides.extend(directory.iter().map(|directory| Side::Interface(program(directory))));
    let mpi = match &args.mpicc[..] {
        "none" => None,
        mpicc => match Mpi::find(mpicc, args) {
            Ok(mpi) => Some(mpi),
            // The default MPI was not requested explicitly.
            Err(CliError::Bench(reason)) if mpicc == super::MPICC => {
                notes.push(format!("No comparison with an MPI: {reason}."));
                None
            }
            Err(error) => return Err(error),
        },
    };
    if mpi.is_some() {
        sides.push(Side::Mpi);
        match args.preload.clone().or_else(installed) {
            Some(library) => sides.push(Side::Preload(library)),
            None => notes.push(
                "No MPI with hopbine preloaded: there is no hopbine-preload beside this command. ./install.sh with MPICC \
                 installs it; --preload takes another libhopbine_preload.so."
                    .to_owned(),
            ),
        }
    }
    Ok(Sides { all: sides, mpi, notes, directory })
}

/// The library to preload that was installed with this command. The script `hopbine-preload` prints its path, since
/// only the script knows LIBDIR.
fn installed() -> Option<PathBuf> {
    let script = std::env::current_exe().ok()?.with_file_name("hopbine-preload");
    let printed = output(Command::new(script).arg("--path")).ok()?;
    Some(PathBuf::from(String::from_utf8(printed.stdout).ok()?.trim_end()))
}

/// Compiles the program for the C interface of the library that was installed with this command.
fn in_c(cc: &str) -> Result<TempDir, CliError> {
    let prefix = std::env::current_exe().ok();
    let prefix = prefix.as_deref().and_then(|command| command.parent()?.parent());
    let prefix = prefix.unwrap_or(Path::new("/"));
    let Some(lib) = library_dir("libhopbine.so") else {
        let prefix = prefix.display();
        let reason = format!(
            "there is no libhopbine.so below {prefix}, in lib or lib64; ./install.sh installs it with this command"
        );
        return Err(CliError::Bench(reason));
    };
    let include = prefix.join("include");
    let flag = |flag: &str, path: &Path| format!("{flag}{}", path.display());
    compiled(
        cc,
        &["-DINTERFACE".to_owned(), flag("-I", &include)],
        &[flag("-L", &lib), flag("-Wl,-rpath,", &lib), "-lhopbine".to_owned()],
    )
}

/// Compiles the program in a new directory, with the flags `cflags` and `ldflags` around its source.
fn compiled(compiler: &str, cflags: &[String], ldflags: &[String]) -> Result<TempDir, CliError> {
    let directory = tempfile::tempdir().map_err(|error| {
        CliError::Bench(format!("cannot make a directory for the program: {error}"))
    })?;
    let source = directory.path().join("collectives.c");
    for (path, text) in
        [(source.clone(), PROGRAM), (source.with_file_name("interface.h"), INTERFACE)]
    {
        std::fs::write(&path, text).map_err(|source| CliError::Write { path, source })?;
    }
    let mut words = compiler.split_whitespace();
    let mut compile = Command::new(words.next().unwrap_or_default());
    compile.args(words).args(cflags).args(["-O3", "-o"]).arg(program(&directory));
    output(compile.arg(&source).args(ldflags))?;
    Ok(directory)
}

/// Path of the compiled program.
fn program(directory: &TempDir) -> PathBuf {
    directory.path().join("collectives")
}

/// Runs a command and returns its output if it succeeds.
fn output(command: &mut Command) -> Result<Output, CliError> {
    let output = command.output();
    succeeded(command, output)
}

/// Time between two looks at a command that runs.
const POLL: Duration = Duration::from_millis(10);

/// As [`output`], for a command that runs long: passes signals on to it and the processes of its group.
fn supervised(command: &mut Command, signals: &mut Signals) -> Result<Output, CliError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut end = None;
    let output = command.spawn().and_then(|mut child| {
        let id = child.id() as libc::pid_t;
        // SAFETY: no memory is involved. The child has not been reaped, so the id of its group has not been reused.
        let send = |signal| unsafe { libc::kill(-id, signal) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let child_id = Pid::from_raw(id).ok_or(io::ErrorKind::NotFound)?;
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        std::thread::scope(|threads| {
            let err = threads.spawn(move || read(&mut err));
            let out = threads.spawn(move || read(&mut out));
            while waitid(WaitId::Pid(child_id), options)?.is_none() {
                for signal in signals.pending() {
                    send(signal);
                    end = end.or(signals::is_end(signal).then_some(signal));
                }
                std::thread::sleep(POLL);
            }
            if end.is_some() {
                send(libc::SIGKILL);
            }
            let status = child.wait()?;
            let [stdout, stderr] =
                [out, err].map(|reader| reader.join().expect("reading does not panic"));
            Ok(Output { status, stdout: stdout?, stderr: stderr? })
        })
    });
    match end {
        Some(signal) => Err(CliError::Signal(signal)),
        None => succeeded(command, output),
    }
}

fn read(stream: &mut Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.as_mut().map_or(Ok(0), |stream| stream.read_to_end(&mut all))?;
    Ok(all)
}

/// The output of a command that has succeeded; otherwise an error with the last lines of what it has printed.
fn succeeded(command: &Command, output: io::Result<Output>) -> Result<Output, CliError> {
    let name = command.get_program().to_string_lossy();
    let failed = |why: String| CliError::Bench(format!("{name}: {why}"));
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(output);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = last[last.len().saturating_sub(5)..].join("; ");
    Err(failed(format!("{}: {last}", output.status)))
}

impl Mpi {
    /// Compiles the program for the MPI.
    fn find(mpicc: &str, args: &Args) -> Result<Self, CliError> {
        let directory = compiled(mpicc, &[], &[])?;
        let mut launcher: Vec<String> =
            args.mpiexec.split_whitespace().map(str::to_owned).collect();
        let program = launcher.first().cloned().unwrap_or_default();
        let version = output(Command::new(&program).arg("--version"))?;
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        // Adds default options only if the user gave none.
        if launcher.len() == 1 {
            launcher.extend(flags(&version, args.ranks).into_iter().map(str::to_owned));
        }
        let about = version.lines().next().unwrap_or(&program).trim().to_owned();
        Ok(Mpi { about, launcher, directory })
    }
}

/// Options of Open MPI's launcher for ranks on this host: it refuses more ranks than cores, and to run as root.
fn flags(version: &str, ranks: u32) -> Vec<&'static str> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !(version.contains("Open MPI") || version.contains("OpenRTE")) {
        return Vec::new();
    }
    let mut flags = match ranks as usize <= cores {
        true => vec!["--bind-to", "core"],
        false => {
            vec!["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        }
    };
    if rustix::process::geteuid().is_root() {
        flags.push("--allow-run-as-root");
    }
    flags
}

/// Runs one side once. Signals are passed on to it.
///
/// # Errors
/// [`CliError::Bench`] if it fails, [`CliError::Signal`] if a signal has ended it.
pub fn run(
    side: &Side,
    mpi: Option<&Mpi>,
    args: &Args,
    sizes: &str,
    signals: &mut Signals,
) -> Result<Vec<SideTime>, CliError> {
    let ranks = args.ranks.to_string();
    let what = [args.collectives.join(","), sizes.to_owned(), args.budget.to_string()];
    let mut command = match (side, mpi) {
        (Side::Hopbine(_) | Side::Interface(_), _) => {
            let hopbine = std::env::current_exe()
                .map_err(|error| CliError::Bench(format!("cannot find this command: {error}")))?;
            let mut command = Command::new(&hopbine);
            command.args(["launch", "-n", &ranks]);
            match side {
                Side::Interface(program) => command.arg(program).args(&what),
                Side::Hopbine(algorithm) => {
                    command.arg(&hopbine).arg("bench-rank").args(&what).args(algorithm)
                }
                _ => unreachable!("the outer match has only these two"),
            };
            if BACKEND.get(&from_environment).is_none() {
                command.env(BACKEND.name, "shm");
            }
            command
        }
        (Side::Mpi | Side::Preload(_), Some(mpi)) => {
            let mut command = Command::new(&mpi.launcher[0]);
            command.args(&mpi.launcher[1..]).args(["-n", &ranks]);
            if let Side::Preload(library) = side {
                // Sets the variable for the ranks, not for the launcher.
                command.args(["env", &format!("LD_PRELOAD={}", absolute(library).display())]);
            }
            command.arg(program(&mpi.directory)).args(&what);
            command
        }
        (_, None) => unreachable!("an MPI's sides exist only with an MPI"),
    };
    let output = supervised(&mut command, signals)?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(time).collect())
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Parses a line `collective bytes microseconds`.
fn time(line: &str) -> Option<SideTime> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [collective, bytes, us] = words[..] else { return None };
    let collective = collective.to_owned();
    Some(SideTime { collective, bytes: bytes.parse().ok()?, us: us.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_among_other_lines() {
        let found = time("allreduce 8 1.25");
        assert_eq!(
            found,
            Some(SideTime { collective: "allreduce".to_owned(), bytes: 8, us: 1.25 })
        );
        for line in ["", "allreduce 8", "a warning of four words", "allreduce eight 1"] {
            assert_eq!(time(line), None, "{line}");
        }
    }

    #[test]
    fn only_open_mpi_needs_flags() {
        assert_eq!(flags("HYDRA build details:", 4096), Vec::<&str>::new());
        let many = flags("mpirun (Open MPI) 4.1.4", 4096);
        assert!(many.contains(&"--oversubscribe"), "{many:?}");
    }
}
