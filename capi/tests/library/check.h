/* Checks that a call succeeds; else prints the error and ends the program. */
#include <hopbine.h>

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != HOPBINE_SUCCESS) {                                                            \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                      \
                    hopbine_error_name(code_), hopbine_last_error());                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
