/* Non-commutative operators, on types with and without holes; and overlapping buffers, as programs have them. Runs
 * with MPI alone and under the preload library. Prints "all in order" on rank 0. */
#include "program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Maps x -> a x + b modulo a prime; their composition does not commute. */
enum { PRIME = 10007, MOST = 12, N = 4000 };
struct map {
    int a;
    /* Not sent. */
    char hole[12];
    int b;
};

/* The type of a structure of two members at these places; its extent is `bytes`. */
static MPI_Datatype structure(const MPI_Aint at[2], const MPI_Datatype members[2], MPI_Aint bytes) {
    const int lengths[] = {1, 1};
    MPI_Datatype loose, type;
    MPI_Type_create_struct(2, lengths, at, members, &loose);
    MPI_Type_create_resized(loose, 0, bytes, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&loose);
    return type;
}

static struct map after(struct map first, struct map second) {
    struct map both = {(first.a * second.a) % PRIME, "", (second.a * first.b + second.b) % PRIME};
    return both;
}

static void compose(void *in, void *inout, int *n, MPI_Datatype *type) {
    struct map *first = in, *second = inout;
    (void)type;
    for (int i = 0; i < *n; i++) {
        const struct map both = after(first[i], second[i]);
        second[i].a = both.a, second[i].b = both.b;
    }
}

static struct map of(int r, int i) {
    struct map map = {(7 * r + i) % PRIME + 1, "", (11 * r + 5 * i) % PRIME};
    return map;
}

/* The composition of ranks 0 to `last`, for element i. */
static struct map up_to(int last, int i) {
    struct map all = of(0, i);
    for (int r = 1; r <= last; r++) all = after(all, of(r, i));
    return all;
}

static struct map send[N * MOST], recv[N * MOST];

static void fill(struct map *buffer, int n) {
    memset(recv, 77, sizeof recv);
    for (int i = 0; i < n; i++) buffer[i].a = of(rank, i).a, buffer[i].b = of(rank, i).b;
}

static int is_right(struct map got, struct map want) {
    /* Holes must stay unchanged. */
    return got.a == want.a && got.b == want.b && got.hole[0] == 77;
}

static void reductions(MPI_Datatype type, MPI_Op op, int n) {
    for (int in_place = 0; in_place < 2; in_place++) {
        const void *from = in_place ? MPI_IN_PLACE : (void *)send;
        struct map *input = in_place ? recv : send;
        fill(input, n);
        MPI_Allreduce(from, recv, n, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(is_right(recv[i], up_to(size - 1, i)));
        fill(rank == 0 ? input : send, n);
        MPI_Reduce(rank == 0 ? from : send, rank == 0 ? recv : NULL, n, type, op, 0, MPI_COMM_WORLD);
        for (int i = 0; rank == 0 && i < n; i++) EXPECT(is_right(recv[i], up_to(size - 1, i)));
        fill(input, n);
        MPI_Scan(from, recv, n, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(is_right(recv[i], up_to(rank, i)));
        fill(input, n);
        MPI_Exscan(from, recv, n, type, op, MPI_COMM_WORLD);
        for (int i = 0; rank > 0 && i < n; i++) EXPECT(is_right(recv[i], up_to(rank - 1, i)));
        fill(input, n * size);
        MPI_Reduce_scatter_block(from, recv, n, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(is_right(recv[i], up_to(size - 1, rank * n + i)));
        int counts[MOST], before = 0, all = 0;
        for (int r = 0; r < size; r++) {
            counts[r] = r % 3 ? n + r % 3 : 0;
            before += r < rank ? counts[r] : 0, all += counts[r];
        }
        fill(input, all);
        MPI_Reduce_scatter(from, in_place || counts[rank] > 0 ? recv : NULL, counts, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < counts[rank]; i++) EXPECT(is_right(recv[i], up_to(size - 1, before + i)));
    }
}

static void pairs(void) {
    struct { double x; int at; } best[50], mine[50];
    struct { float x; int at; } low = {(rank + 1) % size, rank}, lowest;
    for (int i = 0; i < 50; i++) mine[i].x = (rank + i) % size, mine[i].at = rank;
    MPI_Allreduce(mine, best, 50, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    for (int i = 0; i < 50; i++) EXPECT(best[i].x == size - 1 && best[i].at == (size - 1 - i % size + size) % size);
    MPI_Reduce(&low, &lowest, 1, MPI_FLOAT_INT, MPI_MINLOC, 0, MPI_COMM_WORLD);
    EXPECT(rank != 0 || (lowest.x == 0 && lowest.at == size - 1));
    /* Memory beside a pair must stay unchanged. */
    struct { double x; int at, own; } real = {-rank / 2, rank, 7}, last = {0, 0, 8};
    struct { long x; int at, own; } whole = {1L << 40, size - rank, 7};
    struct { short x, own; int at; } small = {rank % 2, 7, -rank};
    MPI_Allreduce(&real, &last, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    EXPECT(last.x == -(size - 1) / 2 && last.at == 2 * ((size - 1) / 2) && last.own == 8);
    MPI_Allreduce(MPI_IN_PLACE, &whole, 1, MPI_LONG_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    EXPECT(whole.x == 1L << 40 && whole.at == 1 && whole.own == 7);
    MPI_Reduce(rank == size - 1 ? MPI_IN_PLACE : (void *)&small, &small, 1, MPI_SHORT_INT, MPI_MAXLOC, size - 1, MPI_COMM_WORLD);
    if (rank == size - 1)
        EXPECT(small.x == (size > 1) && small.own == 7 && small.at == (size > 1 ? -(size / 2 * 2 - 1) : 0));
    long double l = rank + 1, most = 0;
    MPI_Allreduce(&l, &most, 1, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    EXPECT(most == size);
    unsigned char bits = (unsigned char)(1 << rank % 8), any = 0;
    MPI_Allreduce(&bits, &any, 1, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    EXPECT(any == (size < 8 ? (1 << size) - 1 : 255));
}

/* An operator that assigns whole structures, with their padding, of a type whose data end before its extent. Only with
 * the argument `padded`, for hopbine: Open MPI 4's own buffers end with the data, and this writes behind them. */
struct keyed {
    long double key;
    int at;
};

static void latest(void *in, void *inout, int *n, MPI_Datatype *type) {
    struct keyed *first = in, *second = inout;
    (void)type;
    for (int i = 0; i < *n; i++)
        if (first[i].key > second[i].key) second[i] = first[i];
}

static void padded(void) {
    enum { MANY = 1000 };
    static struct keyed mine[MANY], best[MANY];
    const MPI_Aint at[] = {offsetof(struct keyed, key), offsetof(struct keyed, at)};
    const MPI_Datatype members[] = {MPI_LONG_DOUBLE, MPI_INT};
    MPI_Datatype type = structure(at, members, sizeof(struct keyed));
    MPI_Op op;
    MPI_Op_create(latest, 0, &op);
    for (int n = 1; n <= MANY; n = n < 8 ? n + 1 : n * 5) {
        for (int i = 0; i < n; i++) mine[i].key = (rank + i) % size, mine[i].at = rank, best[i].at = -1;
        MPI_Allreduce(mine, best, n, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < n; i++) EXPECT(best[i].key == size - 1 && best[i].at == (size - 1 - i % size + size) % size);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* While it is set, calloc() gives no memory for a block of elements. */
static int is_without_memory;
void *__libc_calloc(size_t n, size_t bytes);
void *calloc(size_t n, size_t bytes) {
    return is_without_memory && n * bytes >= N ? NULL : __libc_calloc(n, bytes);
}

/* A rank that gets no memory has sent nothing yet: it makes the call again, for which the others wait. Only with
 * `padded`, too. */
static void without_memory(MPI_Datatype type, MPI_Op op) {
    fill(send, N);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    is_without_memory = rank == 1;
    int error = MPI_Allreduce(send, recv, N, type, op, MPI_COMM_WORLD);
    EXPECT(error == (is_without_memory ? MPI_ERR_NO_MEM : MPI_SUCCESS));
    is_without_memory = 0;
    if (rank == 1) error = MPI_Allreduce(send, recv, N, type, op, MPI_COMM_WORLD);
    EXPECT(error == MPI_SUCCESS);
    for (int i = 0; i < N; i++) EXPECT(is_right(recv[i], up_to(size - 1, i)));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Sent blocks lie between received blocks; then one block is sent to all ranks. */
static void interleaved(void) {
    int board[4 * MOST], counts[MOST], even[MOST], odd[MOST], none[MOST];
    for (int r = 0; r < size; r++) {
        counts[r] = 1, even[r] = 2 * r, odd[r] = 2 * r + 1, none[r] = 0;
        board[even[r]] = 100 * rank + r, board[odd[r]] = -1;
    }
    MPI_Alltoallv(board, counts, even, MPI_INT, board + 1, counts, even, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) EXPECT(board[odd[r]] == 100 * r + rank && board[even[r]] == 100 * rank + r);
    MPI_Alltoallv(board, counts, none, MPI_INT, board + 1, counts, even, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) EXPECT(board[odd[r]] == 100 * r);
    int backwards[MOST], at[MOST];
    for (int r = 0; r < size; r++) at[r] = size - 1 - r;
    MPI_Allgatherv(&rank, 1, MPI_INT, backwards, counts, at, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) EXPECT(backwards[r] == size - 1 - r);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const MPI_Aint at[] = {offsetof(struct map, a), offsetof(struct map, b)};
    const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
    MPI_Datatype resized = structure(at, ints, sizeof(struct map));
    MPI_Op op;
    MPI_Op_create(compose, 0, &op);
    reductions(resized, op, 1);
    reductions(resized, op, 30);
    reductions(resized, op, 1000);
    pairs();
    if (argc > 1 && strcmp(argv[1], "padded") == 0) padded(), without_memory(resized, op);
    interleaved();
    MPI_Op_free(&op);
    MPI_Type_free(&resized);
    MPI_Finalize();
    if (rank == 0) puts("all in order");
    return 0;
}
