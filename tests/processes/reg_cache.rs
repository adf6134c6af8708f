//! The registration cache under whole collectives.

use std::ptr::NonNull;

use crate::common::processes::{ranks, run_scenario, start};
use hopbine::memory::{CacheMode, CacheStats};
use hopbine::reduce::Op;
use hopbine::torus::geometry::Shape;
use hopbine::{CallOptions, Communicator, EmulationConfig, emulate, init};
use hopbine_testing::processes::wait;

/// The entry point of every rank; see `common::processes`.
#[test]
fn scenarios() {
    run_scenario(|name| match name {
        "steady" => Some(|| steady(init().unwrap().communicator())),
        "address_reuse" => Some(|| address_reuse(init().unwrap().communicator())),
        "steady_without_userfaultfd" => Some(|| without_userfaultfd(steady)),
        "address_reuse_without_userfaultfd" => Some(|| without_userfaultfd(address_reuse)),
        "trusting" => Some(trusting),
        "off" => Some(|| off(init().unwrap().communicator())),
        "staged" => Some(|| staged(init().unwrap().communicator())),
        "staged_by_table" => Some(|| staged_by_table(init().unwrap().communicator())),
        "never_staged" => Some(|| never_staged(init().unwrap().communicator())),
        "explicit" => Some(|| explicit(init().unwrap().communicator())),
        _ => None,
    });
}

/// Runs on the emulated device, whatever backend other tests use: shared memory needs no registration.
fn on_device(n: usize, scenario: &str, env: &[(&str, &str)]) {
    ranks(n, scenario, &[&[("HOPBINE_BACKEND", "emu")], env].concat());
}

fn total(comm: &Communicator, of: fn(&CacheStats) -> u64) -> u64 {
    comm.cache_stats().as_ref().map_or(0, of)
}

/// Registrations made so far.
fn registrations(comm: &Communicator) -> u64 {
    total(comm, |stats| stats.misses + stats.uncached)
}

/// Whether this system keeps registrations of user memory; systems without memory events keep none.
fn keeps(comm: &Communicator) -> bool {
    matches!(comm.cache_stats().expect("there is one").mode, CacheMode::Events { .. })
}

fn reduce(comm: &Communicator, send: &[u64], recv: &mut [u64]) {
    comm.allreduce(send, recv, Op::Sum).unwrap();
    let n = u64::from(comm.size());
    assert!(send.iter().zip(recv).all(|(one, all)| *one * n == *all));
}

fn steady(comm: &Communicator) {
    let send: Vec<u64> = (0..60_000).collect();
    let mut recv = vec![0; 60_000];
    reduce(comm, &send, &mut recv);
    let first = registrations(comm);
    assert!(first > 0);
    for _ in 0..30 {
        reduce(comm, &send, &mut recv);
        // The registration of the whole buffer covers its part.
        reduce(comm, &send[..50_000], &mut recv[..50_000]);
    }
    if keeps(comm) {
        assert_eq!(registrations(comm), first, "{:?}", comm.cache_stats());
        assert!(total(comm, |stats| stats.hits) >= 60);
    }

    // With `register_anew` each call makes a registration, which is not kept. Kept registrations stay.
    let kept = total(comm, |stats| stats.registered_regions);
    let (before, anew) = (registrations(comm), comm.with(CallOptions::new().register_anew()));
    let other = vec![3u64; 40_000];
    for _ in 0..5 {
        reduce(&anew, &other, &mut recv[..40_000]);
    }
    assert!(registrations(comm) >= before + 5);
    assert_eq!(total(comm, |stats| stats.registered_regions), kept);
}

#[test]
fn repeated_calls_register_nothing() {
    on_device(4, "steady", &[("HOPBINE_TORUS", "2x2")]);
    let shape = Shape::torus(&[3]).unwrap();
    let config = EmulationConfig::new(shape).with(|config| config.reg_cache = true);
    emulate(&config, steady).unwrap();
}

/// Runs the scenario without events from the kernel: the C library's functions are patched instead.
fn without_userfaultfd(scenario: fn(&Communicator)) {
    hopbine_testing::forbidden::userfaultfd().unwrap();
    let world = init().unwrap();
    let mode = world.communicator().cache_stats().expect("there is one").mode;
    let CacheMode::Events { source } = mode else { panic!("{mode}") };
    assert!(source.contains("C library"), "{source}");
    scenario(world.communicator());
}

#[test]
fn the_c_library_tells_of_memory_where_the_kernel_does_not() {
    for scenario in ["steady_without_userfaultfd", "address_reuse_without_userfaultfd"] {
        on_device(4, scenario, &[("HOPBINE_TORUS", "2x2")]);
    }
}

/// Neither the kernel nor the C library reports changes of memory: the cache relies on the program's promise.
fn trusting() {
    hopbine_testing::forbidden::userfaultfd().unwrap();
    hopbine_testing::forbidden::changed_code().unwrap();
    let world = init().unwrap();
    let comm = world.communicator();
    let mode = comm.cache_stats().expect("there is one").mode;
    assert!(matches!(mode, CacheMode::Trusted { .. }), "{mode}");
    assert!(
        mode.to_string().contains("trusted") && mode.to_string().contains("userfaultfd"),
        "{mode}"
    );
    // Buffers that are allocated and freed, as in programs, at the same addresses.
    let mut made = None;
    for round in 0..20 {
        let send: Vec<u64> = (0..600_000).map(|i| i + round).collect();
        let mut recv = vec![0; 600_000];
        reduce(comm, &send, &mut recv);
        let now = registrations(comm);
        // The first rounds may still split memory that was free before.
        assert!(round < 3 || made == Some(now), "{round}: {made:?} {:?}", comm.cache_stats());
        made = Some(now);
    }
    assert_eq!(figures(comm)[2], 0, "nothing is copied instead");
}

#[test]
fn a_program_can_be_trusted_where_nobody_tells_of_memory() {
    let malloc = [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_MAX_", "0")];
    on_device(3, "trusting", &[&[("HOPBINE_REG_CACHE", "trust")], &malloc[..]].concat());
}

/// If there are events, the cache uses them, whatever the program promises.
#[test]
fn events_serve_programs_that_are_trusted() {
    let trust = ("HOPBINE_REG_CACHE", "trust");
    for scenario in ["steady_without_userfaultfd", "address_reuse_without_userfaultfd"] {
        on_device(2, scenario, &[trust]);
    }
}

/// The output of a rank whose promise is refused.
fn distrusted(env: &[(&str, &str)]) -> String {
    let trust = [("HOPBINE_BACKEND", "emu"), ("HOPBINE_REG_CACHE", "trust")];
    let (_dir, processes) = start(1, "trusting", &[&trust, env].concat());
    let ended = wait(processes).remove(0);
    let text = ended.text();
    assert!(!ended.status.success(), "{text}");
    for part in ["HOPBINE_REG_CACHE", "found: \"trust\"", "does not report freed memory"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    text
}

/// Tests have threads, and threads have their own heaps, unless a setting at the start of the C library forbids it.
#[test]
fn trust_is_refused_where_threads_have_heaps() {
    let text = distrusted(&[]);
    assert!(text.contains("heaps of threads") && text.contains("MALLOC_ARENA_MAX=1"), "{text}");
}

/// An unknown allocator may return memory to the system.
#[test]
fn trust_is_refused_with_an_unknown_allocator() {
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("count.c"), dir.path().join("libcount.so"));
    let code = "#include <stddef.h>\nvoid *__libc_malloc(size_t);\n\
                void *malloc(size_t n) { return __libc_malloc(n); }\n";
    std::fs::write(&source, code).unwrap();
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = std::process::Command::new(cc);
    command.args(["-shared", "-fPIC", "-o"]).args([&library, &source]);
    assert!(command.status().unwrap().success());
    let text = distrusted(&[("LD_PRELOAD", library.to_str().unwrap())]);
    assert!(text.contains("libcount.so"), "{text}");
}

fn off(comm: &Communicator) {
    assert_eq!(comm.cache_stats().expect("there is one").mode, CacheMode::Off);
    let send: Vec<u64> = (0..200_000).collect();
    let mut recv = vec![0; 200_000];
    for _ in 0..3 {
        let before = registrations(comm);
        reduce(comm, &send, &mut recv);
        assert!(registrations(comm) > before);
        assert_eq!(total(comm, |stats| stats.registered_regions), 0);
    }
}

#[test]
fn the_cache_can_be_switched_off() {
    on_device(2, "off", &[("HOPBINE_REG_CACHE", "0")]);
}

/// The counts that show whether a call registered memory: registrations, deregistrations, and bytes copied instead.
fn figures(comm: &Communicator) -> [u64; 3] {
    let stats = comm.cache_stats().expect("there is a cache");
    [stats.registrations, stats.deregistrations, stats.staged_bytes]
}

/// If no registration can be kept, short data are copied, and only the first call registers memory.
fn staged(comm: &Communicator) {
    assert!(!keeps(comm));
    let stats = comm.cache_stats().expect("there is a cache");
    assert!(stats.policy().contains(&stats.stage_bytes.expect("calls copy").to_string()));
    let n_ports = comm.n_ports() as usize;
    let send: Vec<u64> = (0..300_000).collect();
    let mut recv = vec![0; 300_000];
    for len in [1, 400, 4_000, 32_768, 65_536 * n_ports] {
        reduce(comm, &send[..len], &mut recv[..len]);
        let [made, ended, copied] = figures(comm);
        let (in_place, mut vector) = (len % 400 == 0, send[..len].to_vec());
        for _ in 0..5 {
            reduce(comm, &send[..len], &mut recv[..len]);
        }
        let after = figures(comm);
        assert_eq!(after[..2], [made, ended], "{len}");
        assert!(len < 4_000 || after[2] >= copied + 5 * 8 * len as u64, "{len}: {after:?}");
        if in_place {
            comm.allreduce_in_place(&mut vector, Op::Sum).unwrap();
            assert_eq!(vector, recv[..len]);
        }
        let mut root = if comm.rank() == 1 { send[..len].to_vec() } else { vec![0; len] };
        comm.bcast(&mut root, 1).unwrap();
        assert_eq!(root, send[..len]);
    }
    // Data longer than HOPBINE_STAGE_BYTES for each port are registered anew: both buffers, at one port at least.
    let [made, ended, copied] = figures(comm);
    let len = 65_536 * n_ports + 1;
    reduce(comm, &send[..len], &mut recv[..len]);
    let longer = figures(comm);
    assert!(longer[0] >= made + 2 && longer[1] >= ended + 2 && longer[2] == copied, "{longer:?}");
    // Memory of a persistent request is registered once and not copied.
    let mut persistent = comm.allreduce_init(send[..32_768].to_vec(), Op::Sum).unwrap();
    for round in 0..3 {
        let before = figures(comm);
        persistent.start().unwrap();
        persistent.wait().unwrap();
        assert!(round == 0 || figures(comm) == before, "{before:?} {:?}", figures(comm));
        assert_eq!(figures(comm)[2], copied);
    }
}

#[test]
fn without_events_short_calls_register_nothing() {
    for torus in ["2x2", "4"] {
        on_device(4, "staged", &[("HOPBINE_TORUS", torus), ("HOPBINE_REG_CACHE", "0")]);
    }
}

fn never_staged(comm: &Communicator) {
    let send: Vec<u64> = (0..8_000).collect();
    let mut recv = vec![0; 8_000];
    for _ in 0..3 {
        let [made, ..] = figures(comm);
        reduce(comm, &send, &mut recv);
        let [after, _, copied] = figures(comm);
        assert!(after >= made + 2 && copied == 0);
    }
}

#[test]
fn copies_can_be_switched_off() {
    on_device(2, "never_staged", &[("HOPBINE_STAGE_BYTES", "0"), ("HOPBINE_REG_CACHE", "0")]);
}

/// The table's limit is 32 KiB of data for the two registrations of a port.
fn staged_by_table(comm: &Communicator) {
    let send: Vec<u64> = (0..8_192).collect();
    let mut recv = vec![0; 8_192];
    let one = |options: CallOptions| comm.with(options.ports(1));
    let mut copied_of = |comm: &Communicator, len: usize| {
        reduce(comm, &send[..len], &mut recv[..len]);
        let [made, _, copied] = figures(comm);
        reduce(comm, &send[..len], &mut recv[..len]);
        let after = figures(comm);
        let (made, copied) = (after[0] > made, after[2] > copied);
        assert_ne!(made, copied, "{len}");
        copied
    };
    let unsaid = one(CallOptions::new());
    let limit = std::env::var("HOPBINE_STAGE_BYTES").map_or(4_096, |_| 8_192);
    assert!(copied_of(&unsaid, 4_096) && copied_of(&unsaid, limit));
    assert_eq!(copied_of(&unsaid, 4_097), limit > 4_096);
    // A call's own option takes precedence.
    assert!(copied_of(&one(CallOptions::new().stage_bytes(u64::MAX)), 8_192));
    assert!(!copied_of(&one(CallOptions::new().stage_bytes(0)), 4_096));
}

#[test]
fn the_table_says_what_is_copied_if_the_environment_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let text = "version = 1\nname = \"mine\"\nwire = \"network\"\nstage_bytes = \"32KiB\"\n\
                otherwise = \"tofu-d\"\n";
    std::fs::write(&path, text).unwrap();
    let table = [("HOPBINE_TUNING", path.to_str().unwrap()), ("HOPBINE_REG_CACHE", "0")];
    on_device(2, "staged_by_table", &table);
    let both = [&table[..], &[("HOPBINE_STAGE_BYTES", "65536")]].concat();
    on_device(2, "staged_by_table", &both);
}

/// Anonymous memory at an address of choice.
struct Mapping {
    start: NonNull<u64>,
    len: usize,
}

impl Mapping {
    /// Maps `len` elements, at `at` if that is given.
    fn new(len: usize, at: Option<NonNull<u64>>) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let fixed = if at.is_some() { libc::MAP_FIXED_NOREPLACE } else { 0 };
        let wanted = at.map_or(std::ptr::null_mut(), |at| at.as_ptr().cast());
        // SAFETY: new memory; the mapping replaces no other one.
        let start = unsafe {
            libc::mmap(wanted, len * 8, libc::PROT_READ | libc::PROT_WRITE, flags | fixed, -1, 0)
        };
        assert!(start != libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Mapping { start: NonNull::new(start.cast()).unwrap(), len }
    }

    fn elements(&mut self) -> &mut [u64] {
        // SAFETY: mapped, zeroed by the system, page-aligned, and borrowed from `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; no reference to the memory is left.
        assert_eq!(unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * 8) }, 0);
    }
}

/// Memory that is unmapped and mapped again at the same address has other pages: the cache must not use a
/// registration of the old pages for it.
fn address_reuse(comm: &Communicator) {
    const LEN: usize = 1 << 16;
    let mut first = Mapping::new(LEN, None);
    let at = first.start;
    let n = u64::from(comm.size());
    let all = n * (n + 1) / 2;
    for round in 0..5u64 {
        let mut mapping = if round == 0 {
            std::mem::replace(&mut first, Mapping::new(1, None))
        } else {
            Mapping::new(LEN, Some(at))
        };
        assert_eq!(mapping.start, at);
        let [ended, before] = [total(comm, |s| s.invalidations), registrations(comm)];
        for _ in 0..2 {
            let mine = u64::from(comm.rank() + 1) * (round + 1);
            mapping.elements().fill(mine);
            comm.allreduce_in_place(mapping.elements(), Op::Sum).unwrap();
            assert!(mapping.elements().iter().all(|&sum| sum == all * (round + 1)));
        }
        if keeps(comm) {
            assert!(registrations(comm) > before, "the new memory is registered");
            assert!(round == 0 || total(comm, |s| s.invalidations) > ended, "the old one is ended");
        }
    }
}

#[test]
fn memory_that_comes_back_is_registered_again() {
    on_device(3, "address_reuse", &[]);
}

/// Calls, also of a duplicate, do not register memory again that the user has registered, whatever the cache may
/// keep.
fn explicit(comm: &Communicator) {
    let mut send: Vec<u64> = (0..200_000).collect();
    let mut recv = vec![0u64; 200_000];
    let bytes = 8 * 200_000;
    let other = comm.duplicate().unwrap();
    // SAFETY: both vectors outlive the registrations, and no call is active when these end.
    let registered = unsafe {
        [send.as_mut_ptr(), recv.as_mut_ptr()].map(|ptr| comm.register(ptr.cast(), bytes).unwrap())
    };
    // SAFETY: the region has no bytes.
    drop(unsafe { comm.register(std::ptr::null_mut(), 0) }.unwrap());
    reduce(comm, &send, &mut recv);
    let first = registrations(comm);
    for _ in 0..10 {
        reduce(comm, &send, &mut recv);
        reduce(&other, &send[100..50_000], &mut recv[..49_900]);
    }
    assert_eq!(registrations(comm), first);
    drop(registered);
    reduce(comm, &send, &mut recv);
    assert!(registrations(comm) > first, "given back");
}

#[test]
fn memory_may_be_registered_explicitly() {
    for cache in ["1", "0"] {
        on_device(3, "explicit", &[("HOPBINE_TORUS", "3"), ("HOPBINE_REG_CACHE", cache)]);
    }
}
