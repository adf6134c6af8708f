/* Permanent copies of lists. See common.h. */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct interned {
    struct interned *next;
    size_t bytes;
    char list[];
};

const void *intern_list(const void *list, size_t bytes) {
    static struct interned *all[256];
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    uint64_t hash = 0;
    for (size_t at = 0; at < bytes; at++) hash = (hash ^ ((const unsigned char *)list)[at]) * 0x100000001b3;
    struct interned **const first = &all[hash >> 32 & 255];
    pthread_mutex_lock(&mutex);
    struct interned *found = *first;
    while (found && (found->bytes != bytes || memcmp(found->list, list, bytes) != 0)) found = found->next;
    if (!found && (found = malloc(sizeof *found + bytes))) {
        found->next = *first, found->bytes = bytes;
        memcpy(found->list, list, bytes);
        *first = found;
    }
    pthread_mutex_unlock(&mutex);
    return found ? found->list : NULL;
}
