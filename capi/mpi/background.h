/* The thread in the background: it moves hopbine's requests on while the program is somewhere else, in
 * MPI_Recv for instance, where MPI demands it, or in its own computing. It calls hopbine only, never MPI. */
#ifndef HOPBINE_BACKGROUND_H
#define HOPBINE_BACKGROUND_H

/* Requests, as the thread sees them: whether some are under way; how often the program has moved them on; and
 * moves them on, without a call of MPI's: whether any has ended. */
struct polled {
    int (*are_under_way)(void);
    unsigned long (*n_drives)(void);
    int (*poll)(void);
};

/* A request is under way: the thread is to see to it. The first call starts the thread; all give the same functions. */
void look_after(const struct polled *requests);

/* Ends the thread. */
void end_background(void);

#endif
