/* See progress_thread.h. A program that waits for its requests makes progress on them itself: this thread then only
 * checks from time to time that it still does. Without requests the thread sleeps. */
#define _GNU_SOURCE
#include "progress_thread.h"

#include "common.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

/* Nanoseconds between two checks: the shortest and the longest time. */
enum { FIRST_NAP = 50000, LONGEST_NAP = 1000000 };
/* Checks without an active request after which the thread sleeps; polls in vain after which checks become rarer. */
enum { FEW = 100, MANY = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
/* Set before the thread starts. */
static const struct progress_hooks *hooks;
static int is_there, is_asleep, is_at_end;

static int is_ending(void) { return __atomic_load_n(&is_at_end, __ATOMIC_ACQUIRE); }

static void sleep_until_wanted(void) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(&is_asleep, 1, __ATOMIC_SEQ_CST);
    /* The loads of `are_under_way` must not precede the store: see wake_progress_thread(). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (!hooks->are_under_way() && !is_ending()) pthread_cond_wait(&wanted, &lock);
    __atomic_store_n(&is_asleep, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
}

static void *run(void *nothing) {
    long nap = LONGEST_NAP;
    int n_idle = 0, n_vain = 0;
    unsigned long seen = hooks->n_drives();
    in_hopbine++;
    while (!is_ending()) {
        const struct timespec time = {0, nap};
        nanosleep(&time, NULL);
        const unsigned long now = hooks->n_drives();
        if (!hooks->are_under_way()) {
            nap = LONGEST_NAP;
            if (++n_idle > FEW) sleep_until_wanted(), n_idle = 0;
        } else if (now != seen) {
            nap = LONGEST_NAP, n_idle = n_vain = 0;
        } else {
            n_idle = 0;
            n_vain = hooks->poll() ? 0 : n_vain + 1;
            nap = n_vain < MANY ? FIRST_NAP : 2 * nap < LONGEST_NAP ? 2 * nap : LONGEST_NAP;
        }
        seen = now;
    }
    return nothing;
}

static void wake(void) {
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&wanted);
    pthread_mutex_unlock(&lock);
}

void wake_progress_thread(const struct progress_hooks *requests) {
    if (__atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) {
        /* SEQ_CST: the thread sets `is_asleep` before it looks for requests. So either it sees the caller's request,
         * or the caller sees `is_asleep`. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&is_asleep, __ATOMIC_SEQ_CST)) wake();
        return;
    }
    pthread_mutex_lock(&lock);
    if (!is_there) {
        /* The thread blocks all signals, so that the program's own threads handle them. */
        sigset_t every, before;
        sigfillset(&every);
        pthread_sigmask(SIG_SETMASK, &every, &before);
        hooks = requests;
        const int is_made = pthread_create(&thread, NULL, run, NULL) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        __atomic_store_n(&is_there, is_made, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

void end_progress_thread(void) {
    if (!is_there) return;
    __atomic_store_n(&is_at_end, 1, __ATOMIC_RELEASE);
    wake();
    pthread_join(thread, NULL);
}
