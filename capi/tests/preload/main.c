/* A program that is linked to an MPI. With EXTENSION: a program that loads a library which is linked to an MPI; only
 * that library then sees the MPI. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef EXTENSION
int main(int argc, char **argv) {
    void *const loaded = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    int (*const calls)(void) = loaded ? (int (*)(void))dlsym(loaded, "calls") : NULL;
    if (!calls) return fprintf(stderr, "%s\n", dlerror()), 3;
    return calls();
}
#else
int calls(void);
int main(void) { return calls(); }
#endif
