//! `hopbine launch`: starts the ranks of a job on this host and supervises them.

mod cores;
mod directory;
mod forward;
mod guardian;
mod job;
mod messages;
pub mod signals;
mod threads;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopbine_meet::variables::{
    BACKEND, MAX_TIMEOUT_SECONDS, RANK, RANKS_PER_NODE, TORUS, from_environment,
};
use hopbine_torus::Shape;
use hopbine_torus::sim::NetworkKind;

use super::args::BackendArg;
use super::error::{CliError, Outcome};
use super::host;
use super::installed::library_dir;
use super::simulate::file;
use cores::{BindTo, Shares};
use job::LaunchedJob;

/// Run a program as several ranks on this host
///
/// Each rank is a process with HOPBINE_RANK, HOPBINE_SIZE, HOPBINE_RENDEZVOUS, HOPBINE_TORUS and
/// HOPBINE_RANKS_PER_NODE set. Messages go through the emulated Tofu device, unless --backend or HOPBINE_BACKEND
/// chooses another. The program uses hopbine or uTofu; LD_LIBRARY_PATH lets it find the emulated uTofu library.
/// Rank 0 reads standard input if that is a file or a pipe; other ranks read nothing, and at a terminal rank 0
/// reads nothing either. The exit status is that of the first rank that fails, or 128 + N if signal N has killed
/// it; 141 if the reader of the output has closed it, and so ended the ranks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  hopbine launch -n 8 --torus 2x2x2 ./program input.dat
  hopbine launch -n 2 --backend shm ./program
  hopbine launch -n 4 --tag-output --timeout 10 ./program
  hopbine launch -n 2 --as-vendor ./linked_to_libtofucom")]
pub struct Args {
    /// Number of ranks; by default the nodes of the torus times --ranks-per-node
    #[arg(short = 'n', long, value_name = "N", required_unless_present = "torus")]
    ranks: Option<u32>,
    /// Shape of the torus of nodes; by default HOPBINE_TORUS, else nearly cubic
    #[arg(long, value_name = "SHAPE")]
    torus: Option<Shape>,
    /// Ranks on each node; by default HOPBINE_RANKS_PER_NODE, else 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
    /// What carries the ranks' messages; by default HOPBINE_BACKEND, else the emulated device
    #[arg(long, value_enum)]
    backend: Option<BackendArg>,
    /// Seconds without progress until a rank warns, or with HOPBINE_ON_TIMEOUT=fail fails; sets HOPBINE_TIMEOUT
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT_SECONDS))]
    timeout: Option<u64>,
    /// Seconds from the failure of one rank until the other ranks are terminated
    #[arg(long, value_name = "S", default_value_t = GRACE_SECONDS)]
    grace: u64,
    /// What ranks are bound to. With more ranks than cores, ranks are not bound
    #[arg(long, value_enum, default_value_t)]
    bind_to: BindTo,
    /// Give the emulated device the delays of this machine, named as for simulate --machine; sets
    /// HOPBINE_EMU_MACHINE
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Multiply all these delays by N; sets HOPBINE_EMU_SLOWER
    #[arg(long, value_name = "N", requires = "machine", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slower: Option<u32>,
    /// Put `[rank] ` before every line of output
    #[arg(long)]
    tag_output: bool,
    /// Provide the emulated library also under the vendor's names, libtofucom.so and libtofutop.so
    #[arg(long)]
    as_vendor: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

/// Default grace period in which ranks may end by themselves.
const GRACE_SECONDS: u64 = 5;

/// Settings common to all ranks.
#[derive(Debug)]
struct Settings {
    ranks: u32,
    /// `None`: the ranks choose.
    torus: Option<Shape>,
    backend: Option<BackendArg>,
    ranks_per_node: u32,
    timeout: Option<u64>,
    /// The machine of the network model whose delays the emulated device has, as a setting in one line.
    machine: Option<String>,
    slower: Option<u32>,
    grace: Duration,
    /// `None`: no rank is bound.
    shares: Option<Shares>,
    tag_output: bool,
    as_vendor: bool,
    program: OsString,
    arguments: Vec<OsString>,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<Outcome, CliError> {
    let settings = settings(args)?;
    let mut signals = signals::forwarded()
        .map_err(|error| CliError::Usage(format!("cannot handle signals: {error}")))?;
    let job = LaunchedJob::start(&settings, &mut signals)?;
    job.watch(signals)
}

/// Runs this command line again, as the ranks of a shape on this host.
///
/// # Errors
/// As [`run`].
pub fn this_program(shape: &Shape, backend: Option<BackendArg>) -> Result<Outcome, CliError> {
    let start = |source| CliError::Start { program: "hopbine".into(), source };
    let program = std::env::current_exe().map_err(start)?.into_os_string();
    run(Args {
        ranks: None,
        torus: Some(shape.without_node_axis()),
        ranks_per_node: Some(shape.ranks_per_node()),
        backend,
        timeout: None,
        grace: GRACE_SECONDS,
        bind_to: BindTo::default(),
        machine: None,
        slower: None,
        tag_output: false,
        as_vendor: false,
        command: std::iter::once(program).chain(std::env::args_os().skip(1)).collect(),
    })
}

fn settings(args: Args) -> Result<Settings, CliError> {
    let per_node = match args.ranks_per_node {
        Some(n) => n,
        None => default_ranks_per_node()?,
    };
    let ranks = match (args.ranks, &args.torus) {
        (Some(0), _) => return Err(CliError::Usage("at least one rank is needed".to_owned())),
        (Some(ranks), _) => ranks,
        (None, Some(torus)) => torus.n_ranks().checked_mul(per_node).ok_or_else(|| {
            CliError::Usage(format!("{torus} with {per_node} ranks on each node is too large"))
        })?,
        (None, None) => return Err(CliError::Usage("give -n or --torus".to_owned())),
    };
    if !ranks.is_multiple_of(per_node) {
        return Err(CliError::Usage(format!(
            "{ranks} ranks cannot be distributed with {per_node} on each node"
        )));
    }
    let nodes = ranks / per_node;
    let is_shared = match args.backend {
        Some(backend) => backend == BackendArg::Shm,
        None => BACKEND.get(&from_environment).is_some_and(|name| name == "shm"),
    };
    let torus = match args.torus {
        // The ranks read the shape from the environment if it is set; if all ranks share a host, they choose it.
        None if is_shared || TORUS.get(&from_user_env).is_some() => None,
        Some(torus) => Some(torus),
        None => Some(
            Shape::torus(&hopbine::torus::geometry::near_cubic(nodes))
                .map_err(|error| CliError::Usage(error.to_string()))?,
        ),
    };
    if let Some(torus) = &torus
        && torus.n_ranks() != nodes
    {
        return Err(CliError::Usage(format!(
            "{torus} has {} nodes, but {ranks} ranks with {per_node} on each node need {nodes}",
            torus.n_ranks()
        )));
    }
    let what = format!("{ranks} ranks");
    let instead = "start fewer";
    // Each rank is a process, served by threads of the launcher.
    host::check_threads(&what, u64::from(ranks) * (1 + THREADS_PER_RANK), instead)?;
    host::check_files(&what, OTHER_FILES + u64::from(ranks) * FILES_PER_RANK, instead)?;
    let mut command = args.command.into_iter();
    let program =
        command.next().ok_or_else(|| CliError::Usage("the program is missing".to_owned()))?;
    if program.as_encoded_bytes().starts_with(b"-") {
        let program = program.display();
        return Err(CliError::Usage(format!(
            "launch has no option {program}; give a program of that name as ./{program}"
        )));
    }
    Ok(Settings {
        ranks,
        torus,
        backend: args.backend,
        ranks_per_node: per_node,
        timeout: args.timeout,
        machine: args.machine.as_deref().map(device).transpose()?,
        slower: args.slower,
        grace: Duration::from_secs(args.grace),
        shares: match args.bind_to {
            BindTo::Core => Shares::of_job(ranks),
            BindTo::None => None,
        },
        tag_output: args.tag_output,
        as_vendor: args.as_vendor,
        program,
        arguments: command.collect(),
    })
}

/// The setting, in one line, of a machine of the network model that the emulated device supports.
fn device(name: &str) -> Result<String, CliError> {
    let machine = file::machine(name)?;
    machine.line().filter(|_| machine.network == NetworkKind::TofuD).ok_or_else(|| {
        CliError::Usage(format!(
            "--machine {name} is a network of kind {}; the emulated device needs one of kind tofu-d",
            machine.network
        ))
    })
}

/// A variable that the user has set for the job. Within a rank, the variables describe the job of this rank, so they
/// do not count.
fn from_user_env(variable: &str) -> Option<String> {
    from_environment(variable).filter(|_| RANK.get(&from_environment).is_none())
}

/// Ranks on each node according to the environment, or 1.
fn default_ranks_per_node() -> Result<u32, CliError> {
    let n = RANKS_PER_NODE.number(&from_user_env);
    n.map(|n| n.unwrap_or(1)).map_err(|error| CliError::Usage(error.to_string()))
}

/// Threads of the launcher for each rank: two for its outputs and one for its end.
const THREADS_PER_RANK: u64 = 3;
/// Files that the launcher keeps open for each rank: the read ends of its two outputs.
const FILES_PER_RANK: u64 = 2;
/// Other open files of the launcher.
const OTHER_FILES: u64 = 50;

/// The value of the ranks' `LD_LIBRARY_PATH`; None to leave it unchanged.
fn library_path(settings: &Settings, directory: &Path) -> Result<Option<OsString>, CliError> {
    let library = library_dir(LIBRARY);
    let mut path: Vec<PathBuf> = Vec::new();
    if settings.as_vendor {
        let library = library.as_ref().ok_or_else(|| {
            CliError::Usage(format!(
                "--as-vendor: {LIBRARY} is neither beside this program nor in the lib or lib64 beside its \
                 directory. `cargo install` does not install it: in hopbine's sources, run \
                 `cargo build --release -p utofu-emu-capi` and copy target/release/{LIBRARY} there"
            ))
        })?;
        // A separate directory, so that the linker finds nothing else in it.
        let place = directory.join("lib");
        let links = || -> io::Result<()> {
            std::fs::create_dir(&place)?;
            for name in VENDOR_LIBRARIES {
                std::os::unix::fs::symlink(library.join(LIBRARY), place.join(name))?;
            }
            Ok(())
        };
        links().map_err(|source| CliError::Write { path: place.clone(), source })?;
        path.push(place);
    }
    // The loader takes an empty value for none, but an empty element for the working directory.
    let before = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty());
    path.extend(before.iter().flat_map(std::env::split_paths));
    path.extend(library);
    if path.is_empty() {
        return Ok(None);
    }
    let joined = std::env::join_paths(path).map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(Some(joined))
}

/// The C library of the emulated device.
const LIBRARY: &str = "libtofucom_emu.so";
/// Names of the vendor's libraries: uTofu's and jTofu's.
const VENDOR_LIBRARIES: [&str; 2] = ["libtofucom.so", "libtofutop.so"];

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Result<Settings, CliError> {
        settings(Line::try_parse_from(line.split(' ')).expect("parses").args)
    }

    #[test]
    fn ranks_and_torus_follow_from_each_other() {
        let settings = parsed("launch -n 12 ./a.out -n 3 --torus").unwrap();
        assert_eq!(
            (settings.ranks, settings.torus.map(|torus| torus.to_string())),
            (12, Some("3x2x2".to_owned()))
        );
        assert_eq!(settings.arguments, ["-n", "3", "--torus"]);
        let settings = parsed("launch --torus 2x3 --ranks-per-node 4 a").unwrap();
        assert_eq!(settings.ranks, 24);
        assert!(parsed("launch -n 4 --backend shm a").unwrap().torus.is_none());
        assert_eq!(parsed("launch --torus 3mx2 a").unwrap().torus.unwrap().to_string(), "3mx2");
    }

    /// The ranks get the values of a file in one line.
    #[test]
    fn a_machine_is_handed_on() {
        let machine =
            |name: &str| parsed(&format!("launch -n 2 --machine {name} a")).unwrap().machine;
        assert_eq!(machine("tofu-d").as_deref(), Some("tofu-d"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let mine = file::machine("tofu-d,network.hop=50,node.post=7.5").unwrap();
        std::fs::write(&path, file::show(&mine, |_| None)).unwrap();
        let line = machine(path.to_str().unwrap());
        assert_eq!(line.as_deref(), Some("tofu-d,network.hop=50,node.post=7.5"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (line, reason) in [
            ("launch -n 5 --torus 2x2 a", "need 5"),
            ("launch -n 5 --ranks-per-node 2 a", "2 on each node"),
            ("launch -n 0 a", "at least one"),
            ("launch -n 1000000 a", "this host allows"),
            ("launch -n 4294967295 a", "this host allows"),
            ("launch -n 2 --bogus a", "no option --bogus"),
            ("launch -n 2 --machine hyperx a", "of kind hyperx"),
            ("launch -n 2 --machine tofu-d,network.hop=-1 a", "0 or more"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Line::try_parse_from(["launch", "-n", "2"]).is_err());
    }
}
