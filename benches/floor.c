/* How close can messages with a header come to a loop of MPI_Isend, MPI_Irecv and MPI_Waitall? Two ranks exchange
 * a vector and add it up, in two ways in turn: by that loop; and as hopbine's messages over MPI go (a header of 32
 * bytes, a copy, receives that stay posted for any source), with nothing else. In front of each of its sends runs so
 * much code as the third column says, in lines of cache of 64 bytes, which does nothing: what the way through
 * a library costs while the kernel's drives it out of the cache. Medians of 41 rounds; the ratio is above 1 where
 * headers are ahead. For x86-64.
 *
 *     mpicc -O2 benches/floor.c -o floor
 *     mpirun -n 2 --bind-to core --mca pml ob1 --mca btl tcp,self ./floor
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64, SLOT_BYTES = 65536, HEADER_BYTES = 32, MOST = 2048, ROUNDS = 41, CALLS = 700 };

static int other, n, n_lines, head;
static double data[MOST], got[MOST];
static char out[HEADER_BYTES + MOST * sizeof(double)], *ring;
static MPI_Request slots[SLOTS];
static MPI_Comm comm;

/* 64 bytes each, nearly. */
#define CODE(NAME, LINES)                                                                              \
    static void __attribute__((noinline)) NAME(void) {                                                 \
        __asm__ volatile(".rept " #LINES "\n\t"                                                        \
                         "addl $0x12345678, %%eax\n\taddl $0x12345678, %%ecx\n\t"                       \
                         "addl $0x12345678, %%edx\n\taddl $0x12345678, %%esi\n\t"                       \
                         "addl $0x12345678, %%edi\n\taddl $0x12345678, %%r8d\n\t"                       \
                         "addl $0x12345678, %%r9d\n\taddl $0x12345678, %%r10d\n\t"                      \
                         "addl $0x12345678, %%r11d\n\taddl $0x12345678, %%eax\n\tnop\n\t.endr"          \
                         ::: "eax", "ecx", "edx", "esi", "edi", "r8", "r9", "r10", "r11", "cc");        \
    }
CODE(code_50, 50)
CODE(code_100, 100)
CODE(code_200, 200)
CODE(code_320, 320)

static void post(int slot) {
    MPI_Irecv(ring + (size_t)slot * SLOT_BYTES, SLOT_BYTES, MPI_BYTE, MPI_ANY_SOURCE, 0, comm, &slots[slot]);
}

static void by_loop(void) {
    MPI_Request requests[2];
    MPI_Irecv(got, n, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, n, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) data[i] += got[i];
}

static void by_header(void) {
    MPI_Request send;
    MPI_Status status;
    int has_left, has_come = 0, is_posted = 0;
    memcpy(out + HEADER_BYTES, data, (size_t)n * sizeof *data);
    switch (n_lines) {
    case 50: code_50(); break;
    case 100: code_100(); break;
    case 200: code_200(); break;
    case 320: code_320(); break;
    }
    MPI_Isend(out, HEADER_BYTES + n * (int)sizeof *data, MPI_BYTE, other, 0, comm, &send);
    MPI_Request_get_status(send, &has_left, MPI_STATUS_IGNORE);
    const int slot = head, last = (head + SLOTS - 1) % SLOTS;
    head = (head + 1) % SLOTS;
    while (!has_come) {
        MPI_Request_get_status(slots[slot], &has_come, &status);
        if (!has_come && !is_posted) post(last), is_posted = 1;
    }
    MPI_Wait(&slots[slot], MPI_STATUS_IGNORE);
    if (!is_posted) post(last);
    double *const came = (double *)(ring + (size_t)slot * SLOT_BYTES + HEADER_BYTES);
    for (int i = 0; i < n; i++) data[i] += came[i];
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

/* Microseconds a call, on the slower rank. */
static double time_of(void (*call)(void)) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < CALLS; i++) call();
    double own = (MPI_Wtime() - begin) / CALLS * 1e6, slower;
    MPI_Allreduce(&own, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slower;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv) {
    static const int sizes[] = {1, 32, 256, MOST}, lines[] = {0, 50, 100, 200, 320};
    int rank, n_ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (n_ranks != 2) {
        fprintf(stderr, "floor: two ranks are needed, not %d\n", n_ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    other = 1 - rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ring = calloc(SLOTS, SLOT_BYTES);
    for (int slot = 0; slot < SLOTS; slot++) slots[slot] = MPI_REQUEST_NULL;
    for (int slot = 0; slot < SLOTS - 1; slot++) post(slot);
    if (rank == 0) printf("%6s %6s %8s %8s %6s\n", "bytes", "lines", "loop us", "header", "ratio");
    for (int size = 0; size < 4; size++) {
        for (int i = 0; i < 5; i++) {
            double loops[ROUNDS], headers[ROUNDS], ratios[ROUNDS];
            n = sizes[size], n_lines = lines[i];
            time_of(by_loop), time_of(by_header);
            for (int round = 0; round < ROUNDS; round++) {
                if (round % 2) loops[round] = time_of(by_loop), headers[round] = time_of(by_header);
                else headers[round] = time_of(by_header), loops[round] = time_of(by_loop);
                ratios[round] = loops[round] / headers[round];
            }
            const double loop = median(loops), header = median(headers), ratio = median(ratios);
            if (rank == 0) printf("%6d %6d %8.2f %8.2f %6.3f\n", n * 8, n_lines, loop, header, ratio);
        }
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        if (slots[slot] == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&slots[slot]);
        MPI_Wait(&slots[slot], MPI_STATUS_IGNORE);
    }
    free(ring);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
