//! The kernel's userfaultfd, as far as memory events need it. Knows nothing of
//! caches, queues or threads.
//!
//! Source: the kernel's `Documentation/admin-guide/mm/userfaultfd.rst` ("Non-cooperative
//! userfaultfd") and `include/uapi/linux/userfaultfd.h`. The descriptor reports
//! the unmapping, moving and discarding of the ranges registered with it, whoever
//! asks for it, so also the C library's own `free` and `realloc`. The thread that
//! takes memory away sleeps until the report is read.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::span::Span;

const API: u64 = 0xAA;
const USER_MODE_ONLY: libc::c_int = 1;

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

/// Direction bits of an ioctl number: 1 the kernel reads, 2 it writes.
const fn request(direction: u64, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | API << 8 | number
}

const IOC_API: u64 = request(3, 0x3F, size_of::<ApiArgs>());
const IOC_REGISTER: u64 = request(3, 0x00, size_of::<RegisterArgs>());
const IOC_UNREGISTER: u64 = request(2, 0x01, size_of::<RangeArgs>());
const IOC_WAKE: u64 = request(2, 0x02, size_of::<RangeArgs>());
const IOC_ZEROPAGE: u64 = request(3, 0x04, size_of::<ZeroPageArgs>());

#[repr(C)]
struct ApiArgs {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct RangeArgs {
    start: u64,
    len: u64,
}

#[repr(C)]
struct RegisterArgs {
    range: RangeArgs,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct ZeroPageArgs {
    range: RangeArgs,
    mode: u64,
    zeroed: i64,
}

/// `struct uffd_msg`: the kind, then up to three words that depend on it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message {
    event: u8,
    reserved: [u8; 7],
    args: [u64; 3],
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The range lost its pages or its mapping.
    Gone {
        /// First address.
        addr: usize,
        /// Length in bytes.
        len: usize,
    },
    /// A thread waits for the page at this address.
    Fault {
        /// The address it touched.
        addr: usize,
    },
    /// A kind that was not asked for.
    Other,
}

impl Message {
    pub(super) fn report(&self) -> Report {
        let [first, second, third] = self.args.map(|arg| arg as usize);
        match self.event {
            MSG_REMOVE | MSG_UNMAP => {
                Report::Gone { addr: first, len: second.saturating_sub(first) }
            }
            MSG_REMAP => Report::Gone { addr: first, len: third },
            MSG_PAGEFAULT => Report::Fault { addr: second },
            _ => Report::Other,
        }
    }
}

/// How ranges are registered with the kernel; events are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchMode {
    /// As write-protectable, with nothing ever protected: no page fault is delayed,
    /// and no privilege is needed. x86-64 since Linux 5.7, AArch64 since 6.10.
    WriteProtect,
    /// For missing pages: a touched page that is not there waits for the reader of
    /// the descriptor. Since Linux 4.11; where
    /// `vm.unprivileged_userfaultfd` exists and is 0, for privileged processes only.
    Missing,
}

/// An open userfaultfd.
#[derive(Debug)]
pub(super) struct Uffd {
    fd: OwnedFd,
    mode: WatchMode,
}

impl Uffd {
    /// Opens a descriptor that reports events.
    ///
    /// # Errors
    /// What the kernel says when it lacks the call, the features or the permission.
    pub(super) fn open(mode: WatchMode) -> io::Result<Self> {
        let (flags, wanted) = match mode {
            WatchMode::WriteProtect => (USER_MODE_ONLY, FEATURE_WRITE_PROTECT),
            WatchMode::Missing => (0, 0),
        };
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | flags;
        // SAFETY: the call takes one integer and touches no memory of ours.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just given this descriptor to us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let uffd = Self { fd, mode };
        let mut args = ApiArgs {
            api: API,
            features: FEATURE_UNMAP | FEATURE_REMAP | FEATURE_REMOVE | wanted,
            ioctls: 0,
        };
        // SAFETY: the request reads and writes one ApiArgs.
        unsafe { uffd.ioctl(IOC_API, &mut args) }?;
        Ok(uffd)
    }

    pub(super) fn mode(&self) -> WatchMode {
        self.mode
    }

    /// Has events of the range (whole pages) reported.
    ///
    /// # Errors
    /// What the kernel says of memory that cannot be watched, such as files, or
    /// memory that another descriptor watches.
    pub(super) fn watch(&self, span: Span) -> io::Result<()> {
        let mut args = RegisterArgs {
            range: RangeArgs { start: span.start() as u64, len: span.len() as u64 },
            mode: match self.mode {
                WatchMode::WriteProtect => MODE_WRITE_PROTECT,
                WatchMode::Missing => MODE_MISSING,
            },
            ioctls: 0,
        };
        // SAFETY: the request reads and writes one RegisterArgs; it marks mappings
        // and changes no content.
        unsafe { self.ioctl(IOC_REGISTER, &mut args) }
    }

    /// Ends the watch of a range and lets those go on who wait for its pages.
    ///
    /// # Errors
    /// What the kernel says, in particular of a range that is not whole pages of
    /// its mapping.
    pub(super) fn unwatch(&self, span: Span) -> io::Result<()> {
        let mut args = RangeArgs { start: span.start() as u64, len: span.len() as u64 };
        // SAFETY: the request reads one RangeArgs; it marks mappings only.
        unsafe { self.ioctl(IOC_UNREGISTER, &mut args) }
    }

    /// Lets those who wait for pages of the range try again.
    pub(super) fn wake(&self, span: Span) {
        let mut args = RangeArgs { start: span.start() as u64, len: span.len() as u64 };
        // SAFETY: the request reads one RangeArgs and changes no memory. A refusal
        // means that nobody waits.
        let _ = unsafe { self.ioctl(IOC_WAKE, &mut args) };
    }

    /// Closes the descriptor, which ends every watch and wakes every thread that waits for a
    /// report to be read. Its number then leads to /dev/null, so that threads which go on
    /// using it do no harm.
    pub(super) fn abandon(&self) {
        // SAFETY: the path is a C string. If the file cannot be opened, dup2 refuses
        // -1 and nothing happens; `fd` is ours, and replacing it is the purpose.
        unsafe {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            libc::dup2(null, self.fd.as_raw_fd());
            if null >= 0 {
                libc::close(null);
            }
        }
    }

    /// False while the kernel has taken watched memory away and the report has not
    /// been read. The kernel answers every request to fill pages with EAGAIN
    /// during that time, before it looks at the range; ours is empty and so is
    /// refused otherwise.
    pub(super) fn settled(&self) -> bool {
        let mut args = ZeroPageArgs { range: RangeArgs { start: 0, len: 0 }, mode: 0, zeroed: 0 };
        // SAFETY: the request reads and writes one ZeroPageArgs; of an empty range
        // nothing is filled.
        let answer = unsafe { self.ioctl(IOC_ZEROPAGE, &mut args) };
        !matches!(answer, Err(error) if error.raw_os_error() == Some(libc::EAGAIN))
    }

    /// Sleeps until there is something to read.
    ///
    /// # Errors
    /// What the kernel says; an interruption by a signal is none.
    pub(super) fn wait(&self) -> io::Result<()> {
        let mut entry = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives through the call.
        if unsafe { libc::poll(&mut entry, 1, -1) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else if entry.revents & libc::POLLIN == 0 {
            return Err(io::Error::other("userfaultfd reports an error condition"));
        }
        Ok(())
    }

    /// Reads waiting messages; fewer than there is room for, or none, is no error.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn read<'b>(&self, buffer: &'b mut [Message]) -> io::Result<&'b [Message]> {
        let bytes = size_of_val(buffer);
        // SAFETY: the buffer is writable for this many bytes, and any bit pattern is a
        // valid Message.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), bytes) };
        match usize::try_from(got) {
            Ok(got) => Ok(&buffer[..got / size_of::<Message>()]),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(&[]),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
                error => Err(error),
            },
        }
    }

    /// # Safety
    /// `args` is the structure which the kernel reads and writes for `request`.
    unsafe fn ioctl<T>(&self, request: u64, args: &mut T) -> io::Result<()> {
        // SAFETY: the caller vouches for the structure, which lives through the call.
        // The cast suits both C libraries, whose request types differ in sign.
        let answer = unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, args as *mut T) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_numbers_are_those_of_the_kernel() {
        assert_eq!(IOC_API, 0xc018_aa3f);
        assert_eq!(IOC_REGISTER, 0xc020_aa00);
        assert_eq!(IOC_UNREGISTER, 0x8010_aa01);
        assert_eq!(IOC_WAKE, 0x8010_aa02);
        assert_eq!(IOC_ZEROPAGE, 0xc020_aa04);
        assert_eq!(size_of::<Message>(), 32);
    }

    /// While a thread sleeps in `munmap` because nobody has read the report, the
    /// descriptor is not settled; `give_up` relies on the second half.
    #[test]
    fn unread_reports_are_not_settled_and_abandoning_frees_the_waiting() {
        for abandon in [false, true] {
            let Ok(uffd) = Uffd::open(WatchMode::WriteProtect) else {
                eprintln!("skipped: this kernel offers no write-protect userfaultfd");
                return;
            };
            let len = 1 << 16;
            // SAFETY: a new private mapping at an address of the kernel's choice.
            let addr = unsafe {
                let (flags, write) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_WRITE);
                libc::mmap(std::ptr::null_mut(), len, write, flags, -1, 0) as usize
            };
            if let Err(error) = uffd.watch(Span::raw(addr, addr + len)) {
                eprintln!("skipped: this kernel cannot watch: {error}");
                return;
            }
            assert!(uffd.settled());
            std::thread::scope(|scope| {
                // SAFETY: mapped above, used by nobody.
                let unmapping = scope.spawn(move || unsafe { libc::munmap(addr as _, len) });
                uffd.wait().unwrap();
                assert!(!uffd.settled() && !unmapping.is_finished());
                if abandon {
                    uffd.abandon();
                } else {
                    let mut buffer = [Message::default(); 4];
                    let reports: Vec<_> = uffd.read(&mut buffer).unwrap().iter().collect();
                    assert_eq!(reports.len(), 1);
                    assert_eq!(reports[0].report(), Report::Gone { addr, len });
                }
                assert_eq!(unmapping.join().unwrap(), 0);
            });
            assert!(uffd.settled());
        }
    }
}
