//! Rank and number of ranks from the environment variables of MPI's and Slurm's launchers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{BootstrapError, VariableError};
use crate::fnv;
use crate::host::{host, proc_pid};
use crate::process::Stat;
use crate::user_files;
use crate::variables::{Lookup, number_of};

/// A launcher and its variables for the rank, for the number of ranks, and for the ranks on this host (the first of
/// these that is set counts).
struct LauncherVariables {
    launcher: &'static str,
    rank: &'static str,
    size: &'static str,
    local_size: &'static [&'static str],
}

/// All launchers, in the order of the search: another launcher may itself run within a Slurm job.
const LAUNCHERS: [LauncherVariables; 3] = [
    LauncherVariables {
        launcher: "Open MPI's mpirun",
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
    },
    // Or `srun --mpi=pmi2`, which sets fewer variables.
    LauncherVariables {
        launcher: "MPICH's mpiexec",
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_size: &["MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"],
    },
    // srun sets the second variable; a batch script alone does not.
    LauncherVariables {
        launcher: "srun",
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_size: &["SLURM_STEP_TASKS_PER_NODE"],
    },
];

/// Variables of PMIx's and Fujitsu's launchers that show that a process is a rank of a job. Beside them there may be
/// none for the number of ranks, which PMIx tells only to those who ask for it.
const OF_RANKS: [&str; 2] = ["PMIX_RANK", "PLE_RANK_ON_NODE"];

/// A launcher's settings for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// This process's rank.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// The launcher's variable for the rank, by which processes are recognised as ranks.
    pub(crate) variable: &'static str,
    /// The variable that shows that some ranks are on other hosts, and its value.
    pub(crate) several_hosts: Option<(&'static str, String)>,
}

impl Launched {
    /// Returns the settings of the launcher that has started this process; `None` if there is no launcher.
    ///
    /// # Errors
    /// [`VariableError`] if the values are not valid.
    pub fn find(get: Lookup<'_>) -> Result<Option<Launched>, VariableError> {
        for LauncherVariables { launcher, rank, size, local_size } in LAUNCHERS {
            if get(rank).is_none() || get(size).is_none() {
                continue;
            }
            let number = |name, least, most| match number_of(get, name, least..=most) {
                Ok(number) => Ok(number.unwrap_or_default()),
                Err(error) => {
                    let wanted = format!("{} (set by {launcher})", error.wanted);
                    Err(VariableError { wanted, ..error })
                }
            };
            let n = number(size, 1, usize::MAX)?;
            let variable = rank;
            let rank = number(rank, 0, n - 1)?;
            // Slurm writes `4(x2)` for two nodes of four tasks.
            let local_size = local_size.iter().find_map(|&name| Some((name, get(name)?)));
            let several_hosts = local_size.filter(|(_, value)| value.trim().parse() != Ok(n));
            return Ok(Some(Launched { rank, size: n, variable, several_hosts }));
        }
        Ok(None)
    }

    /// Returns a variable, and its value, that shows that a launcher has started this process, for a process to which
    /// no launcher has said the number of ranks.
    pub fn without_size(get: Lookup<'_>) -> Option<(&'static str, String)> {
        OF_RANKS.iter().find_map(|&name| Some((name, get(name)?)))
    }

    /// Returns the variable that shows that some ranks are on other hosts, and its value.
    pub fn several_hosts(&self) -> Option<(&'static str, &str)> {
        self.several_hosts.as_ref().map(|(name, value)| (*name, &value[..]))
    }

    /// Returns a path that all ranks of this job, and no other job, compute: in a directory of this user. A daemon may
    /// start several jobs, also at a time, which then have namespaces of their own.
    ///
    /// # Errors
    /// [`BootstrapError::SeveralHosts`], or [`BootstrapError::Variable`] if no directory can hold it.
    pub(crate) fn rendezvous_path(&self, get: Lookup<'_>) -> Result<PathBuf, BootstrapError> {
        if let Some((variable, value)) = self.several_hosts.clone() {
            return Err(BootstrapError::SeveralHosts { variable, value, size: self.size });
        }
        let name =
            name(self, get).ok_or("the process that started them cannot be found".to_owned());
        let path = name
            .and_then(|name| user_files::runtime_path(&name).map_err(|error| error.to_string()));
        if let (0, Ok(path)) = (self.rank, &path) {
            remove_left_behind(path);
        }
        path.map_err(|why| {
            let wanted = format!("the path of a file, the same for all {} ranks: {why}", self.size);
            crate::variables::RENDEZVOUS.unset(wanted).into()
        })
    }
}

/// The variable of PMIx that names a job among those of one launcher: `prun` and `MPI_Comm_spawn` start several.
const NAMESPACE: &str = "PMIX_NAMESPACE";

/// Returns a name for this job: of the process that has started its ranks, the nearest ancestor that is not a rank
/// itself, and of the job's namespace. Ranks that are wrapped in scripts also have both in common.
fn name(launched: &Launched, get: Lookup<'_>) -> Option<String> {
    let stat = |pid| Stat::of(pid).ok().flatten();
    let mut pid = proc_pid()?;
    // Chains are short; the bound prevents an endless loop on a malformed /proc.
    for _ in 0..64 {
        let parent = stat(pid)?.parent;
        let environment = std::fs::read(format!("/proc/{parent}/environ")).unwrap_or_default();
        let is_rank = environment.split(|byte| *byte == 0).any(|entry| {
            let name = entry.split(|byte| *byte == b'=').next();
            name == Some(launched.variable.as_bytes())
        });
        if !is_rank || parent <= 1 {
            let namespace = fnv::of_bytes(get(NAMESPACE).unwrap_or_default().bytes());
            let started = stat(parent)?.started;
            return Some(format!("job-{parent}-{started}-{:x}-{namespace:x}", host()));
        }
        pid = parent;
    }
    None
}

/// Returns the process that has started the job with a name of [`name`]'s, and the time of its start, if it is a job of
/// `host`: containers that share a directory may have launchers with equal numbers, started in the same tick.
fn starter(name: &str, host: u64) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix("job-")?.split('-');
    let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    (parts.next()? == format!("{host:x}")).then_some((pid, started))
}

/// How long a file stays after the end of its job's starter: ranks may outlive it.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// Removes files beside `path` of jobs of this host whose ranks were killed, and left them. Failures are ignored: these
/// files do no harm.
fn remove_left_behind(path: &Path) {
    let host = host();
    let entries = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let job = entry.file_name().to_str().and_then(|name| starter(name, host));
        let has_ended = |(pid, started)| match Stat::of(pid) {
            Ok(stat) => stat.is_none_or(|stat| stat.started != started || stat.has_ended()),
            Err(_) => false,
        };
        let age = entry.metadata().and_then(|about| about.modified()).map(|at| at.elapsed());
        if job.is_some_and(has_ended) && matches!(age, Ok(Ok(age)) if age > LEFT_BEHIND) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(vars: &[(&str, &str)]) -> Result<Option<Launched>, VariableError> {
        Launched::find(&|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
    }

    #[test]
    fn launchers_are_recognised() {
        let launched =
            |rank, size, variable| Ok(Some(Launched { rank, size, variable, several_hosts: None }));
        assert_eq!(with(&[]), Ok(None));
        let open = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
        ];
        assert_eq!(with(&open), launched(3, 4, "OMPI_COMM_WORLD_RANK"));
        let mpich = [("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")];
        assert_eq!(with(&mpich), launched(0, 2, "PMI_RANK"));
        let slurm = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2")];
        assert_eq!(with(&slurm), launched(1, 2, "SLURM_PROCID"));
        // srun does not start batch scripts.
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]), Ok(None));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (vars, name) in [
            (&[("PMI_RANK", "2"), ("PMI_SIZE", "2")][..], "PMI_RANK"),
            (&[("PMI_RANK", "-1"), ("PMI_SIZE", "2")], "PMI_RANK"),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "many")], "PMI_SIZE"),
        ] {
            assert_eq!(with(vars).unwrap_err().name, name);
        }
        let apart = [("PMI_RANK", "0"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "2")];
        let error =
            with(&apart).unwrap().unwrap().rendezvous_path(&|_| None).unwrap_err().to_string();
        assert!(error.contains("MPI_LOCALNRANKS=2") && error.contains("HOPBINE_RENDEZVOUS"));
        // srun --mpi=pmi2.
        let apart = [apart[0], apart[1], ("SLURM_STEP_TASKS_PER_NODE", "2(x2)")];
        let error =
            with(&apart).unwrap().unwrap().rendezvous_path(&|_| None).unwrap_err().to_string();
        assert!(error.contains("SLURM_STEP_TASKS_PER_NODE=2(x2)"), "{error}");
    }

    #[test]
    fn a_job_has_the_name_of_who_has_started_it() {
        let stat = |pid| Stat::of(pid).unwrap().expect("it lives");
        let parent = stat(std::process::id()).parent;
        let launched = Launched {
            rank: 0,
            size: 1,
            variable: "HOPBINE_NO_SUCH_VARIABLE",
            several_hosts: None,
        };
        let in_space = |space: Option<&str>| {
            name(&launched, &|of| space.filter(|_| of == NAMESPACE).map(str::to_owned)).unwrap()
        };
        let started = stat(parent).started;
        assert!(in_space(None).starts_with(&format!("job-{parent}-{started}-")));
        // Two jobs of one daemon.
        assert_ne!(in_space(Some("prterun-1@1")), in_space(Some("prterun-1@2")));
        assert_eq!(in_space(Some("prterun-1@1")), in_space(Some("prterun-1@1")));
        assert_eq!(starter(&in_space(None), host()), Some((parent, started)));
    }

    #[test]
    fn files_of_jobs_that_were_killed_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (pid, host) = (std::process::id(), host());
        let started = Stat::of(pid).unwrap().expect("it lives").started;
        let own = format!("job-{pid}-{started}-{host:x}-0");
        // An earlier process of this number, with both files of a rendezvous.
        let earlier = format!("job-{pid}-{}-{host:x}-0", started - 1);
        let elsewhere = format!("job-{pid}-{}-{:x}-0", started - 1, host ^ 1);
        let young = format!("job-{pid}-{}-{host:x}-0", started - 2);
        let all = [&own, &earlier, &format!("{earlier}.all"), &elsewhere, "mine", &young];
        for name in all {
            let file = std::fs::File::create(directory.path().join(name)).unwrap();
            let age = if name == young { LEFT_BEHIND / 2 } else { 2 * LEFT_BEHIND };
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        }
        remove_left_behind(&directory.path().join(&own));
        let is_there = |name: &&str| directory.path().join(name).exists();
        let left: Vec<&str> = all.into_iter().filter(is_there).collect();
        assert_eq!(left, [&own, &elsewhere, "mine", &young]);
    }
}
