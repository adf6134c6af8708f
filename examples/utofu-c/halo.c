/*
 * halo.c - halo exchange of a three-dimensional field, one TNI per face.
 *
 *   halo PX PY PZ      ranks along each axis; PX * PY * PZ is the number of ranks
 *
 * Each rank owns N^3 cells and one layer of halo cells around them; the ranks form a torus. In every step each rank
 * packs its six faces, puts face f through TNI f into the neighbour's receive buffer, waits for the six notices and
 * unpacks. Each face has two receive buffers, used alternately. A neighbour sends its face of step s after it has
 * unpacked the face of step s - 1. So a rank that has received that face may write to the neighbour's buffer of step
 * s - 1 again, in step s + 1.
 *
 * Then Jacobi steps update the cells: each cell becomes the sum of its six neighbours modulo 2^64. The result is
 * compared with that of a single rank that computes the whole field.
 */
#include "ranks.h"
#include "utofu.h"

enum { N = 6, W = N + 2, FACES = 6, FACE_CELLS = N * N, STEPS = 12 };

typedef uint64_t cell;

static int p[3], me[3];                   /* ranks along each axis; coordinates of this rank */
static utofu_vcq_hdl_t vcq[FACES];        /* VCQ of TNI f; sends face f, receives the opposite face */
static utofu_vcq_id_t  to[FACES];         /* the neighbour's VCQ of TNI f */
static utofu_stadd_t   out_at[FACES];     /* this rank's packed faces */
static utofu_stadd_t   in_at[FACES];      /* the neighbour's receive buffers for face f of this rank */
static cell out[FACES][FACE_CELLS];
static cell in[FACES][2][FACE_CELLS];     /* in[f]: data that a neighbour has sent as its face f */
static cell field[W][W][W], next[W][W][W];

static int wrap(int i, int n) { return (i % n + n) % n; }

static int rank_at(int x, int y, int z)
{
    return (wrap(z, p[2]) * p[1] + wrap(y, p[1])) * p[0] + wrap(x, p[0]);
}

/* Rank of the neighbour at face f: along axis f / 2, below for even f and above for odd f. */
static int neighbour(int f)
{
    int at[3] = {me[0], me[1], me[2]};
    at[f / 2] += f % 2 ? 1 : -1;
    return rank_at(at[0], at[1], at[2]);
}

/* The i-th cell of layer `layer` perpendicular to `axis`. */
static cell *cell_of(cell a[W][W][W], int axis, int layer, int i)
{
    int u = 1 + i % N, v = 1 + i / N;
    return axis == 0 ? &a[v][u][layer] : axis == 1 ? &a[v][layer][u] : &a[layer][v][u];
}

static cell initial(int x, int y, int z)
{
    return (cell)(x * 73856093) ^ (cell)(y * 19349663) ^ (cell)(z * 83492791);
}

static void connect(void)
{
    utofu_tni_id_t *tnis;
    size_t          num_tnis;
    uint64_t        mine[3], all[3 * ranks_n];

    CHECK(utofu_get_onesided_tnis(&tnis, &num_tnis));
    for (int f = 0; f < FACES; f++) {
        utofu_stadd_t in_here;
        CHECK(utofu_create_vcq(tnis[f % num_tnis], 0, &vcq[f]));
        CHECK(utofu_query_vcq_id(vcq[f], &mine[0]));
        CHECK(utofu_reg_mem(vcq[f], out[f], sizeof out[f], 0, &out_at[f]));
        CHECK(utofu_reg_mem(vcq[f], in[f], sizeof in[f], 0, &in_here));
        mine[1] = in_here;
        mine[2] = 0;
        ranks_allgather(mine, 3, all);
        to[f]    = all[3 * neighbour(f)];
        in_at[f] = all[3 * neighbour(f) + 1];
        CHECK(utofu_set_vcq_id_path(&to[f], NULL));
    }
    free(tnis);
}

static void post_face(int f, int step)
{
    void *cookie;
    int rc;
    for (int i = 0; i < FACE_CELLS; i++)
        out[f][i] = *cell_of(field, f / 2, f % 2 ? N : 1, i);
    while ((rc = utofu_put(vcq[f], to[f], out_at[f], in_at[f] + step % 2 * sizeof out[f],
                           sizeof out[f], step & 0xff,
                           UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE
                               | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE,
                           NULL))
           == UTOFU_ERR_BUSY)
        utofu_poll_tcq(vcq[f], 0, &cookie);
    if (rc != 0)
        ranks_stop("utofu_put", rc);
}

/* Waits on TNI f until this rank's face has left and the neighbour's has arrived; unpacks the neighbour's face. */
static void finish_face(int f, int step)
{
    /* The neighbour's face of the next step may arrive before this function returns. */
    static int early[FACES];
    int sent = 0, received = early[f];
    struct utofu_mrq_notice notice;
    void *cookie;

    early[f] = 0;
    while (!sent || !received) {
        int rc = utofu_poll_mrq(vcq[f], 0, &notice);
        if (rc == UTOFU_ERR_NOT_FOUND) {
            ranks_idle();
            continue;
        }
        if (rc != 0)
            ranks_stop("utofu_poll_mrq", rc);
        if (notice.notice_type == UTOFU_MRQ_TYPE_LCL_PUT)
            sent = 1;
        else if (notice.edata == (uint64_t)(step & 0xff))
            received = 1;
        else
            early[f] = 1;
    }
    /* These puts ask for no TCQ notice, but only polling the TCQ frees the entries of finished puts. */
    while (utofu_poll_tcq(vcq[f], 0, &cookie) == 0)
        ;
    for (int i = 0; i < FACE_CELLS; i++)
        *cell_of(field, f / 2, f % 2 ? 0 : N + 1, i) = in[f][step % 2][i];
}

static void jacobi(void)
{
    for (int z = 1; z <= N; z++)
        for (int y = 1; y <= N; y++)
            for (int x = 1; x <= N; x++)
                next[z][y][x] = field[z][y][x - 1] + field[z][y][x + 1] + field[z][y - 1][x]
                              + field[z][y + 1][x] + field[z - 1][y][x] + field[z + 1][y][x];
    memcpy(field, next, sizeof field);
}

/* Number of this rank's cells that differ from those of a single-rank computation. */
static int wrong_cells(void)
{
    int    n[3] = {p[0] * N, p[1] * N, p[2] * N}, wrong = 0;
    size_t cells = (size_t)n[0] * n[1] * n[2];
    cell  *a = malloc(cells * sizeof *a), *b = malloc(cells * sizeof *b);
#define AT(v, x, y, z) v[((size_t)wrap(z, n[2]) * n[1] + wrap(y, n[1])) * n[0] + wrap(x, n[0])]
#define ALL_CELLS                       \
    for (int z = 0; z < n[2]; z++)      \
        for (int y = 0; y < n[1]; y++)  \
            for (int x = 0; x < n[0]; x++)
    ALL_CELLS AT(a, x, y, z) = initial(x, y, z);
    for (int step = 0; step < STEPS; step++) {
        ALL_CELLS AT(b, x, y, z) = AT(a, x - 1, y, z) + AT(a, x + 1, y, z) + AT(a, x, y - 1, z)
                                 + AT(a, x, y + 1, z) + AT(a, x, y, z - 1) + AT(a, x, y, z + 1);
        memcpy(a, b, cells * sizeof *a);
    }
    for (int z = 0; z < N; z++)
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++)
                wrong += field[z + 1][y + 1][x + 1]
                      != AT(a, me[0] * N + x, me[1] * N + y, me[2] * N + z);
    free(a);
    free(b);
    return wrong;
}

int main(int argc, char **argv)
{
    ranks_init();
    for (int i = 0; i < 3; i++)
        p[i] = argc == 4 ? atoi(argv[1 + i]) : 0;
    if (p[0] < 1 || p[1] < 1 || p[2] < 1 || p[0] * p[1] * p[2] != ranks_n)
        ranks_stop("usage: halo PX PY PZ, whose product is the number of ranks", ranks_n);
    me[0] = ranks_me % p[0];
    me[1] = ranks_me / p[0] % p[1];
    me[2] = ranks_me / p[0] / p[1];
    connect();
    for (int z = 0; z < N; z++)
        for (int y = 0; y < N; y++)
            for (int x = 0; x < N; x++)
                field[z + 1][y + 1][x + 1] = initial(me[0] * N + x, me[1] * N + y, me[2] * N + z);
    for (int step = 0; step < STEPS; step++) {
        for (int f = 0; f < FACES; f++)
            post_face(f, step);
        for (int f = 0; f < FACES; f++)
            finish_face(f, step);
        jacobi();
    }
    int wrong = wrong_cells();
    if (wrong != 0)
        ranks_stop("wrong cells", wrong);
    ranks_barrier();
    for (int f = 0; f < FACES; f++)
        CHECK(utofu_free_vcq(vcq[f]));
    if (ranks_me == 0)
        printf("%d steps on %d x %d x %d ranks: all cells correct\n", STEPS, p[0], p[1], p[2]);
    return 0;
}
