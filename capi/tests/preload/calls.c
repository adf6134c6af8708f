/* Calls from a program, or from an extension that a program loads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Alltoallw(long a, long b, long c, long d, long e, long f, long g, long h, long i);
int calls(void);
int calls(void) {
    char *arguments[] = {NULL}, **argv = arguments;
    int argc = 0;
    setbuf(stdout, NULL);
    if (MPI_Init(&argc, &argv) != 0) return 1;
    for (long call = 1; call < 3; call++)
        if (MPI_Alltoallw(call, 2, 3, 4, 5, 6, 7, 8, -9) != 7) return 2;
#ifdef LATE
    void *const loaded = dlopen(LATE, RTLD_NOW | RTLD_LOCAL);
    void (*const late)(void) = loaded ? (void (*)(void))dlsym(loaded, "late") : NULL;
    if (!late) return fprintf(stderr, "%s\n", dlerror()), 4;
    late();
#endif
#ifdef MISSING
    /* As programs do to find out whether an MPI has a function. */
    int (*const barrier)(long) = (int (*)(long))dlsym(RTLD_DEFAULT, "MPI_Barrier");
    barrier(1);
#endif
    return 0;
}
