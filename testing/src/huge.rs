//! Huge pages (hugetlbfs), of which a machine has as many as its administrator sets aside.

use std::ptr::null_mut;

/// Two huge pages of 2 MiB, zeroed, unmapped when dropped.
#[derive(Debug)]
pub struct HugePages(*mut u8);

impl HugePages {
    /// How many bytes they have.
    pub const BYTES: usize = 4 << 20;

    /// At an address of the kernel's choice, mostly that of those dropped last. Where none can be had the caller is
    /// [`skip`](super::skip)ped.
    #[track_caller]
    pub fn map() -> Option<HugePages> {
        let flags =
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new private mapping.
        let start = unsafe { libc::mmap(null_mut(), Self::BYTES, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            super::skip(NONE);
            return None;
        }
        Some(HugePages(start.cast()))
    }

    /// The first byte.
    pub fn ptr(&self) -> *mut u8 {
        self.0
    }
}

/// Why a test that wants huge pages is skipped.
pub const NONE: &str = "no huge pages are set aside (vm.nr_overcommit_hugepages)";

impl Drop for HugePages {
    fn drop(&mut self) {
        // SAFETY: mapped above and unmapped once; pointers into it are its users' care.
        assert_eq!(unsafe { libc::munmap(self.0.cast(), Self::BYTES) }, 0);
    }
}
