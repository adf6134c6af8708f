//! Tells ThreadSanitizer what the precompiled standard library synchronises.
//!
//! ThreadSanitizer sees only what was compiled with it, and Rust's toolchains bring a standard
//! library that was not. Nearly all of its locks and all of its atomics are inline or generic, so
//! they are compiled with our crates. The rest are the functions below: `sanitize.sh` has the
//! linker send our calls of each to the function here that names it (`--wrap`), which calls the
//! true one and tells what it ordered, no more than what its documentation promises. Without
//! that, whatever a contended lock guards is reported as a race.
//!
//! `@NAME@` stands for the symbol of the standard library that the linker knows; the script puts
//! it in, and refuses to go on where it finds none or several.
//!
//! This file is no part of any crate and is compiled without the sanitizer.
#![no_std]
#![feature(thread_local)]

use core::cell::Cell;

type Address = *const u8;

unsafe extern "C" {
    /// What was released at this address happened before what this thread does from now on.
    fn __tsan_acquire(at: Address);
    /// What this thread has done is released at this address.
    fn __tsan_release(at: Address);

    #[link_name = "__real___tsan_atomic_thread_fence"]
    fn real_fence(order: i32);
    #[link_name = "__real___tsan_atomic64_fetch_sub"]
    fn real_fetch_sub(at: Address, value: u64, order: i32) -> u64;
    #[link_name = "__real___tsan_atomic64_compare_exchange_val"]
    fn real_compare_exchange(at: Address, old: u64, new: u64, order: i32, failed: i32) -> u64;
}

// SAFETY (of everything below): the arguments go on unchanged to the function that they were
// meant for; the sanitizer takes any address, it reads and writes its own shadow only.

/// Functions that return holding the lock whose word their first argument is.
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
                // The Acquire of the word, which the unlocking code has released inline.
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

/// The one call that runs `f` releases what it did before anyone can see that it is done; the
/// others find that out here, or inline by an Acquire load of the same word.
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

/// The last thing a scoped thread does: counts itself out. Who waits for the scope loads the
/// count inline, with Acquire. Which of the structure's three words the count is, the compiler
/// has chosen.
#[unsafe(export_name = "__wrap_@SCOPE_THREAD_ENDS@")]
unsafe fn scope_thread_ends(scope: Address, panicked: bool) {
    unsafe {
        for word in 0..3 {
            __tsan_release(scope.wrapping_add(8 * word));
        }
        true_scope_thread_ends(scope, panicked);
    }
}

// An Acquire fence orders like the atomic accesses before it. The sanitizer has no notion of
// fences. The one that the standard library needs is in `Arc`, after the decrement that found the
// count at one (or the exchange, in `try_unwrap`): remembering one address is enough.

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
