/*
 * packets.c - messages between all ranks by the protocol of RIKEN's libutf. Ids are computed from coordinates, and
 * memory is registered under agreed STags. An atomic operation requests a slot of 16 packets. Packets have 256 bytes;
 * a put writes several packets without a notice, and the receiver polls their headers. Another atomic operation
 * returns the slot: the notice on the sender's side tells which word the operation was on.
 *
 * With -DHEADER_LAST the header of a packet follows its payload. With -DCQS_BY_THREE the ranks of a node are assumed
 * to have every third CQ, as in libutf's later table for Fugaku.
 */
#include <jtofu.h>
#include <utofu.h>

#include "ranks.h"

/* libutf's programs declare this function themselves. */
extern void utofu_get_last_error(const char *);

enum { RANKS = 16, SLOT = 16, PACKET = 256, MESSAGES = 120, CMP_ID = 7 };
enum { STAG_SEND = 10, STAG_RECEIVE = 11, STAG_ROOM = 12 };

struct header {
    uint32_t src;
    uint64_t tag;
    uint64_t word; /* the highest four bits are the marker: 0 once the packet is there */
} __attribute__((packed));

struct packet {
#ifndef HEADER_LAST
    struct header header;
#endif
    uint8_t payload[PACKET - sizeof(struct header)];
#ifdef HEADER_LAST
    struct header header;
#endif
} __attribute__((packed));

#define ALIGNED __attribute__((aligned(256)))
static struct {
    uint64_t free_slots;
    char pad[PACKET - 8];
    struct packet packets[RANKS][SLOT];
} ALIGNED in;
static struct packet ALIGNED out[RANKS][SLOT];
/* By peer: 1 once the peer has emptied the slot. */
static uint32_t ALIGNED room[RANKS];

static utofu_vcq_hdl_t vcq;
static utofu_vcq_id_t ids[RANKS];
static utofu_stadd_t out_stadd, in_stadd, room_stadd;
/* By peer: this rank's slot there, or -1; whether a slot is requested; packets put into the slot; messages sent; 1000
 * times the messages received, plus the packets of the current one. By slot here: the next packet to check. */
static int slot_at[RANKS], asked[RANKS], used[RANKS], sent[RANKS], got[RANKS], place[RANKS];

static void check(int rc, const char *what)
{
    char text[1024] = "";
    if (rc == UTOFU_SUCCESS)
        return;
    utofu_get_last_error(text);
    fprintf(stderr, "rank %d: %s: %d %s\n", ranks_me, what, rc, text);
    _exit(1);
}
#define CALL(f, ...) check(f(__VA_ARGS__), #f)

/* The CQ of the n-th of `ppn` ranks of a node, by libutf's table; the rank uses TNI n. */
static int cq_of(int ppn, int n)
{
#ifdef CQS_BY_THREE
    static const int cqs[5][4] = {{0}, {0}, {0, 6}, {0, 3, 6}, {0, 3, 6, 9}};
#else
    static const int cqs[5][4] = {{0}, {0}, {0, 6}, {0, 4, 8}, {0, 2, 5, 8}};
#endif
    return cqs[ppn][n];
}

static void start(void)
{
    utofu_tni_id_t *tnis;
    size_t n_tnis, n;
    int mine = -1;

    CALL(jtofu_initialize, 1, ranks_me, NULL);
    const int ppn = jtofu_query_max_proc_per_node();
    for (int rank = 0; rank < ranks_n; rank++) {
        union jtofu_phys_coords at;
        union jtofu_path_coords paths[5];
        jtofu_rank_t there[48];
        utofu_path_id_t path;
        int place_on_node = -1;
        CALL(jtofu_query_phys_coords, 1, rank, &at);
        CALL(jtofu_query_ranks_from_phys_coords, 1, &at, ppn, there, &n);
        for (size_t i = 0; i < n; i++)
            if (there[i] == (jtofu_rank_t)rank)
                place_on_node = i;
        CALL(utofu_construct_vcq_id, at.a, place_on_node, cq_of(ppn, place_on_node), CMP_ID,
             &ids[rank]);
        CALL(jtofu_query_onesided_paths, &at, 5, paths, &n);
        CALL(utofu_get_path_id, ids[rank], paths[0].a, &path);
        CALL(utofu_set_vcq_id_path, &ids[rank], NULL);
        if (rank == ranks_me)
            mine = place_on_node;
    }
    CALL(utofu_get_onesided_tnis, &tnis, &n_tnis);
    for (size_t i = 0; i < n_tnis; i++) {
        utofu_vcq_hdl_t handle;
        CALL(utofu_create_vcq_with_cmp_id, tnis[i], CMP_ID, 0, &handle);
        if (tnis[i] == mine)
            vcq = handle;
    }
    free(tnis);
    memset(&in, -1, sizeof in);
    in.free_slots = RANKS - 1;
    CALL(utofu_reg_mem_with_stag, vcq, out, sizeof out, STAG_SEND, 0, &out_stadd);
    CALL(utofu_reg_mem_with_stag, vcq, &in, sizeof in, STAG_RECEIVE, 0, &in_stadd);
    CALL(utofu_reg_mem_with_stag, vcq, room, sizeof room, STAG_ROOM, 0, &room_stadd);
    memset(slot_at, -1, sizeof slot_at);
}

/* Length in packets of the k-th message to a rank; value of its bytes. */
static int length_of(int k, int to) { return 1 + (k * 7 + to) % 4; }
static uint8_t byte_of(int from, int k, int i) { return from * 31 + k * 5 + i; }

/* Sends one message to a peer if possible: requests a slot, fills it, and waits while it is full. */
static void send_on(int to)
{
    utofu_stadd_t base;
    if (sent[to] == MESSAGES)
        return;
    CALL(utofu_query_stadd, ids[to], STAG_RECEIVE, &base);
    if (slot_at[to] < 0) {
        if (!asked[to]++)
            CALL(utofu_armw8, vcq, ids[to], UTOFU_ARMW_OP_ADD, (uint64_t)-1, base, to,
                 UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE, NULL);
        return;
    }
    const int k = sent[to], n = length_of(k, to);
    if (used[to] + n > SLOT)
        return;
    struct packet *p = &out[to][used[to]];
    for (int i = 0; i < n; i++) {
        p[i].header = (struct header){ranks_me, k, n};
        memset(p[i].payload, byte_of(ranks_me, k, i), sizeof p[i].payload);
    }
    CALL(utofu_put, vcq, ids[to], out_stadd + ((char *)p - (char *)out),
         base + ((char *)&in.packets[slot_at[to]][used[to]] - (char *)&in), n * PACKET, to,
         UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL);
    used[to] += n;
    sent[to]++;
    /* Empty packets fill the rest of the slot, so that the receiver reaches its end. */
    if (sent[to] < MESSAGES && used[to] + length_of(sent[to], to) > SLOT && used[to] < SLOT) {
        p = &out[to][used[to]];
        for (int i = used[to]; i < SLOT; i++)
            out[to][i].header = (struct header){ranks_me, 0, 0};
        CALL(utofu_put, vcq, ids[to], out_stadd + ((char *)p - (char *)out),
             base + ((char *)&in.packets[slot_at[to]][used[to]] - (char *)&in),
             (SLOT - used[to]) * PACKET, to, UTOFU_ONESIDED_FLAG_STRONG_ORDER, NULL);
        used[to] = SLOT;
    }
}

/* Checks for the next packet of a slot; returns 1 if it has arrived. */
static int receive_from(int slot)
{
    volatile struct packet *there = &in.packets[slot][place[slot]];
    if (there->header.word >> 60 != 0)
        return 0;
    static struct packet copy;
    memcpy(&copy, (const void *)there, sizeof copy);
    const int from = copy.header.src, k = copy.header.tag;
    if (copy.header.word > 0) {
        const int i = got[from] % 1000;
        if (from >= ranks_n || k != got[from] / 1000 ||
            (int)copy.header.word != length_of(k, ranks_me))
            ranks_stop("a header is wrong, of rank", from);
        for (size_t b = 0; b < sizeof copy.payload; b++)
            if (copy.payload[b] != byte_of(from, k, i))
                ranks_stop("a packet is torn, of rank", from);
        got[from] = i + 1 == (int)copy.header.word ? (k + 1) * 1000 : got[from] + 1;
    }
    there->header.word = UINT64_MAX;
    if (++place[slot] == SLOT) {
        utofu_stadd_t theirs;
        place[slot] = 0;
        CALL(utofu_query_stadd, ids[from], STAG_ROOM, &theirs);
        CALL(utofu_armw4, vcq, ids[from], UTOFU_ARMW_OP_OR, 1, theirs + 4 * ranks_me, ranks_me,
             UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, NULL);
    }
    return 1;
}

static void progress(void)
{
    struct utofu_mrq_notice n;
    void *data;
    int rc;
    do
        rc = utofu_poll_tcq(vcq, 0, &data);
    while (rc == UTOFU_SUCCESS);
    if (rc != UTOFU_ERR_NOT_FOUND)
        check(rc, "utofu_poll_tcq");
    while ((rc = utofu_poll_mrq(vcq, 0, &n)) == UTOFU_SUCCESS) {
        if (n.notice_type == UTOFU_MRQ_TYPE_LCL_ARMW) {
            slot_at[n.edata] = n.rmt_value;
        } else if (n.notice_type == UTOFU_MRQ_TYPE_RMT_ARMW) {
            /* rmt_value identifies the word. */
            const int peer = (n.rmt_value - room_stadd) / 4;
            if (peer != (int)n.edata || room[peer] != 1)
                ranks_stop("a notice names another word", n.rmt_value);
            room[peer] = used[peer] = 0;
        } else
            ranks_stop("a notice that nobody asked for", n.notice_type);
    }
    if (rc != UTOFU_ERR_NOT_FOUND)
        check(rc, "utofu_poll_mrq");
}

int main(void)
{
    uint64_t word = 0, words[RANKS];
    ranks_init();
    start();
    ranks_allgather(&word, 1, words);
    for (int open = 1; open;) {
        open = 0;
        for (int r = 0; r < ranks_n; r++) {
            send_on(r);
            open |= sent[r] < MESSAGES || got[r] < MESSAGES * 1000;
        }
        for (int slot = 0; slot < RANKS; slot++)
            while (receive_from(slot))
                ;
        progress();
        ranks_idle();
    }
    ranks_allgather(&word, 1, words);
    CALL(utofu_dereg_mem, vcq, out_stadd, 0);
    CALL(utofu_dereg_mem, vcq, in_stadd, 0);
    CALL(utofu_dereg_mem, vcq, room_stadd, 0);
    CALL(jtofu_finalize);
    if (ranks_me == 0)
        printf("%d messages of every rank to every rank: all correct\n", MESSAGES);
    return 0;
}
