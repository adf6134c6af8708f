//! Where output goes: standard output, or a file that is written whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use super::error::CliError;

/// Writes `text` to `file`, or to standard output if there is none.
///
/// A file is replaced only when the new text is complete on disk; if anything fails before,
/// what was there stays.
///
/// # Errors
/// [`CliError::Write`] or [`CliError::Output`].
pub fn write(text: &str, file: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = file else {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        return Ok(());
    };
    write_whole(text, path).map_err(|source| CliError::Write { path: path.to_owned(), source })
}

fn write_whole(text: &str, path: &Path) -> io::Result<()> {
    // In the same directory: a rename does not cross file systems.
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        let message = format!("{} is not a directory", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".hopbine-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private by default; this one becomes the user's file, for
        // which the process's mask decides.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.txt");
        write("one", Some(&path)).unwrap();
        write("two", Some(&path)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        let error = write("text", Some(&path)).unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(error.exit_status(), 1);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
