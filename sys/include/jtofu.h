/*
 * jtofu.h - declarations of jTofu, the interface by which a program queries the coordinates of its job.
 *
 * These are hopbine's own declarations; the remarks in utofu.h hold here, too. All functions return 0 (JTOFU_SUCCESS)
 * on success unless stated otherwise.
 */
#ifndef JTOFU_H
#define JTOFU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Major version of the interface. */
#define JTOFU_VERSION_MAJOR 0
/** Minor version of the interface. */
#define JTOFU_VERSION_MINOR 0

/** What a call returns. */
enum jtofu_return_code {
    /** Done. */
    JTOFU_SUCCESS = 0,
    /** There is no job, or jtofu_initialize has not been called. */
    JTOFU_ERR_NOT_INITIALIZED = -1,
    /** The library lacks this. */
    JTOFU_ERR_NOT_IMPLEMENTED = -2,
    /** An argument is out of range. */
    JTOFU_ERR_INVALID_ARG = -3,
    /** A pointer is NULL. */
    JTOFU_ERR_INVALID_POINTER = -4,
    /** jtofu_finalize was called more often than jtofu_initialize. */
    JTOFU_ERR_EXCESS_FINALIZE = -5,
    /** There is no memory left. */
    JTOFU_ERR_OUT_OF_MEMORY = -6,
    /** The library cannot go on. */
    JTOFU_ERR_INTERNAL = -100
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
/** Announces another job with its map. */
int jtofu_add_job(jtofu_job_id_t job_id, const void *mapinfo);
/** Forgets a job that was added. */
int jtofu_delete_job(jtofu_job_id_t job_id);
/** For each physical axis of the system, 1 if it is a ring and 0 if it is not. */
int jtofu_query_sys_torus(union jtofu_phys_coords *torus);
/** Physical coordinates from which those of the job are counted. */
int jtofu_query_ref_coords(union jtofu_phys_coords *coords);
/** Paths of barriers towards a node: at most max_paths; how many in *num_paths. */
int jtofu_query_barrier_paths(union jtofu_phys_coords *coords, size_t max_paths,
                              union jtofu_path_coords paths[], size_t *num_paths);
/** Number of hops of a barrier's packets to a node along the default path. */
int jtofu_query_barrier_hops(union jtofu_phys_coords *coords, size_t *num_hops);
/** Version of the interface that the library implements. */
void jtofu_query_jtofu_version(int *major_ver, int *minor_ver);
/** Makes the map of the job that the environment describes; the caller frees *mapinfo. */
int jtofu_create_mapinfo_by_envvars(void **mapinfo, size_t *mapinfo_size,
                                    unsigned int *num_proc);

#ifdef __cplusplus
}
#endif

#endif /* JTOFU_H */
