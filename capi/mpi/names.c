/* Names of the collectives: for reports, and in HOPBINE_ONLY and HOPBINE_EXCEPT. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME(Name, name, COLLECTIVE, P, A, M) [COLLECTIVE] = #name,
static const char *const names[N_COLLECTIVES] = {SIGNATURES(NAME, int, int) BARRIER_SIGNATURE(NAME)};

const char *collective_name(enum collective collective) { return names[collective]; }

const char *call_name(enum collective collective, enum form form) {
    static PER_THREAD char name[64];
    snprintf(name, sizeof name, "MPI_%s%s%s", form == NONBLOCKING ? "I" : "", names[collective],
             form == PERSISTENT ? "_init" : "");
    if (form != NONBLOCKING) name[4] = (char)(name[4] - 'a' + 'A');
    return name;
}

/* Whether a word of `length` characters is this name, in upper or lower case. */
static int is_name(const char *word, size_t length, const char *name) {
    return length == strlen(name) && strncasecmp(word, name, length) == 0;
}

/* Whether a list of names contains `name`. */
static int lists(const char *list, const char *name) {
    while (*list) {
        const size_t word = strcspn(list, ", ");
        if (is_name(list, word, name)) return 1;
        list += word + (list[word] != 0);
    }
    return 0;
}

/* A bit for each collective, and one for requests. */
static unsigned wanted;
enum { REQUESTS = N_COLLECTIVES };

/* The first word of a list that is neither a collective nor `also`, and its length; null if there is none. */
static const char *unknown_word(const char *list, const char *also, size_t *length) {
    for (; *list; list += *length + (list[*length] != 0)) {
        *length = strcspn(list, ", ");
        int is_known = *length == 0 || is_name(list, *length, also);
        for (int c = 0; c < N_COLLECTIVES && !is_known; c++) is_known = is_name(list, *length, names[c]);
        if (!is_known) return list;
    }
    return NULL;
}

/* Whether a variable has valid names only; if not, prints an error if `prints_errors`. */
static int has_names(const char *variable, const char *value, const char *also, int prints_errors) {
    size_t length = 0;
    const char *const word = value ? unknown_word(value, also, &length) : NULL;
    if (!word || !prints_errors) return !word;
    fprintf(stderr, "hopbine: %s: `%.*s` is not valid; it must be one of", variable, (int)length, word);
    for (int c = 0; c < N_COLLECTIVES; c++) fprintf(stderr, "%s %s", c ? "," : "", names[c]);
    fprintf(stderr, "%s%s; MPI serves all calls\n", *also ? ", " : "", also);
    return 0;
}

enum start_time start_wanted(void) {
    const char *const when = getenv("HOPBINE_START");
    if (!when || !*when || strcasecmp(when, "init") == 0) return AT_INIT;
    return strcasecmp(when, "call") == 0 ? AT_CALL : AT_UNKNOWN;
}

/* Whether HOPBINE_START has a valid value; if not, prints an error if `prints_errors`. */
static int has_start(int prints_errors) {
    const int is_known = start_wanted() != AT_UNKNOWN;
    if (!is_known && prints_errors)
        fprintf(stderr, "hopbine: HOPBINE_START: `%s` is not valid; it must be one of init, call; MPI serves all calls\n",
                getenv("HOPBINE_START"));
    return is_known;
}

int read_settings(int prints_errors) {
    const char *only = getenv("HOPBINE_ONLY"), *except = getenv("HOPBINE_EXCEPT");
    wanted = (unsigned)!(except && lists(except, "requests")) << REQUESTS;
    for (int c = 0; c < N_COLLECTIVES; c++)
        wanted |= (unsigned)((!only || !*only || lists(only, names[c])) && !(except && lists(except, names[c]))) << c;
    return has_start(prints_errors) && has_names("HOPBINE_ONLY", only, "", prints_errors) &&
           has_names("HOPBINE_EXCEPT", except, "requests", prints_errors);
}

unsigned all_wanted(void) { return wanted; }

int is_wanted(enum collective collective) { return wanted >> collective & 1; }

int are_requests_wanted(void) { return wanted >> REQUESTS & 1; }
