/*
 * pingpong.c - ranks 0 and 1 throw a ball, a message of LENGTH bytes, to each other: first by put, then by get.
 *
 * Put: the thrower writes the ball into the catcher's memory. The catcher sees the notice of that put
 * (REMOTE_MRQ_NOTICE) and throws the ball back. Get: the catcher fetches the ball from the thrower's memory, writes
 * the next ball to its own memory, and announces it by a put without data. Every ball is checked.
 */
#include "ranks.h"
#include "utofu.h"

#include <time.h>

enum { ROUNDS = 1000, LENGTH = 64 };

static utofu_vcq_hdl_t vcq;
static utofu_vcq_id_t  peer;
static utofu_stadd_t   here, there;      /* this rank's memory, the peer's memory */
static volatile uint8_t *memory;         /* first half: to throw; second half: to catch */

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static void write_ball(int number)
{
    for (int i = 0; i < LENGTH; i++)
        memory[i] = (uint8_t)(number + i);
}

static void check_ball(int number)
{
    for (int i = 0; i < LENGTH; i++)
        if (memory[LENGTH + i] != (uint8_t)(number + i))
            ranks_stop("a wrong ball in throw", number);
}

/* Waits for one completion of this rank's operations and discards it, which frees queue entries. */
static void wait_sent(void)
{
    void *cookie;
    int rc;
    while ((rc = utofu_poll_tcq(vcq, 0, &cookie)) == UTOFU_ERR_NOT_FOUND)
        ranks_idle();
    if (rc != 0)
        ranks_stop("utofu_poll_tcq", rc);
}

/* Waits for a notice, and checks its type and number. */
static void wait_notice(int type, int number)
{
    struct utofu_mrq_notice notice;
    int rc;
    while ((rc = utofu_poll_mrq(vcq, 0, &notice)) == UTOFU_ERR_NOT_FOUND)
        ranks_idle();
    if (rc != 0)
        ranks_stop("utofu_poll_mrq", rc);
    if (notice.notice_type != type || notice.edata != (uint64_t)(number & 0xff))
        ranks_stop("an unexpected notice of type", notice.notice_type);
}

static void throw_by_put(int number)
{
    write_ball(number);
    CHECK(utofu_put(vcq, peer, here, there + LENGTH, LENGTH, number & 0xff,
                    UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, NULL));
    wait_sent();
}

static void catch_by_put(int number)
{
    wait_notice(UTOFU_MRQ_TYPE_RMT_PUT, number);
    check_ball(number);
}

/* The catcher fetches the ball, which is in the thrower's memory before the notice of the last throw. */
static void catch_by_get(int number)
{
    CHECK(utofu_get(vcq, peer, here + LENGTH, there, LENGTH, number & 0xff,
                    UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE
                        | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE,
                    NULL));
    wait_sent();
    wait_notice(UTOFU_MRQ_TYPE_LCL_GET, number);
    check_ball(number);
}

int main(void)
{
    utofu_tni_id_t *tnis;
    size_t          num_tnis;
    utofu_vcq_id_t  id;

    ranks_init();
    if (ranks_n != 2)
        ranks_stop("two ranks are needed, not", ranks_n);
    CHECK(utofu_get_onesided_tnis(&tnis, &num_tnis));
    if (num_tnis == 0)
        ranks_stop("there is no TNI", 0);
    CHECK(utofu_create_vcq(tnis[0], 0, &vcq));
    free(tnis);
    CHECK(utofu_query_vcq_id(vcq, &id));
    memory = aligned_alloc(256, 256);
    CHECK(utofu_reg_mem(vcq, (void *)memory, 2 * LENGTH, 0, &here));

    uint64_t mine[2] = {id, here}, all[4];
    if (ranks_me == 1)
        write_ball(0); /* the first ball that rank 0 fetches */
    int other = 1 - ranks_me;
    ranks_allgather(mine, 2, all);
    peer  = all[2 * other];
    there = all[2 * other + 1];
    CHECK(utofu_set_vcq_id_path(&peer, NULL));

    double start = now_us();
    for (int i = 0; i < ROUNDS; i++)
        if (i % 2 == ranks_me)
            throw_by_put(i);
        else
            catch_by_put(i);
    double put_us = (now_us() - start) / ROUNDS;

    ranks_barrier();
    if (ranks_me == 1)
        write_ball(0);
    ranks_barrier();
    start = now_us();
    for (int i = 0; i < ROUNDS; i++)
        if (i % 2 == ranks_me) {
            catch_by_get(i);
            /* The ball of throw i + 1 must be written before the peer fetches it: the peer waits for this notice. */
            write_ball(i + 1);
            CHECK(utofu_put_piggyback8(vcq, peer, 0, there + LENGTH, 0, i & 0xff,
                                       UTOFU_ONESIDED_FLAG_TCQ_NOTICE
                                           | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE,
                                       NULL));
            wait_sent();
        } else {
            wait_notice(UTOFU_MRQ_TYPE_RMT_GET, i);
            wait_notice(UTOFU_MRQ_TYPE_RMT_PUT, i);
        }
    double get_us = (now_us() - start) / ROUNDS;

    ranks_barrier();
    if (ranks_me == 0)
        printf("%d throws of %d bytes: put %.2f us, get %.2f us each; all correct\n", ROUNDS, LENGTH,
               put_us, get_us);
    CHECK(utofu_dereg_mem(vcq, here, 0));
    CHECK(utofu_free_vcq(vcq));
    free((void *)memory);
    return 0;
}
