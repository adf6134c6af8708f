//! The kernel's userfaultfd, as far as memory events need it; independent of caches, queues and threads.
//!
//! Source: the kernel's `Documentation/admin-guide/mm/userfaultfd.rst` ("Non-cooperative userfaultfd") and
//! `include/uapi/linux/userfaultfd.h`. The descriptor reports the unmapping, moving and discarding of the ranges
//! registered with it, by any code, including the C library's own `free` and `realloc`. The thread that takes memory
//! away sleeps until the report is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use bytemuck::{Pod, Zeroable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use super::span::Span;

const API: u64 = 0xAA;
const USER_MODE_ONLY: UserfaultfdFlags = UserfaultfdFlags::from_bits_retain(1);

const FEATURE_WRITE_PROTECT: u64 = 1 << 0;
const FEATURE_REMAP: u64 = 1 << 2;
const FEATURE_REMOVE: u64 = 1 << 3;
const FEATURE_UNMAP: u64 = 1 << 6;

const MODE_MISSING: u64 = 1 << 0;
const MODE_WRITE_PROTECT: u64 = 1 << 1;

const MSG_PAGEFAULT: u8 = 0x12;
const MSG_REMAP: u8 = 0x14;
const MSG_REMOVE: u8 = 0x15;
const MSG_UNMAP: u8 = 0x16;

/// An ioctl with a structure of `WORDS` 64-bit words.
struct Ioctl<const WORDS: usize>(u64);

/// The kernel reads and writes the structure, or only reads it.
const BOTH: u64 = 3;
const READ: u64 = 2;

impl<const WORDS: usize> Ioctl<WORDS> {
    const fn new(direction: u64, number: u64) -> Self {
        Ioctl(direction << 30 | (8 * WORDS as u64) << 16 | API << 8 | number)
    }
}

/// api, features, ioctls
const IOC_API: Ioctl<3> = Ioctl::new(BOTH, 0x3F);
/// start, length, mode, ioctls
const IOC_REGISTER: Ioctl<4> = Ioctl::new(BOTH, 0x00);
/// start, length
const IOC_UNREGISTER: Ioctl<2> = Ioctl::new(READ, 0x01);
/// start, length
const IOC_WAKE: Ioctl<2> = Ioctl::new(READ, 0x02);
/// start, length, mode, bytes zeroed
const IOC_ZEROPAGE: Ioctl<4> = Ioctl::new(BOTH, 0x04);

/// `struct uffd_msg`: the kind, then up to three words that depend on the kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(super) struct UffdMessage {
    event: u8,
    reserved: [u8; 7],
    args: [u64; 3],
}

/// The contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UffdReport {
    /// The range lost its pages or its mapping.
    Removed(Span),
    /// A thread waits for the page at this address.
    Fault(usize),
    /// A kind that was not requested.
    Other,
}

impl UffdMessage {
    pub(super) fn report(&self) -> UffdReport {
        let [first, second, third] = self.args.map(|arg| arg as usize);
        let end = match self.event {
            MSG_REMOVE | MSG_UNMAP => second,
            MSG_REMAP => first.saturating_add(third),
            MSG_PAGEFAULT => return UffdReport::Fault(second),
            _ => return UffdReport::Other,
        };
        if first < end { UffdReport::Removed(Span::raw(first, end)) } else { UffdReport::Other }
    }
}

/// How ranges are registered with the kernel; both modes report the same events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchMode {
    /// As write-protectable, with nothing ever protected: no page fault is delayed, and no privilege is needed.
    /// x86-64 since Linux 5.7, AArch64 since 6.10.
    WriteProtect,
    /// For missing pages: a thread that touches a missing page waits for the reader of the descriptor. Since Linux
    /// 4.11; where `vm.unprivileged_userfaultfd` exists and is 0, for privileged processes only.
    Missing,
}

impl WatchMode {
    /// The mode's name in statistics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::WriteProtect => "userfaultfd write-protect",
            Self::Missing => "userfaultfd missing",
        }
    }
}

/// An open userfaultfd.
#[derive(Debug)]
pub(super) struct Uffd {
    file: File,
    mode: WatchMode,
}

impl Uffd {
    /// Opens a descriptor that reports events.
    ///
    /// # Errors
    /// The kernel's error if it lacks the call, the features or the permission.
    pub(super) fn open(mode: WatchMode) -> io::Result<Self> {
        let (flags, wanted) = match mode {
            WatchMode::WriteProtect => (USER_MODE_ONLY, FEATURE_WRITE_PROTECT),
            WatchMode::Missing => (UserfaultfdFlags::empty(), 0),
        };
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK | flags;
        // SAFETY: the call makes a descriptor and touches no memory of this process.
        let uffd = Self { file: File::from(unsafe { userfaultfd(flags)? }), mode };
        let features = FEATURE_UNMAP | FEATURE_REMAP | FEATURE_REMOVE | wanted;
        uffd.ioctl(IOC_API, [API, features, 0])?;
        Ok(uffd)
    }

    pub(super) fn mode(&self) -> WatchMode {
        self.mode
    }

    /// Requests reports of events of the range (whole pages).
    ///
    /// # Errors
    /// The kernel's error for memory that cannot be watched, such as files, or memory that another descriptor
    /// watches.
    pub(super) fn watch(&self, span: Span) -> io::Result<()> {
        let mode = match self.mode {
            WatchMode::WriteProtect => MODE_WRITE_PROTECT,
            WatchMode::Missing => MODE_MISSING,
        };
        self.ioctl(IOC_REGISTER, [span.start() as u64, span.len() as u64, mode, 0])
    }

    /// Ends the watch of a range and wakes the threads that wait for its pages.
    ///
    /// # Errors
    /// The kernel's error, in particular for a range that is not whole pages of its mapping.
    pub(super) fn unwatch(&self, span: Span) -> io::Result<()> {
        self.ioctl(IOC_UNREGISTER, [span.start() as u64, span.len() as u64])
    }

    /// Wakes the threads that wait for pages of the range, so that they try again.
    pub(super) fn wake(&self, span: Span) {
        // An error means that no thread waits.
        let _ = self.ioctl(IOC_WAKE, [span.start() as u64, span.len() as u64]);
    }

    /// Closes the descriptor, which ends every watch and wakes every thread that waits for a report to be read. The
    /// descriptor's number then refers to /dev/null, so that threads which still use it do no harm.
    pub(super) fn abandon(&self) {
        // SAFETY: the path is a C string. If the file cannot be opened, dup2 refuses -1 and nothing happens; the
        // descriptor belongs to this value, and its replacement is intended.
        unsafe {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            libc::dup2(null, self.file.as_raw_fd());
            if null >= 0 {
                libc::close(null);
            }
        }
    }

    /// False while the kernel has taken watched memory away and the report has not been read. During that time the
    /// kernel answers every request to fill pages with EAGAIN, before it checks the range; the range of this request
    /// is empty, and so gets another error otherwise.
    pub(super) fn settled(&self) -> bool {
        let answer = self.ioctl(IOC_ZEROPAGE, [0; 4]);
        !matches!(answer, Err(error) if error.raw_os_error() == Some(libc::EAGAIN))
    }

    /// Sleeps until there is something to read.
    ///
    /// # Errors
    /// The kernel's error; an interruption by a signal is no error.
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut entry = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut entry, None) {
            Ok(_) if entry[0].revents().contains(PollFlags::IN) => Ok(()),
            Ok(_) => Err(io::Error::other("userfaultfd reports an error condition")),
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads waiting messages; fewer than fit in `buffer`, or none, is no error.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn read<'b>(&self, buffer: &'b mut [UffdMessage]) -> io::Result<&'b [UffdMessage]> {
        match (&self.file).read(bytemuck::cast_slice_mut(buffer)) {
            Ok(bytes) => Ok(&buffer[..bytes / size_of::<UffdMessage>()]),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(&[]),
                _ => Err(error),
            },
        }
    }

    fn ioctl<const N: usize>(&self, request: Ioctl<N>, mut args: [u64; N]) -> io::Result<()> {
        // SAFETY: the structure has the length that the request states and lives through the call. The requests of
        // this file mark mappings and change no content: only an empty range is filled. The cast suits both C
        // libraries, whose request types differ in sign.
        let answer =
            unsafe { libc::ioctl(self.file.as_raw_fd(), request.0 as _, args.as_mut_ptr()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Pages;
    use hopbine_testing::skip;

    #[test]
    fn request_numbers_are_those_of_the_kernel() {
        assert_eq!(IOC_API.0, 0xc018_aa3f);
        assert_eq!(IOC_REGISTER.0, 0xc020_aa00);
        assert_eq!(IOC_UNREGISTER.0, 0x8010_aa01);
        assert_eq!(IOC_WAKE.0, 0x8010_aa02);
        assert_eq!(IOC_ZEROPAGE.0, 0xc020_aa04);
        assert_eq!(size_of::<UffdMessage>(), 32);
    }

    /// While a thread sleeps in `munmap` because the report has not been read, the descriptor is not settled.
    /// `give_up` relies on `abandon` waking that thread.
    #[test]
    fn unread_reports_are_not_settled_and_abandoning_frees_the_waiting() {
        for abandon in [false, true] {
            let uffd = match Uffd::open(WatchMode::WriteProtect) {
                Ok(uffd) => uffd,
                Err(error) => {
                    return skip(format!(
                        "this kernel opens no write-protect userfaultfd: {error}"
                    ));
                }
            };
            let pages = Pages::new(1 << 16).unwrap();
            let span = pages.span();
            if let Err(error) = uffd.watch(span) {
                return skip(format!("this kernel watches no memory: {error}"));
            }
            assert!(uffd.settled());
            std::thread::scope(|scope| {
                let unmapping = scope.spawn(move || drop(pages));
                uffd.wait().unwrap();
                assert!(!uffd.settled() && !unmapping.is_finished());
                if abandon {
                    uffd.abandon();
                } else {
                    let mut buffer = [UffdMessage::default(); 4];
                    let reports = uffd.read(&mut buffer).unwrap().iter().map(UffdMessage::report);
                    assert_eq!(reports.collect::<Vec<_>>(), [UffdReport::Removed(span)]);
                }
                unmapping.join().unwrap();
            });
            assert!(uffd.settled());
        }
    }
}
