//! The archive to attach to a problem report.

use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use hopbine::Info;

use super::trial::Trial;
use crate::error::CliError;
use crate::output::OutputArg;
use crate::report::{Format, Report, RowsArg};

/// Prefixes of environment variables that concern a job; other variables are private and left out.
const VARIABLES: [&str; 5] = ["HOPBINE_", "OMP_", "PJM_", "FLIB_", "XOS_"];

/// Writes the archive, completely or not at all.
///
/// # Errors
/// [`CliError::Write`].
pub fn write(path: &Path, page: &Report, info: &Info, trial: &Trial) -> Result<(), CliError> {
    let failed = |source| CliError::Write { path: path.to_owned(), source };
    let directory = tempfile::tempdir().map_err(failed)?;
    let file = |name: &str| OutputArg::to(&directory.path().join(name));
    let page_as = |format, output| page.clone().write(&RowsArg { format, output });
    page_as(Format::Table, file("page.txt").page())?;
    page_as(Format::Json, file("page.json"))?;
    let info = serde_json::to_string_pretty(info).map_err(std::io::Error::from).map_err(failed)?;
    file("info.json").write(&info)?;
    file("timings.csv").write(&trial.timings)?;
    if let Some(judgement) = &trial.judgement {
        file("validate.txt").write(judgement)?;
    }
    let mut variables: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| VARIABLES.iter().any(|prefix| name.starts_with(prefix)))
        .map(|(name, value)| format!("{name}={}\n", value.display()))
        .collect();
    variables.sort();
    file("environment.txt").write(&variables.concat())?;

    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    archive.mode(tar::HeaderMode::Deterministic);
    archive.append_dir_all("hopbine-doctor", directory.path()).map_err(failed)?;
    let bytes = archive.into_inner().and_then(GzEncoder::finish).map_err(failed)?;
    OutputArg::to(path).write(&bytes)
}
