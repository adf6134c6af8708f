/*
 * jtofu.h - declarations of jTofu, the interface that tells a program about the
 * coordinates of its job.
 *
 * hopbine's own declarations, as utofu.h: that header's remarks hold here too. All
 * functions return 0 (JTOFU_SUCCESS) on success unless stated otherwise.
 */
#ifndef JTOFU_H
#define JTOFU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a call returns. */
enum jtofu_return_code {
    /** Done. */
    JTOFU_SUCCESS = 0
};

/** Number of a job. */
typedef uint32_t jtofu_job_id_t;
/** Rank within a job. */
typedef uint32_t jtofu_rank_t;

/** Physical coordinates in the six-dimensional network. */
union jtofu_phys_coords {
    /** By name. */
    struct {
        /** Along x. */
        uint8_t x;
        /** Along y. */
        uint8_t y;
        /** Along z. */
        uint8_t z;
        /** Along a (size 2). */
        uint8_t a;
        /** Along b (size 3). */
        uint8_t b;
        /** Along c (size 2). */
        uint8_t c;
    } s;
    /** By index. */
    uint8_t a[6];
};

/** Logical coordinates in the job's shape. */
union jtofu_log_coords {
    /** By name. */
    struct {
        /** Along the first axis. */
        uint32_t x;
        /** Along the second axis. */
        uint32_t y;
        /** Along the third axis. */
        uint32_t z;
    } s;
    /** By index. */
    uint32_t a[3];
};

/** Coordinates of a path inside a group of twelve nodes. */
union jtofu_path_coords {
    /** By name. */
    struct {
        /** Along a. */
        uint8_t pa;
        /** Along b. */
        uint8_t pb;
        /** Along c. */
        uint8_t pc;
    } s;
    /** By index. */
    uint8_t a[3];
};

/** Announces the calling process: its job, its rank and the job's map. */
int jtofu_initialize(jtofu_job_id_t job_id, jtofu_rank_t rank, const void *mapinfo);
/** Ends the use of this interface. */
int jtofu_finalize(void);
/** Physical coordinates of a rank. */
int jtofu_query_phys_coords(jtofu_job_id_t job_id, jtofu_rank_t rank,
                            union jtofu_phys_coords *coords);
/** Logical coordinates of a rank. */
int jtofu_query_log_coords(jtofu_job_id_t job_id, jtofu_rank_t rank,
                           union jtofu_log_coords *coords);
/** Extent of the job in physical coordinates. */
int jtofu_query_phys_size(union jtofu_phys_coords *size);
/** Extent of the job in logical coordinates. */
int jtofu_query_log_size(union jtofu_log_coords *size);
/** Extent of the whole system in physical coordinates. */
int jtofu_query_sys_size(union jtofu_phys_coords *size);
/** Returns the largest number of ranks on one node. */
int jtofu_query_max_proc_per_node(void);
/** Ranks at physical coordinates: at most max_ranks; how many in *num_ranks. */
int jtofu_query_ranks_from_phys_coords(jtofu_job_id_t job_id, union jtofu_phys_coords *coords,
                                       size_t max_ranks, jtofu_rank_t ranks[],
                                       size_t *num_ranks);
/** Ranks at logical coordinates: at most max_ranks; how many in *num_ranks. */
int jtofu_query_ranks_from_log_coords(jtofu_job_id_t job_id, union jtofu_log_coords *coords,
                                      size_t max_ranks, jtofu_rank_t ranks[],
                                      size_t *num_ranks);
/** Paths towards a node: at most max_paths; how many in *num_paths. */
int jtofu_query_onesided_paths(union jtofu_phys_coords *coords, size_t max_paths,
                               union jtofu_path_coords paths[], size_t *num_paths);
/** Number of hops to a node along the default path. */
int jtofu_query_onesided_hops(union jtofu_phys_coords *coords, size_t *num_hops);

#ifdef __cplusplus
}
#endif

#endif /* JTOFU_H */
