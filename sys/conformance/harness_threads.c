/*
 * harness_threads.c - ranks as threads of one process.
 *
 * The suite keeps its state in static variables. So the runner loads one copy of this shared object per rank (copies
 * of the file: the dynamic linker loads each path once), passes each copy its rank and calls its main in a separate
 * thread. All copies share the library under test.
 */
#include "harness.h"
#include "utofu_emu.h"

static int my_rank, my_size;

/* The runner calls this before main. */
void hx_thread_is(int rank, int size)
{
    my_rank = rank;
    my_size = size;
}

void hx_platform_init(int *rank, int *size)
{
    *rank = my_rank;
    *size = my_size;
    int rc = utofu_emu_enter_as_thread(my_rank, my_size);
    if (rc != 0) {
        fprintf(stderr, "rank %d cannot join the job: rc=%d\n", my_rank, rc);
        _exit(2);
    }
}

void hx_platform_fini(void)
{
}
