/* Compares every operator on every type by the barrier gates of the emulated device with the same reduction by a
 * plan: on the world, a duplicate, and a subcommunicator. Prints "all correct" on rank 0. */
#include "check.h"

#include <string.h>

enum { MOST = 6 };
static const int bytes_of[] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 8, 16, 8, 16, 8};

/* Whether hopbine says that barrier gates perform this reduction. */
static int by_gates(hopbine_comm_t comm, int64_t count, int element, int op) {
    char line[200];
    CHECK(hopbine_explain(comm, "allreduce", count, element, op, line, sizeof line));
    return strncmp(line, "gates", 5) == 0;
}

/* Fills a vector with numbers of every kind: arbitrary bits, small numbers, and NaN, infinities and -0 of floats. */
static void fill(unsigned char *vector, int bytes, int seed) {
    static const unsigned char special[] = {0x00, 0x80, 0x7f, 0xff, 0x7f, 0xff};
    static const unsigned char next[] = {0x00, 0x00, 0xf0, 0xf0, 0xf8, 0xf1};
    unsigned state = 12345u + 1000u * (unsigned)seed;
    for (int i = 0; i < bytes; i++) {
        state = state * 1103515245u + 12345u;
        vector[i] = (unsigned char)(state >> 16);
    }
    const int kind = seed % 8;
    if (seed % 3 == 0) {
        /* Pairs with equal values. */
        for (int i = 0; i < bytes; i++) vector[i] = (unsigned char)(i % 4 == 0 ? i + seed / 31 % 2 * (i / 4 % 2) : 0);
    } else if (kind < 6 && bytes >= 8) {
        memset(vector, 0, 8);
        vector[7] = special[kind], vector[6] = next[kind];
    }
}

static int compare(hopbine_comm_t comm) {
    int rank, size, n_by_gates = 0;
    hopbine_comm_t plan;
    CHECK(hopbine_comm_rank(comm, &rank));
    CHECK(hopbine_comm_size(comm, &size));
    CHECK(hopbine_comm_with(comm, NULL, 1, 0, &plan));
    for (int element = HOPBINE_INT8; element <= HOPBINE_PAIR_FLOAT_INT32; element++)
        for (int op = HOPBINE_SUM; op <= HOPBINE_MAXLOC; op++) {
            const int is_float = element >= HOPBINE_FLOAT16, is_complex = element >= HOPBINE_FLOAT_COMPLEX;
            const int is_pair = element >= HOPBINE_PAIR_INT32, is_location = op >= HOPBINE_MINLOC;
            if (is_pair != is_location) continue;
            if (!is_pair && ((is_float && op >= HOPBINE_LAND) || (is_complex && op >= HOPBINE_MIN))) continue;
            if (by_gates(comm, 1, element, op) != (op != HOPBINE_PROD && !(is_float && op == HOPBINE_SUM))) {
                fprintf(stderr, "rank %d: operator %d on type %d\n", rank, op, element);
                exit(1);
            }
            for (int64_t count = 1; count <= MOST && by_gates(comm, count, element, op); count++) {
                unsigned char mine[16 * MOST], got[16 * MOST], right[16 * MOST];
                const int bytes = (int)count * bytes_of[element];
                fill(mine, bytes, 31 * rank + op + (int)count);
                CHECK(hopbine_allreduce(mine, got, count, element, op, comm));
                CHECK(hopbine_allreduce(mine, right, count, element, op, plan));
                if (memcmp(got, right, bytes) != 0) {
                    fprintf(stderr, "rank %d of %d: operator %d on %d of type %d\n", rank, size, op, (int)count, element);
                    exit(1);
                }
                CHECK(hopbine_allreduce(HOPBINE_IN_PLACE, mine, count, element, op, comm));
                if (memcmp(mine, right, bytes) != 0) exit(1);
                n_by_gates++;
            }
        }
    CHECK(hopbine_comm_free(&plan));
    return n_by_gates;
}

int main(void) {
    hopbine_comm_t world, second, part;
    CHECK(hopbine_init(&world));
    int rank;
    CHECK(hopbine_comm_rank(world, &rank));
    CHECK(hopbine_comm_duplicate(world, &second));
    CHECK(hopbine_comm_split(world, rank == 0 ? HOPBINE_UNDEFINED : 1, -rank, &part));
    const int on_world = compare(world), on_second = compare(second);
    const int on_part = rank == 0 ? on_world : compare(part);
    CHECK(hopbine_comm_free(&second));
    if (rank != 0) CHECK(hopbine_comm_free(&part));
    CHECK(hopbine_finalize());
    if (on_world < 300 || on_second != on_world || on_part != on_world) {
        fprintf(stderr, "rank %d: %d, %d and %d by the gates\n", rank, on_world, on_second, on_part);
        return 1;
    }
    if (rank == 0) puts("all correct");
    return 0;
}
