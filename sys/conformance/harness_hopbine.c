/*
 * harness_hopbine.c - ranks as processes. The emulated device reads the same HOPBINE_* variables and initialises
 * itself at the first call that needs it.
 */
#include "harness.h"
#include "utofu_emu.h"

static int env_number(const char *name)
{
    const char *s = getenv(name);
    if (s == NULL) {
        fprintf(stderr, "%s is not set\n", name);
        _exit(2);
    }
    return atoi(s);
}

void hx_platform_init(int *rank, int *size)
{
    uint8_t coords[6];
    *rank = env_number("HOPBINE_RANK");
    *size = env_number("HOPBINE_SIZE");
    int rc = utofu_query_my_coords(coords);
    if (rc != 0) {
        char why[1024] = "";
        utofu_get_last_error(why);
        fprintf(stderr, "rank %d cannot join the job: rc=%d %s\n", *rank, rc, why);
        _exit(2);
    }
}

void hx_platform_fini(void)
{
}
