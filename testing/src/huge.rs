//! Huge pages (hugetlbfs). The administrator of a machine decides how many it has.

use std::ptr::null_mut;

/// Two zeroed huge pages of 2 MiB each, unmapped when dropped.
#[derive(Debug)]
pub struct HugePages(*mut u8);

impl HugePages {
    /// Size of the two pages in bytes.
    pub const BYTES: usize = 4 << 20;

    /// Maps the pages at an address of the kernel's choice, mostly the address of the pages dropped last. If the
    /// machine has no free huge pages, [`skip`](super::skip)s the calling test.
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

/// Why a test that needs huge pages is skipped.
pub const NONE: &str = "no huge pages are set aside (vm.nr_overcommit_hugepages)";

impl Drop for HugePages {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped by `map` and are unmapped once; users must not keep pointers to them.
        assert_eq!(unsafe { libc::munmap(self.0.cast(), Self::BYTES) }, 0);
    }
}
