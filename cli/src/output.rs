//! Output to standard output, unbuffered, or to a file that is written completely or not at all.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use hopbine_meet::print_remark;
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};

use super::error::CliError;

/// Where a command writes its result.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputArg {
    /// Write to this file instead of standard output. An existing file is replaced when the whole text is there
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Characters of a line where nothing says how wide it may be; no limit if not given.
    #[arg(skip)]
    page: Option<usize>,
}

impl OutputArg {
    /// Output to the file `path`.
    pub fn to(path: &Path) -> Self {
        OutputArg { file: Some(path.to_owned()), page: None }
    }

    /// The same output as a page: limits the width of lines even without a terminal.
    pub fn page(self) -> Self {
        OutputArg { page: Some(100), ..self }
    }

    /// Whether the output goes to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// The path of the file; None for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Width of a line in characters: for a file the page's; else `COLUMNS` of the environment, the terminal's width,
    /// or the page's. `None` for no limit.
    pub fn width(&self) -> Option<usize> {
        if self.file.is_some() {
            return self.page;
        }
        let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|&n| n > 0);
        columns()
            .or_else(|| io::stdout().is_terminal().then(terminal_width).flatten())
            .or(self.page)
    }

    /// Checks that this file and `others` can be written: before work whose result they are to take.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn check<'a>(
        &'a self,
        others: impl IntoIterator<Item = &'a Option<PathBuf>>,
    ) -> Result<(), CliError> {
        let check = |path: &Path| match path.metadata() {
            // A pipe is not opened before there is text: a reader would see its end.
            Ok(found) if !found.is_file() && !found.is_dir() => {
                accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).map_err(io::Error::from)
            }
            _ => Replacement::begin(path).map(drop),
        };
        std::iter::once(&self.file).chain(others).flatten().try_for_each(|path| {
            check(path).map_err(|source| CliError::Write { path: path.clone(), source })
        })
    }

    /// Opens the output.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn open(&self) -> Result<OutputSink, CliError> {
        match &self.file {
            None => Ok(OutputSink(Kind::Standard)),
            Some(path) => match Replacement::begin(path) {
                Ok(replacement) => Ok(OutputSink(Kind::File(replacement, path.clone()))),
                Err(source) => Err(CliError::Write { path: path.clone(), source }),
            },
        }
    }

    /// Writes a complete text.
    ///
    /// # Errors
    /// [`CliError::Write`] or [`CliError::Output`].
    pub fn write(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), CliError> {
        let mut sink = self.open()?;
        sink.write(text)?;
        sink.finish()
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// An open output.
pub struct OutputSink(Kind);

enum Kind {
    Standard,
    File(Replacement, PathBuf),
}

impl OutputSink {
    /// Writes a piece of text; standard output is flushed.
    ///
    /// # Errors
    /// [`CliError::Write`] or [`CliError::Output`].
    pub fn write(&mut self, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<(), CliError> {
        let text = text.as_ref();
        match &mut self.0 {
            Kind::Standard => {
                let mut out = io::stdout().lock();
                let written = out.write_all(text).and_then(|()| out.flush());
                written.map_err(CliError::Output)
            }
            Kind::File(replacement, path) => replacement
                .write(text)
                .map_err(|source| CliError::Write { path: path.clone(), source }),
        }
    }

    /// Writes the text so far to `FILE.part`, which is removed when the output is complete. If the command ends before,
    /// that file stays, and an error names it.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn keep(&mut self) -> Result<(), CliError> {
        match &mut self.0 {
            Kind::File(Replacement::Whole { text, part, target, .. }, _) => {
                let path = part_path(target);
                Part::keep(part, &path, text).map_err(|source| CliError::Write { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Completes the output. If the file cannot be replaced, the text goes to standard output, since it may have
    /// taken hours to compute.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn finish(self) -> Result<(), CliError> {
        let Kind::File(replacement, path) = self.0 else { return Ok(()) };
        let finished = replacement.finish();
        if let Replacement::Whole { text, part, .. } = replacement {
            if finished.is_err() {
                // The error of the file is the one that is reported.
                let _ = io::stdout().lock().write_all(&text);
            } else if let Some(part) = part {
                part.remove();
            }
        }
        finished.map_err(|source| CliError::Write { path, source })
    }
}

/// How a file is written.
enum Replacement {
    /// The text is collected first, so that an interrupted command changes nothing; then it is written to a file in
    /// the same directory, which is renamed to the path.
    Whole { text: Vec<u8>, target: PathBuf, before: Option<Before>, part: Option<Part> },
    /// The path is a device or a pipe, not a regular file: the text is written to it directly.
    Through(File),
}

/// `FILE.part`, which has what a long command has found for FILE so far.
pub fn part_path(file: &Path) -> PathBuf {
    with_suffix(file, ".part")
}

/// Opens `FILE.part`, if it exists. Nothing but a regular file is opened, since another user may have put a link or a pipe
/// into a shared directory.
pub fn open_part(path: &Path) -> io::Result<Option<File>> {
    // Without NONBLOCK, opening a pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match File::options().read(true).custom_flags(flags.bits() as i32).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let is_file = file.metadata()?.is_file();
    if is_file { Ok(Some(file)) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Replaces `FILE.part` as a whole, but nothing other than a regular file, as in [`open_part`].
///
/// # Errors
/// [`CliError::Write`].
pub fn replace_part(path: &Path, text: String) -> Result<(), CliError> {
    let target = path.to_owned();
    let part = Replacement::Whole { text: text.into(), target, before: None, part: None };
    part.finish().map_err(|source| CliError::Write { path: path.to_owned(), source })
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// A file with the text so far.
struct Part {
    file: File,
    path: PathBuf,
    len: usize,
    is_removed: bool,
}

impl Part {
    /// Writes what a part lacks of a text; creates it if it does not exist.
    fn keep(part: &mut Option<Part>, path: &Path, text: &[u8]) -> io::Result<()> {
        let part = match part {
            Some(part) => part,
            None => {
                let (file, path) = (Part::create(path)?, path.to_owned());
                part.insert(Part { file, path, len: 0, is_removed: false })
            }
        };
        part.file.write_all(&text[part.len..])?;
        part.len = text.len();
        Ok(())
    }

    /// Creates the file. What has its name is kept under another one, and not opened: it is the part of an earlier
    /// command, or a link or a pipe that another user has put into a shared directory.
    fn create(path: &Path) -> io::Result<File> {
        if std::fs::symlink_metadata(path).is_ok() {
            let old = with_suffix(path, ".old");
            std::fs::rename(path, &old)?;
            print_remark(format_args!(
                "{} was there before: it is {} now",
                path.display(),
                old.display()
            ));
        }
        File::create_new(path)
    }

    fn remove(mut self) {
        // A file that cannot be removed has no more than the whole text has.
        self.is_removed = std::fs::remove_file(&self.path).is_ok();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_removed {
            print_remark(format_args!("what there is so far is in {}", self.path.display()));
        }
    }
}

/// Attributes of the old file that the new file inherits.
struct Before {
    permissions: Permissions,
    owner: u32,
    group: u32,
}

impl Replacement {
    fn begin(path: &Path) -> io::Result<Self> {
        // A link stays; its target is replaced. A target without a path of its own (a pipe behind /dev/stdout, say)
        // is written to through the link.
        let (target, before) = match std::fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => {
                let found = path.metadata()?;
                let target = if found.is_file() { path.canonicalize()? } else { path.to_owned() };
                (target, Some(found))
            }
            Ok(found) => (path.to_owned(), Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(error) => return Err(error),
        };
        if before.as_ref().is_some_and(Metadata::is_dir) {
            return Err(io::Error::other("it is a directory"));
        }
        // If the path is a standard stream, such as /dev/stdout, its file keeps its earlier contents and is not
        // replaced.
        if let Some(stream) = before.as_ref().and_then(standard_stream) {
            return Ok(Replacement::Through(stream?));
        }
        if before.is_some() {
            // A file without write permission is not replaced.
            let file = File::options().write(true).open(&target)?;
            if !file.metadata()?.is_file() {
                return Ok(Replacement::Through(file));
            }
        }
        let directory = directory_of(&target);
        if !directory.is_dir() {
            let message = format!("{} is not a directory", directory.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, directory, wanted, AtFlags::EACCESS).map_err(|error| {
            let error = io::Error::from(error);
            let directory = directory.display();
            let message = format!(
                "cannot create a file in {directory}, where the text is written before it is renamed: {error}"
            );
            io::Error::new(error.kind(), message)
        })?;
        let before = before.map(|found| Before {
            permissions: found.permissions(),
            owner: found.uid(),
            group: found.gid(),
        });
        Ok(Replacement::Whole { text: Vec::new(), target, before, part: None })
    }

    fn write(&mut self, more: &[u8]) -> io::Result<()> {
        match self {
            Replacement::Whole { text, .. } => text.write_all(more),
            Replacement::Through(file) => file.write_all(more),
        }
    }

    fn finish(&self) -> io::Result<()> {
        let Replacement::Whole { text, target, before, .. } = self else { return Ok(()) };
        // The mode of a new file comes from the umask; an old file keeps its mode. Created in the same directory,
        // since a rename does not cross file systems.
        let mut file = tempfile::Builder::new()
            .prefix(".hopbine-")
            .suffix(".part")
            .permissions(Permissions::from_mode(if before.is_some() { 0o600 } else { 0o666 }))
            .tempfile_in(directory_of(target))?;
        if let Some(before) = before {
            // Only root may restore the owner; for other users the file becomes their own.
            let _ = fchown(file.as_file(), Some(before.owner), Some(before.group));
            file.as_file().set_permissions(before.permissions.clone())?;
        }
        file.write_all(text)?;
        file.as_file().sync_all()?;
        // Something other than a regular file that has appeared at the path in the meantime is not replaced.
        if std::fs::symlink_metadata(target).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("it was not a regular file any more at the end"));
        }
        file.persist(target).map_err(|error| error.error)?;
        Ok(())
    }
}

/// A duplicate of standard output or standard error, if the path refers to one of them.
fn standard_stream(found: &Metadata) -> Option<io::Result<File>> {
    let duplicate = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().map(File::from);
    let is_it = |file: &io::Result<File>| {
        let stream = file.as_ref().ok().and_then(|file| file.metadata().ok());
        stream.is_some_and(|stream| (stream.dev(), stream.ino()) == (found.dev(), found.ino()))
    };
    let (out, error) = (io::stdout(), io::stderr());
    [out.as_fd(), error.as_fd()].into_iter().map(duplicate).find(is_it)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn entries(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.txt");
        let output = OutputArg::to(&path);
        output.write("one").unwrap();
        output.write("two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "before").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let link = directory.path().join("link");
        symlink("secret", &link).unwrap();
        OutputArg::to(&link).write("after").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let dangling = directory.path().join("dangling");
        symlink("nowhere", &dangling).unwrap();
        assert!(OutputArg::to(&dangling).write("text").is_err());
        assert_eq!(entries(directory.path()), 3);
    }

    #[test]
    fn devices_and_pipes_are_written_to_and_stay() {
        OutputArg::to(Path::new("/dev/null")).write("text").unwrap();
        assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        use rustix::fs::{FileType, Mode, mknodat};
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::thread::scope(|threads| {
            let reader = threads.spawn(|| std::fs::read_to_string(&path).unwrap());
            OutputArg::to(&path).write("through").unwrap();
            assert_eq!(reader.join().unwrap(), "through");
        });
        assert!(std::fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }

    /// As with `-o /dev/stdout` in a pipe, and with the shell's `-o >(program)`.
    #[test]
    fn a_link_to_a_pipe_without_a_path_is_written_through() {
        let (mut reader, writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", writer.as_raw_fd()));
        OutputArg::to(&path).write("through").unwrap();
        drop(writer);
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "through");
    }

    #[test]
    fn a_failure_names_the_file_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        std::fs::create_dir(&path).unwrap();
        let error = OutputArg::to(&path).write("text").unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(error.exit_status(), 1);
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn what_comes_before_the_end_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.txt");
        let mut sink = OutputArg::to(&path).open().unwrap();
        sink.write("text\n").unwrap();
        symlink("elsewhere", &path).unwrap();
        let error = sink.finish().unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn a_directory_without_permission_is_named_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
        let path = directory.path().join("out.txt");
        let write = || {
            // Root may write everywhere. Only this thread becomes another user.
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            }
            OutputArg::to(&path).write("text").unwrap_err()
        };
        let error = std::thread::scope(|threads| threads.spawn(write).join().unwrap());
        let error = error.to_string();
        assert!(error.contains("before it is renamed: Permission denied"), "{error}");
    }

    /// Output that is not finished, for instance after an error, changes nothing.
    #[test]
    fn what_is_not_finished_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.txt");
        OutputArg::to(&path).write("whole").unwrap();
        let mut sink = OutputArg::to(&path).open().unwrap();
        sink.write("half").unwrap();
        drop(sink);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(entries(directory.path()), 1);
    }

    /// What is kept as it comes stays only if the output is not finished.
    #[test]
    fn a_part_stays_until_the_whole_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.txt");
        let part = directory.path().join("out.txt.part");
        for is_finished in [false, true] {
            let mut sink = OutputArg::to(&path).open().unwrap();
            sink.write("head\n").unwrap();
            assert!(is_finished || !part.exists());
            for row in ["one\n", "two\n"] {
                sink.write(row).unwrap();
                sink.keep().unwrap();
            }
            assert_eq!(std::fs::read_to_string(&part).unwrap(), "head\none\ntwo\n");
            if is_finished {
                sink.finish().unwrap();
            } else {
                drop(sink);
                assert!(!path.exists());
            }
            // The first one's part is kept.
            assert_eq!(entries(directory.path()), 1 + usize::from(is_finished));
        }
        assert!(path.exists());
    }

    /// Neither the part that an interrupted command has left, nor what another user has put at its place, is written to.
    #[test]
    fn what_is_at_the_place_of_the_part_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let [path, target, pipe] =
            ["r.csv", "target", "pipe"].map(|name| directory.path().join(name));
        std::fs::write(&target, "before").unwrap();
        let part = part_path(&path);
        let old = with_suffix(&part, ".old");
        let keep = || {
            let mut sink = OutputArg::to(&path).open().unwrap();
            sink.write("row\n").unwrap();
            sink.keep().unwrap();
            assert_eq!(std::fs::read_to_string(&part).unwrap(), "row\n");
            std::fs::symlink_metadata(&old).unwrap().file_type()
        };
        std::fs::write(&part, "rows that took hours").unwrap();
        assert!(keep().is_file());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "rows that took hours");
        std::fs::remove_file(&part).unwrap();
        symlink(&target, &part).unwrap();
        assert!(keep().is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "before");
        use rustix::fs::{FileType, Mode, mknodat};
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::fs::rename(&pipe, &part).unwrap();
        assert!(keep().is_fifo());
    }

    /// A check changes nothing, and does not wait for the reader of a pipe.
    #[test]
    fn what_cannot_be_written_is_found_before() {
        let directory = tempfile::tempdir().unwrap();
        let [file, pipe] = ["out.txt", "pipe"].map(|name| directory.path().join(name));
        use rustix::fs::{FileType, Mode, mknodat};
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        OutputArg::to(&file).check([&None, &Some(pipe)]).unwrap();
        assert_eq!(entries(directory.path()), 1);
        let missing = Some(directory.path().join("missing/out.svg"));
        let error = OutputArg::to(&file).check([&missing]).unwrap_err().to_string();
        assert!(error.contains("missing/out.svg"), "{error}");
        assert!(OutputArg::to(directory.path()).check([]).is_err());
    }
}
