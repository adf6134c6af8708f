/* Permanent copies of lists. See doors.h. */
#include "doors.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    struct kept *next;
    size_t bytes;
    char list[];
};

const void *keep_list(const void *list, size_t bytes) {
    static struct kept *all[256];
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t hash = 0;
    for (size_t at = 0; at < bytes; at++) hash = (hash ^ ((const unsigned char *)list)[at]) * 0x100000001b3;
    struct kept **const first = &all[hash >> 32 & 255];
    pthread_mutex_lock(&mutex);
    struct kept *kept = *first;
    while (kept && (kept->bytes != bytes || memcmp(kept->list, list, bytes) != 0)) kept = kept->next;
    if (!kept && (kept = malloc(sizeof *kept + bytes))) {
        kept->next = *first, kept->bytes = bytes;
        memcpy(kept->list, list, bytes);
        *first = kept;
    }
    pthread_mutex_unlock(&mutex);
    return kept ? kept->list : NULL;
}
