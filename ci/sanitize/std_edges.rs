//! Tells ThreadSanitizer how the precompiled standard library synchronises.
//!
//! ThreadSanitizer sees only code that was compiled with it. The standard library of a Rust toolchain was not.
//! Nearly all of its locks and all of its atomics are inline or generic, so they are compiled with our crates. The
//! rest are the functions below: `sanitize.sh` makes the linker redirect our calls of each to the function here
//! that names it (`--wrap`). This function calls the original and reports what it ordered, no more than its
//! documentation promises. Without these reports ThreadSanitizer would report accesses under a contended lock as
//! races.
//!
//! `@NAME@` stands for the symbol of the standard library that the linker knows; the script inserts the symbol, and
//! fails if it finds none or several.
//!
//! This file belongs to no crate and is compiled without the sanitizer.
#![no_std]
#![feature(thread_local)]

use core::cell::Cell;

type Address = *const u8;

unsafe extern "C" {
    /// Everything released at this address happens before everything that this thread does from now on.
    fn __tsan_acquire(at: Address);
    /// Releases, at this address, everything that this thread has done.
    fn __tsan_release(at: Address);

    #[link_name = "__real___tsan_atomic_thread_fence"]
    fn real_fence(order: i32);
    #[link_name = "__real___tsan_atomic64_fetch_sub"]
    fn real_fetch_sub(at: Address, value: u64, order: i32) -> u64;
    #[link_name = "__real___tsan_atomic64_compare_exchange_val"]
    fn real_compare_exchange(at: Address, old: u64, new: u64, order: i32, failed: i32) -> u64;
}

// SAFETY (of everything below): the arguments go unchanged to the function for which they were meant; the sanitizer
// accepts any address, since it reads and writes only its own shadow memory.

/// Functions that return with the lock held; their first argument is the address of the lock's word.
macro_rules! locks {
    ($($wrap:literal, $real:literal, $name:ident, $true_name:ident;)*) => { $(
        unsafe extern "Rust" {
            #[link_name = $real]
            fn $true_name(lock: Address);
        }
        #[unsafe(export_name = $wrap)]
        unsafe fn $name(lock: Address) {
            unsafe {
                $true_name(lock);
                // Acquires the word, which the unlocking code has released inline.
                __tsan_acquire(lock);
            }
        }
    )* };
}
locks! {
    "__wrap_@MUTEX_LOCK@", "__real_@MUTEX_LOCK@", mutex_lock, true_mutex_lock;
    "__wrap_@RWLOCK_READ@", "__real_@RWLOCK_READ@", rwlock_read, true_rwlock_read;
    "__wrap_@RWLOCK_WRITE@", "__real_@RWLOCK_WRITE@", rwlock_write, true_rwlock_write;
}

unsafe extern "Rust" {
    #[link_name = "__real_@CONDVAR_WAIT@"]
    fn true_condvar_wait(condvar: Address, mutex: Address);
    #[link_name = "__real_@CONDVAR_WAIT_TIMEOUT@"]
    fn true_condvar_wait_timeout(
        condvar: Address,
        mutex: Address,
        patience: core::time::Duration,
    ) -> bool;
    #[link_name = "__real_@BARRIER_WAIT@"]
    fn true_barrier_wait(barrier: Address) -> bool;
    #[link_name = "__real_@ONCE_CALL@"]
    fn true_once_call(
        once: Address,
        ignore_poison: bool,
        f: &mut dyn FnMut(Address),
        caller: Address,
    );
    #[link_name = "__real_@SCOPE_THREAD_ENDS@"]
    fn true_scope_thread_ends(scope: Address, panicked: bool);
}

/// Unlocks the mutex, sleeps, locks it again.
#[unsafe(export_name = "__wrap_@CONDVAR_WAIT@")]
unsafe fn condvar_wait(condvar: Address, mutex: Address) {
    unsafe {
        __tsan_release(mutex);
        true_condvar_wait(condvar, mutex);
        __tsan_acquire(mutex);
    }
}

#[unsafe(export_name = "__wrap_@CONDVAR_WAIT_TIMEOUT@")]
unsafe fn condvar_wait_timeout(
    condvar: Address,
    mutex: Address,
    patience: core::time::Duration,
) -> bool {
    unsafe {
        __tsan_release(mutex);
        let notified = true_condvar_wait_timeout(condvar, mutex, patience);
        __tsan_acquire(mutex);
        notified
    }
}

#[unsafe(export_name = "__wrap_@BARRIER_WAIT@")]
unsafe fn barrier_wait(barrier: Address) -> bool {
    unsafe {
        __tsan_release(barrier);
        let leads = true_barrier_wait(barrier);
        __tsan_acquire(barrier);
        leads
    }
}

/// The call that runs `f` releases the effects of `f` before another thread can see that the call is complete. The
/// other threads acquire them here, or inline by an Acquire load of the same word.
#[unsafe(export_name = "__wrap_@ONCE_CALL@")]
unsafe fn once_call(
    once: Address,
    ignore_poison: bool,
    f: &mut dyn FnMut(Address),
    caller: Address,
) {
    unsafe {
        let mut told = |state| {
            f(state);
            __tsan_release(once);
        };
        true_once_call(once, ignore_poison, &mut told, caller);
        __tsan_acquire(once);
    }
}

/// The last action of a scoped thread: it decrements the scope's count of threads. The thread that waits for the
/// scope loads the count inline, with Acquire. The compiler has chosen which of the structure's three words is the
/// count.
#[unsafe(export_name = "__wrap_@SCOPE_THREAD_ENDS@")]
unsafe fn scope_thread_ends(scope: Address, panicked: bool) {
    unsafe {
        for word in 0..3 {
            __tsan_release(scope.wrapping_add(8 * word));
        }
        true_scope_thread_ends(scope, panicked);
    }
}

// An Acquire fence orders like the atomic accesses before it. The sanitizer does not model fences. The only fence
// that the standard library needs is in `Arc`, after the decrement that found the count at one (or the exchange, in
// `try_unwrap`): remembering one address is enough.

#[thread_local]
static LAST: Cell<Address> = Cell::new(core::ptr::null());

const ACQUIRE: i32 = 2;

#[unsafe(export_name = "__wrap___tsan_atomic64_fetch_sub")]
unsafe extern "C" fn fetch_sub(at: Address, value: u64, order: i32) -> u64 {
    LAST.set(at);
    unsafe { real_fetch_sub(at, value, order) }
}

#[unsafe(export_name = "__wrap___tsan_atomic64_compare_exchange_val")]
unsafe extern "C" fn compare_exchange(
    at: Address,
    old: u64,
    new: u64,
    order: i32,
    failed: i32,
) -> u64 {
    LAST.set(at);
    unsafe { real_compare_exchange(at, old, new, order, failed) }
}

#[unsafe(export_name = "__wrap___tsan_atomic_thread_fence")]
unsafe extern "C" fn fence(order: i32) {
    let last = LAST.replace(core::ptr::null());
    unsafe {
        real_fence(order);
        if order == ACQUIRE && !last.is_null() {
            __tsan_acquire(last);
        }
    }
}
