//! Overwrites the first instruction of a function with a jump.
//!
//! The jump is the shortest possible one, so that it replaces at most two instructions: on x86-64 five bytes, within
//! 2 GiB, on AArch64 one instruction, within 128 MiB. It leads to a page near the function, where a longer jump leads
//! to any address. It is written atomically, so that a concurrent thread executes the old code or the new. A thread
//! that was stopped between two replaced instructions would continue in the middle of the jump: at the start of a
//! program there is no such thread.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use crate::memory::page_bytes;

/// A function for which a jump to another one is prepared or installed.
#[derive(Debug)]
pub(super) struct Patch {
    /// The code to overwrite, after a landing pad.
    at: NonNull<Code>,
    before: Code,
    jump: Code,
}

// SAFETY: an address of code, which exists as long as the process and is accessed atomically, as a whole.
unsafe impl Send for Patch {}
// SAFETY: as above.
unsafe impl Sync for Patch {}

use machine::Code;

/// Distance between addresses that are tried for the page near a function, in bytes.
const STEP: usize = 1 << 20;

impl Patch {
    /// Prepares the jump from `function` to `hook`, and does not install it.
    ///
    /// # Errors
    /// If the function does not begin like one of the C library, since another library may have changed it; if there
    /// is no free page near it.
    ///
    /// # Safety
    /// `function` is a function of the C library. `hook` does the same, and exists as long as the process.
    pub(super) unsafe fn prepare(function: *mut c_void, hook: *const c_void) -> io::Result<Self> {
        let near = page_near(function.addr())?;
        // SAFETY: a new page, longer than the jump, and not in use yet.
        unsafe {
            let jump = machine::long_jump(hook.addr());
            std::ptr::copy_nonoverlapping(jump.as_ptr(), near.cast::<u8>(), jump.len());
            let page = page_bytes();
            machine::synchronise(near.addr(), jump.len());
            check(libc::mprotect(near, page, libc::PROT_READ | libc::PROT_EXEC))?;
        }
        // SAFETY: the caller's promise: code of at least this length.
        let (at, before, jump) =
            unsafe { machine::short_jump(function, near.addr()) }.map_err(io::Error::other)?;
        Ok(Patch { at, before, jump })
    }

    /// Installs the jump.
    ///
    /// # Errors
    /// If the system does not allow writes to code.
    pub(super) fn install(&self) -> io::Result<()> {
        self.write(self.before, self.jump)
    }

    /// Restores the original code.
    pub(super) fn restore(&self) {
        // No error: the pages could be made writable before.
        let _ = self.write(self.jump, self.before);
    }

    /// Whether the jump is installed.
    pub(super) fn is_intact(&self) -> bool {
        // SAFETY: code of the C library, which exists as long as the process.
        unsafe { machine::read(self.at) == self.jump }
    }

    fn write(&self, from: Code, to: Code) -> io::Result<()> {
        let (page, len) = (page_bytes(), size_of::<Code>());
        let start = self.at.addr().get() & !(page - 1);
        let len = (self.at.addr().get() + len).next_multiple_of(page) - start;
        let pages = self.at.as_ptr().map_addr(|_| start).cast();
        let code = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: whole pages of code, which other threads may execute: they stay executable throughout. The write is
        // atomic, and replaces only the code that was read there.
        unsafe {
            check(libc::mprotect(pages, len, code | libc::PROT_WRITE))?;
            let is_written = machine::replace(self.at, from, to);
            machine::synchronise(self.at.addr().get(), size_of::<Code>());
            check(libc::mprotect(pages, len, code))?;
            match is_written {
                true => Ok(()),
                false => Err(io::Error::other("another library changes it at the same time")),
            }
        }
    }
}

fn check(answer: i32) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A new writable page within reach of a function.
fn page_near(function: usize) -> io::Result<*mut c_void> {
    let (page, flags) = (page_bytes(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let steps = 1..machine::REACH / STEP;
    let places =
        steps.flat_map(|n| [function.checked_sub(n * STEP), function.checked_add(n * STEP)]);
    for place in places.flatten() {
        let place = place & !(page - 1);
        // SAFETY: new memory; the address is only a hint, so that no existing mapping is replaced.
        let got = unsafe {
            let wish = std::ptr::without_provenance_mut(place);
            libc::mmap(wish, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        if got == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if got.addr().abs_diff(function) < machine::REACH {
            return Ok(got);
        }
        // SAFETY: mapped above, not used.
        unsafe { libc::munmap(got, page) };
    }
    Err(io::Error::other("there is no free page near it"))
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;
    use std::ffi::c_void;
    use std::ptr::NonNull;

    /// Sixteen bytes at a multiple of sixteen, which the processor replaces atomically.
    pub(super) type Code = u128;
    /// A reach in bytes, less than that of a jump with a 32-bit distance.
    pub(super) const REACH: usize = (1 << 31) - (1 << 24);

    /// `endbr64`
    const LANDING_PAD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

    /// `movabs $target, %r11; jmp *%r11`: the one register that holds no argument and that a function need not
    /// preserve.
    pub(super) fn long_jump(target: usize) -> Vec<u8> {
        [&[0x49, 0xbb][..], &target.to_le_bytes(), &[0x41, 0xff, 0xe3]].concat()
    }

    /// # Safety
    /// As `Patch::prepare`; functions are at least sixteen bytes long.
    pub(super) unsafe fn short_jump(
        function: *mut c_void,
        target: usize,
    ) -> Result<(NonNull<Code>, Code, Code), &'static str> {
        if !std::arch::is_x86_feature_detected!("cmpxchg16b") || !function.addr().is_multiple_of(16)
        {
            return Err("it cannot be overwritten at once");
        }
        let Some(at) = NonNull::new(function.cast::<Code>()) else { unreachable!("it was found") };
        // SAFETY: the caller's promise.
        let before = unsafe { read(at) };
        let mut code = before.to_le_bytes();
        let skip = if code.starts_with(&LANDING_PAD) { LANDING_PAD.len() } else { 0 };
        // Jumps, direct and through memory, and the load before a jump by another library: `movabs` to r10 and r11.
        if matches!(code[skip..], [0xe9 | 0xeb, ..] | [0xff, 0x25, ..] | [0x49, 0xba | 0xbb, ..]) {
            return Err("another library has changed it");
        }
        let next = function.addr() + skip + 5;
        let distance = target.wrapping_sub(next) as i32;
        code[skip] = 0xe9;
        code[skip + 1..skip + 5].copy_from_slice(&distance.to_le_bytes());
        Ok((at, before, Code::from_le_bytes(code)))
    }

    /// # Safety
    /// `at` is existing code.
    pub(super) unsafe fn read(at: NonNull<Code>) -> Code {
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().read_volatile() }
    }

    /// # Safety
    /// `at` is existing, writable code; [`short_jump`] has checked that the processor has the instruction.
    pub(super) unsafe fn replace(at: NonNull<Code>, from: Code, to: Code) -> bool {
        let half = |code: Code, n: u32| (code >> (64 * n)) as u64;
        let is_replaced: u8;
        // SAFETY: the caller's promise. rbx, which is reserved for the compiler, has its value again at the end.
        unsafe {
            asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "mov rbx, rsi",
                "sete {is_replaced}",
                is_replaced = out(reg_byte) is_replaced,
                in("rdi") at.as_ptr(),
                inout("rsi") half(to, 0) => _,
                in("rcx") half(to, 1),
                inout("rax") half(from, 0) => _,
                inout("rdx") half(from, 1) => _,
                options(nostack),
            );
        }
        is_replaced != 0
    }

    /// Does nothing: processors of this kind detect writes to code.
    ///
    /// # Safety
    /// None is needed.
    pub(super) unsafe fn synchronise(_: usize, _: usize) {}
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use std::arch::asm;
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// One instruction.
    pub(super) type Code = u32;
    /// A reach in bytes, less than that of `b`.
    pub(super) const REACH: usize = (1 << 27) - (1 << 20);

    /// `bti c`
    const LANDING_PAD: Code = 0xd503_245f;

    /// `ldr x16, 8; br x16`, and the target: x16 is reserved for this purpose (AAPCS64, 6.1.1).
    pub(super) fn long_jump(target: usize) -> Vec<u8> {
        let code = [0x5800_0050u32, 0xd61f_0200].map(u32::to_le_bytes);
        [code.as_flattened(), &target.to_le_bytes()].concat()
    }

    /// # Safety
    /// As `Patch::prepare`.
    pub(super) unsafe fn short_jump(
        function: *mut c_void,
        target: usize,
    ) -> Result<(NonNull<Code>, Code, Code), &'static str> {
        let Some(mut at) = NonNull::new(function.cast::<Code>()) else {
            unreachable!("it was found")
        };
        // SAFETY: the caller's promise.
        if unsafe { read(at) } == LANDING_PAD {
            // SAFETY: the next instruction of the same function.
            at = unsafe { at.add(1) };
        }
        // SAFETY: the caller's promise.
        let before = unsafe { read(at) };
        // `b`, and the load of an address before a jump by another library: `ldr x16` and `x17`, `adrp`.
        let is_jump = before >> 26 == 0b000101
            || matches!(before & 0xff00_001f, 0x5800_0010 | 0x5800_0011)
            || matches!(before & 0x9f00_001f, 0x9000_0010 | 0x9000_0011);
        if is_jump {
            return Err("another library has changed it");
        }
        let words = (target.wrapping_sub(at.addr().get()) as isize) >> 2;
        let jump = 0b000101 << 26 | (words as u32 & ((1 << 26) - 1));
        Ok((at, before, jump))
    }

    /// # Safety
    /// `at` is existing code.
    pub(super) unsafe fn read(at: NonNull<Code>) -> Code {
        // SAFETY: the caller's promise; instructions are aligned.
        unsafe { at.as_ptr().read_volatile() }
    }

    /// # Safety
    /// `at` is existing, writable code.
    pub(super) unsafe fn replace(at: NonNull<Code>, from: Code, to: Code) -> bool {
        // SAFETY: the caller's promise; instructions are aligned.
        let code = unsafe { AtomicU32::from_ptr(at.as_ptr()) };
        code.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Makes written code visible to instruction fetch (Arm ARM, B2.4.4: clean, invalidate, and wait for both).
    ///
    /// # Safety
    /// The range is existing memory.
    pub(super) unsafe fn synchronise(start: usize, len: usize) {
        /// The shortest cache line of any processor, in bytes.
        const LINE: usize = 16;
        // SAFETY: cache maintenance, which programs may perform, has no visible effect except on code.
        unsafe {
            for at in (start & !(LINE - 1)..start + len).step_by(LINE) {
                asm!("dc cvau, {at}", at = in(reg) at, options(nostack, preserves_flags));
            }
            asm!("dsb ish", options(nostack, preserves_flags));
            for at in (start & !(LINE - 1)..start + len).step_by(LINE) {
                asm!("ic ivau, {at}", at = in(reg) at, options(nostack, preserves_flags));
            }
            asm!("dsb ish", "isb", options(nostack, preserves_flags));
        }
    }
}
