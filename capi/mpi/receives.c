/* See receives.h. */
#include "receives.h"

#include <stdlib.h>

/* A spare receive, with its tag. */
struct receive {
    MPI_Request native;
    int tag;
};

/* Stacks of spare receives and of free tags; the number of tags made so far. Each stack has room for all tags. */
static struct receive *receives;
static int *tags;
static int n_receives, n_tags, n_made, capacity;
/* Most spare receives; further ones are ended. */
enum { MOST_RECEIVES = 1024 };

/* A tag that no receive uses; 0 if there is none. */
static int find_tag(void) {
    int *most, found;
    if (n_tags > 0) return tags[--n_tags];
    if (n_made == capacity) {
        PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
        if (found && 2 * capacity > *most) return 0;
        const int wanted = capacity ? 2 * capacity : 16;
        struct receive *const more = realloc(receives, (size_t)wanted * sizeof *more);
        if (more) receives = more;
        int *const more_tags = more ? realloc(tags, (size_t)wanted * sizeof *more_tags) : NULL;
        if (!more_tags) return 0;
        tags = more_tags, capacity = wanted;
    }
    return ++n_made;
}

int begin_receive(int is_persistent, MPI_Request *native) {
    if (!is_persistent && n_receives > 0) {
        *native = receives[--n_receives].native;
        return receives[n_receives].tag;
    }
    const int tag = find_tag();
    if (!tag) return 0;
    const int error = is_persistent ? PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, tag, self_comm, native)
                                    : PMPI_Irecv(NULL, 0, MPI_BYTE, 0, tag, self_comm, native);
    if (error == MPI_SUCCESS) return tag;
    end_receive(tag);
    return 0;
}

void send_to_receive(int tag) { PMPI_Send(NULL, 0, MPI_BYTE, 0, tag, self_comm); }

void end_receive(int tag) { tags[n_tags++] = tag; }

static void give_back(MPI_Request native, int tag) {
    send_to_receive(tag);
    PMPI_Wait(&native, MPI_STATUS_IGNORE);
    end_receive(tag);
}

void keep_receive(MPI_Request native, int tag) {
    if (n_receives < MOST_RECEIVES) receives[n_receives++] = (struct receive){native, tag};
    else give_back(native, tag);
}

void end_receives(void) {
    while (n_receives > 0) n_receives--, give_back(receives[n_receives].native, receives[n_receives].tag);
}
