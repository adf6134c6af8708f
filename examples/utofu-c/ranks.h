/*
 * ranks.h - start-up for the examples: this rank's number, and an allgather of words.
 *
 * uTofu moves bytes between end points whose ids are known already, so ranks must exchange ids some other way.
 * Programs on Fugaku use MPI for that. Here a file does it, so that the examples need no MPI: each rank writes
 * fixed-size records to its own places in the file and reads those of the other ranks.
 *
 *   HOPBINE_RANK, HOPBINE_SIZE   this rank and the number of ranks
 *   HOPBINE_RENDEZVOUS           path that all ranks share; a new one for every run
 */
#ifndef RANKS_H
#define RANKS_H

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_WORDS = 7 }; /* words per record */

static int ranks_me, ranks_n;

__attribute__((noreturn)) static void ranks_stop(const char *what, long code)
{
    fprintf(stderr, "rank %d: %s: %ld\n", ranks_me, what, code);
    _exit(1);
}

/* Stops the program if a uTofu call did not return 0. */
#define CHECK(call)                       \
    do {                                  \
        int check_rc = (call);            \
        if (check_rc != 0)                \
            ranks_stop(#call, check_rc);  \
    } while (0)

static long ranks_env(const char *name)
{
    const char *s = getenv(name);
    if (s == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        _exit(2);
    }
    return atol(s);
}

/*
 * Called while a queue is empty. A rank may spin if it has its own cores; if ranks share cores, it has to let the
 * other ranks run.
 */
static void ranks_idle(void)
{
    static unsigned calls;
    if (++calls % 64 == 0)
        sched_yield();
}

static void ranks_init(void)
{
    ranks_n  = ranks_env("HOPBINE_SIZE");
    ranks_me = ranks_env("HOPBINE_RANK");
}

/*
 * Each rank passes n <= RANKS_WORDS words; all[r * n ...] receives rank r's words. The call returns after all ranks
 * have called it. Each call's records follow those of the last call in the file, so no record is ever overwritten.
 */
static void ranks_allgather(const uint64_t *mine, int n, uint64_t *all)
{
    static uint64_t call;
    uint64_t record[1 + RANKS_WORDS] = {++call};
    char path[4096];
    const char *rendezvous = getenv("HOPBINE_RENDEZVOUS");

    if (rendezvous == NULL && ranks_n > 1)
        ranks_stop("HOPBINE_RENDEZVOUS is not set", 0);
    if (ranks_n == 1) {
        memcpy(all, mine, n * sizeof *all);
        return;
    }
    snprintf(path, sizeof path, "%s.example", rendezvous);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        ranks_stop(path, fd);
    memcpy(record + 1, mine, n * sizeof *mine);
    off_t base = (off_t)(call - 1) * ranks_n * sizeof record;
    if (pwrite(fd, record, sizeof record, base + ranks_me * sizeof record) != sizeof record)
        ranks_stop("cannot write the rendezvous file", 0);
    for (int r = 0; r < ranks_n; r++) {
        while (pread(fd, record, sizeof record, base + r * sizeof record) != sizeof record
               || record[0] != call)
            usleep(200);
        memcpy(all + r * n, record + 1, n * sizeof *all);
    }
    close(fd);
}

__attribute__((unused)) static void ranks_barrier(void)
{
    uint64_t all[ranks_n], zero = 0;
    ranks_allgather(&zero, 1, all);
}

#endif /* RANKS_H */
