/* What Fortran cannot tell about a buffer of any type: gfortran's is_contiguous() is true also where the elements are
 * apart by no multiple of their length, as in a component of an array of a derived type. */
#include <ISO_Fortran_binding.h>

/* Whether the elements of an array do not follow each other. */
int hopbine_has_gaps(const CFI_cdesc_t *array);
int hopbine_has_gaps(const CFI_cdesc_t *array) {
    CFI_index_t next = (CFI_index_t)array->elem_len;
    int has_gaps = 0;
    for (int at = 0; at < array->rank; at++) {
        const CFI_dim_t *const dim = &array->dim[at];
        /* An empty array, and one of assumed size (-1), which is contiguous. */
        if (dim->extent <= 0) return 0;
        has_gaps |= dim->extent > 1 && dim->sm != next;
        next *= dim->extent;
    }
    return has_gaps;
}
