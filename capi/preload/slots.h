/* The calls that are passed to what serves them, by name: each is a jump through its slot. So a call needs neither types
 * nor numbers of arguments to be passed on, which differ by MPI, and takes a nanosecond longer. */
#ifndef HOPBINE_PRELOAD_SLOTS_H
#define HOPBINE_PRELOAD_SLOTS_H

struct slot {
    const char *name;
    /* Where its calls go; before the first of all calls, to hopbine_first_call(). */
    void *to;
    /* What was there at first. */
    void *const first;
};

/* All of them. */
#define HIDDEN __attribute__((visibility("hidden")))
extern HIDDEN struct slot first_slot[] __asm__("__start_hopbine_slots");
extern HIDDEN struct slot end_of_slots[] __asm__("__stop_hopbine_slots");

/* Called through a slot, with where it was called from, before it has its own; returns that. */
HIDDEN __attribute__((used)) void *hopbine_first_call(struct slot *slot, const void *caller);

#endif
