//! Keeps registrations without an event source: the program has promised to unmap no memory, and the allocator, which
//! would unmap memory on its own, is configured not to.
//!
//! # Configuration of glibc
//! `mallopt` sets that no block has a mapping of its own, which `free` would unmap and `realloc` move; that heaps
//! never shrink; and that new threads have no heaps of their own, which are unmapped when they are empty.
//! `malloc_info` says whether there were such blocks and heaps before, and a trial whether the allocator obeys.
//!
//! # Other allocators
//! Other allocators return memory to the system at any time, by threads of their own or after a delay, which no trial
//! shows. They are refused, except Fujitsu's library for large pages, whose users' guide names a setting that keeps
//! memory.

use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::events::{EventLog, EventSource};
use super::page_bytes;
use super::span::Span;
use super::stats::CacheMode;
use crate::symbols::{file_of, symbol};

/// A block size that an allocator returns to the system if it returns any: glibc's largest threshold is 32 MiB.
const TRIAL_BYTES: usize = 64 << 20;
/// Fujitsu's library for large pages, and its setting with which `free` keeps memory.
const LARGE_PAGES: (&str, &str, &str) = ("libmpg.so", "XOS_MMM_L_ARENA_FREE", "2");

/// An event source without events.
#[derive(Debug)]
struct Trusted {
    log: Arc<EventLog>,
    /// Why there is no better source.
    reason: String,
}

/// The source for this process if `reason` excludes all others; the first call configures the allocator.
///
/// # Errors
/// The reason, and why the allocator cannot be trusted; the same at every call.
pub(super) fn source(reason: String) -> Result<Arc<dyn EventSource>, String> {
    static KEEPS: OnceLock<Result<(), String>> = OnceLock::new();
    match KEEPS.get_or_init(keep_all) {
        Ok(()) => Ok(Arc::new(Trusted { log: Arc::new(EventLog::new(1)), reason })),
        Err(refused) => Err(format!("{refused}; {reason}")),
    }
}

impl EventSource for Trusted {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn mode(&self) -> CacheMode {
        CacheMode::Trusted { reason: self.reason.clone() }
    }

    fn log(&self) -> Arc<EventLog> {
        self.log.clone()
    }

    fn watch(&self, _: Span) -> io::Result<()> {
        Ok(())
    }

    fn unwatch(&self, _: Span) {}

    fn settled(&self) -> bool {
        true
    }
}

/// Configures the allocator to keep all memory.
///
/// # Errors
/// Why it may still return memory.
fn keep_all() -> Result<(), String> {
    let file = file_of_malloc().ok_or("the file of malloc is not known")?;
    let is_the_c_librarys = is_known(&file, &|name| std::env::var(name).ok())?;
    set_options()?;
    if is_the_c_librarys {
        starts_clean(&info()?)?;
    }
    match returns_memory() {
        false => Ok(()),
        true => Err(format!("{file} returns memory to the system in spite of mallopt")),
    }
}

/// The object that contains the `malloc` that programs call.
fn file_of_malloc() -> Option<String> {
    let malloc: unsafe extern "C" fn(usize) -> *mut c_void = libc::malloc;
    file_of(malloc as *const c_void).map(|file| file.to_string_lossy().into_owned())
}

/// Whether an allocator is the C library's.
///
/// # Errors
/// If the allocator cannot be configured to keep memory.
fn is_known(file: &str, get: &dyn Fn(&str) -> Option<String>) -> Result<bool, String> {
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    let (large_pages, variable, keeps) = LARGE_PAGES;
    if name.starts_with("libc.so") || name.starts_with("libc-2") {
        return Ok(true);
    }
    if !name.starts_with(large_pages) {
        return Err(format!(
            "malloc is that of {file}, which may return memory to the system; use the C library's"
        ));
    }
    match get(variable).as_deref() {
        Some(value) if value == keeps => Ok(false),
        _ => Err(format!(
            "malloc is that of {file}, which keeps memory only with {variable}={keeps}"
        )),
    }
}

fn set_options() -> Result<(), String> {
    const TRIM_THRESHOLD: c_int = -1;
    const MMAP_MAX: c_int = -4;
    const ARENA_MAX: c_int = -8;
    type Mallopt = extern "C" fn(c_int, c_int) -> c_int;
    // SAFETY: the C library's function of that name has this type.
    let mallopt = unsafe { std::mem::transmute::<*mut c_void, Mallopt>(function(c"mallopt")?) };
    // -1: heaps never shrink.
    let is_set = |(option, value)| mallopt(option, value) == 1;
    match [(MMAP_MAX, 0), (TRIM_THRESHOLD, -1), (ARENA_MAX, 1)].into_iter().all(is_set) {
        true => Ok(()),
        false => Err("mallopt cannot make malloc keep memory".to_owned()),
    }
}

/// A function of the allocator.
fn function(name: &CStr) -> Result<*mut c_void, String> {
    symbol(name).ok_or_else(|| format!("the C library has no {}", name.to_string_lossy()))
}

/// The C library's report on its heaps, as XML.
fn info() -> Result<String, String> {
    type MallocInfo = extern "C" fn(c_int, *mut libc::FILE) -> c_int;
    // SAFETY: as above.
    let write =
        unsafe { std::mem::transmute::<*mut c_void, MallocInfo>(function(c"malloc_info")?) };
    let (mut text, mut len) = (std::ptr::null_mut(), 0);
    // SAFETY: closing the stream sets the text and its length; the text then belongs to this function.
    unsafe {
        let stream = libc::open_memstream(&raw mut text, &raw mut len);
        if stream.is_null() {
            return Err(format!("malloc_info: {}", io::Error::last_os_error()));
        }
        write(0, stream);
        libc::fclose(stream);
        let info = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Ok(info)
    }
}

/// Checks that no block or heap exists that is returned to the system when it is freed.
fn starts_clean(info: &str) -> Result<(), String> {
    let n_heaps = info.matches("<heap nr=").count();
    let mapped = info.split_once("<total type=\"mmap\" count=\"").map(|(_, rest)| rest);
    let n_mapped = mapped.and_then(|rest| rest.split_once('"')?.0.parse::<u64>().ok());
    match (n_heaps, n_mapped) {
        (1, Some(0)) => Ok(()),
        (0, _) | (_, None) => Err("malloc_info does not say what there is".to_owned()),
        (_, Some(n_mapped)) => Err(format!(
            "malloc has {n_mapped} blocks with mappings of their own and {} heaps of threads, which it gives back: \
             set MALLOC_MMAP_MAX_=0 and MALLOC_ARENA_MAX=1 for the program",
            n_heaps - 1
        )),
    }
}

/// Allocates a block, frees it, and checks whether its pages have been unmapped.
fn returns_memory() -> bool {
    let page = page_bytes();
    // SAFETY: a byte within a block that belongs to this function. After the block is freed, only the address of its
    // page is used: mincore reads and writes nothing there.
    unsafe {
        let block = libc::malloc(TRIAL_BYTES).cast::<u8>();
        if block.is_null() {
            return true;
        }
        let middle = block.add(TRIAL_BYTES / 2);
        middle.write_volatile(1);
        let address = middle.addr() & !(page - 1);
        libc::free(block.cast());
        let mut is_there = 0u8;
        let at = std::ptr::without_provenance_mut(address);
        libc::mincore(at, page, (&raw mut is_there).cast()) != 0 || is_there & 1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a process of its own: other tests need memory to be returned.
    #[test]
    fn the_allocator_can_be_told() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "memory::trust::tests::the_c_library_keeps_memory_when_it_is_told_to";
        // The C library reads this when it starts: all threads have one heap, including those of the test.
        command.args(["--exact", "--ignored", name]).env("MALLOC_ARENA_MAX", "1");
        let ended = hopbine_testing::processes::run(&mut command);
        let text = ended.text();
        assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    }

    /// By default glibc returns a large block at once.
    #[test]
    #[ignore = "run by the_allocator_can_be_told"]
    fn the_c_library_keeps_memory_when_it_is_told_to() {
        assert!(returns_memory());
        // SAFETY: a block that is freed below.
        let before = std::hint::black_box(unsafe { libc::malloc(TRIAL_BYTES) });
        let refused = keep_all().unwrap_err();
        assert!(
            refused.contains("1 blocks") && refused.contains("MALLOC_MMAP_MAX_=0"),
            "{refused}"
        );
        // SAFETY: allocated above.
        unsafe { libc::free(before) };
        assert_eq!(keep_all(), Ok(()));
        assert!(!returns_memory());
        let file = file_of_malloc().unwrap();
        assert!(file.contains("libc"), "{file}");
        let source = source("no events".to_owned()).unwrap();
        let page = Span::of_pages(page_bytes(), 1, page_bytes()).unwrap();
        assert!(source.watch(page).is_ok() && source.settled());
    }

    #[test]
    fn heaps_of_threads_are_refused() {
        let info = |heaps: &str, total: &str| {
            format!("<malloc version=\"1\">{heaps}<total type=\"mmap\" count=\"{total}/></malloc>")
        };
        let one = "<heap nr=\"0\"></heap>";
        assert_eq!(starts_clean(&info(one, "0\" size=\"0\"")), Ok(()));
        let two = format!("{one}<heap nr=\"1\"></heap>");
        let refused = starts_clean(&info(&two, "0\" size=\"0\"")).unwrap_err();
        assert!(
            refused.contains("0 blocks") && refused.contains("1 heaps of threads"),
            "{refused}"
        );
        for unclear in [info(one, "none"), String::new(), info("", "0\"")] {
            assert!(starts_clean(&unclear).is_err(), "{unclear}");
        }
    }

    #[test]
    fn allocators_that_give_memory_back_are_refused_by_name() {
        let known = |file: &str, set: Option<&str>| {
            is_known(file, &|name| {
                assert_eq!(name, "XOS_MMM_L_ARENA_FREE");
                set.map(str::to_owned)
            })
        };
        for file in ["/lib64/libc.so.6", "/lib64/libc-2.28.so"] {
            assert_eq!(known(file, None), Ok(true));
        }
        for file in ["/usr/lib/libjemalloc.so.2", "./a.out", "libcount.so"] {
            assert!(known(file, None).unwrap_err().contains(file));
        }
        let large_pages = "/opt/FJSVxos/mmm/lib64/libmpg.so.1";
        assert_eq!(known(large_pages, Some("2")), Ok(false));
        for set in [None, Some("1")] {
            let refused = known(large_pages, set).unwrap_err();
            assert!(refused.contains("XOS_MMM_L_ARENA_FREE=2"), "{refused}");
        }
    }
}
