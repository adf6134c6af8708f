/* How long a cache line takes from core to core, in nanoseconds: two threads, on the first and the
 * last core that this process may use, write one word in turn. Prints the number, or "none" if there is
 * one core only. On virtual machines it changes while they run, and the ratios with it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 100000 };
static _Alignas(128) atomic_int word;
static int cores[2] = {-1, -1};

static void sit(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static void await(int value) {
    while (atomic_load_explicit(&word, memory_order_acquire) != value) continue;
}

static void *answer(void *unused) {
    sit(cores[1]);
    for (int i = 0; i < TURNS; i++) {
        await(2 * i + 1);
        atomic_store_explicit(&word, 2 * i + 2, memory_order_release);
    }
    return unused;
}

int main(void) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return 1;
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed)) cores[cores[0] >= 0] = core;
    if (cores[1] < 0) return puts("none") < 0;
    pthread_t other;
    if (pthread_create(&other, NULL, answer, NULL)) return 1;
    sit(cores[0]);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int i = 0; i < TURNS; i++) {
        atomic_store_explicit(&word, 2 * i + 1, memory_order_release);
        await(2 * i + 2);
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
    pthread_join(other, NULL);
    const double ns = 1e9 * (ended.tv_sec - began.tv_sec) + (ended.tv_nsec - began.tv_nsec);
    printf("%.0f\n", ns / (2.0 * TURNS));
    return 0;
}
