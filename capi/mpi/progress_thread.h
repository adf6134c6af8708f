/* The progress thread: it makes progress on hopbine's requests while the program is elsewhere, in MPI_Recv, during
 * which MPI demands progress, or in its own computation. It calls hopbine's functions only, none of MPI's. */
#ifndef HOPBINE_PROGRESS_THREAD_H
#define HOPBINE_PROGRESS_THREAD_H

/* Functions by which the thread sees the requests: whether some are active; how often the program has made progress
 * on them; and one that makes progress without calling MPI and returns whether any request has ended. */
struct progress_hooks {
    int (*are_under_way)(void);
    unsigned long (*n_drives)(void);
    int (*poll)(void);
};

/* Tells the thread that a request is active. The first call starts the thread; all calls pass the same functions. */
void wake_progress_thread(const struct progress_hooks *requests);

/* Ends the thread. */
void end_progress_thread(void);

#endif
