/* Calls that are passed on by name: each is a jump through its slot. So passing a call on needs neither types nor
 * numbers of arguments, which differ between MPIs, and costs about a nanosecond. */
#ifndef HOPBINE_PRELOAD_SLOTS_H
#define HOPBINE_PRELOAD_SLOTS_H

struct slot {
    const char *name;
    /* Target of the jump; hopbine_first until the first of all calls. */
    void *to;
    /* The initial value of `to`. */
    void *const first;
};

/* The array of all slots. */
#define HIDDEN __attribute__((visibility("hidden")))
extern HIDDEN struct slot first_slot[] __asm__("__start_hopbine_slots");
extern HIDDEN struct slot end_of_slots[] __asm__("__stop_hopbine_slots");

/* Called by a slot that has no target yet, with the caller's address; returns the target. */
HIDDEN __attribute__((used)) void *hopbine_first_call(struct slot *slot, const void *caller);

#endif
