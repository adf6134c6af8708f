/* The progress thread: it makes progress on hopbine's requests while the program is elsewhere, in MPI_Recv, during
 * which MPI demands progress, or in its own computation. It calls hopbine's functions only, none of MPI's. */
#ifndef HOPBINE_BACKGROUND_H
#define HOPBINE_BACKGROUND_H

/* Functions by which the thread sees the requests: whether some are active; how often the program has made progress
 * on them; and one that makes progress without calling MPI and returns whether any request has ended. */
struct polled {
    int (*are_under_way)(void);
    unsigned long (*n_drives)(void);
    int (*poll)(void);
};

/* Tells the thread that a request is active. The first call starts the thread; all calls pass the same functions. */
void look_after(const struct polled *requests);

/* Ends the thread. */
void end_background(void);

#endif
