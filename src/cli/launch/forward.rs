//! The ranks' output, passed on line by line, so that lines of two ranks never mix.

use std::io::{self, BufRead, BufReader, Read, Write};

/// A line longer than this is passed on in pieces.
const LONGEST_LINE: u64 = 64 * 1024;

/// Copies `from` to `to` until its end, each line in one piece and with `tag` before it. A
/// last line without an end gets one.
///
/// # Errors
/// If `to` cannot be written. A failure to read counts as the end of the input.
pub(super) fn lines(
    from: impl Read,
    tag: &str,
    mut to: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = tag.as_bytes().to_vec();
    loop {
        line.truncate(tag.len());
        match from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        to(&line)?;
    }
}

/// Writes to standard output at once.
pub(super) fn to_stdout(line: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line)?;
    out.flush()
}

/// Writes to standard error at once.
pub(super) fn to_stderr(line: &[u8]) -> io::Result<()> {
    io::stderr().lock().write_all(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_whole_and_get_their_tag() {
        let mut seen = Vec::new();
        lines(&b"one\ntwo\n\nlast"[..], "[3] ", |line| {
            seen.push(String::from_utf8_lossy(line).into_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, ["[3] one\n", "[3] two\n", "[3] \n", "[3] last\n"]);
    }

    #[test]
    fn a_closed_output_ends_it() {
        let closed = |_: &[u8]| Err(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(lines(&b"one\n"[..], "", closed).is_err());
    }
}
