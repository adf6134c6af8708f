/* Maps MPI's types and operators to hopbine's. */
#include "common.h"

#include "interposed.h"

#include <stddef.h>
#include <stdint.h>

/* hopbine's integer type of `bytes` bytes, or -1. */
static int integer(size_t bytes, int is_signed) {
    int number = bytes == 1 ? HOPBINE_INT8 : bytes == 2 ? HOPBINE_INT16 : bytes == 4 ? HOPBINE_INT32 : -1;
    if (bytes == 8) number = HOPBINE_INT64;
    return number < 0 || is_signed ? number : number + (HOPBINE_UINT8 - HOPBINE_INT8);
}

static int real(int bytes) {
    return bytes == 4 ? HOPBINE_FLOAT : bytes == 8 ? HOPBINE_DOUBLE : -1;
}

static int complex_of(int bytes) {
    return bytes == 8 ? HOPBINE_FLOAT_COMPLEX : bytes == 16 ? HOPBINE_DOUBLE_COMPLEX : -1;
}

/* Predefined types with operators. The sizes of Fortran's types depend on compiler options, so they are queried. */
enum kind { SIGNED, UNSIGNED, REAL, COMPLEX };
struct predefined {
    MPI_Datatype type;
    enum kind kind;
    int element;
};
static struct predefined predefined[64];
static int n_predefined;

static void add(MPI_Datatype type, enum kind kind) {
    int bytes = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &bytes) != MPI_SUCCESS) return;
    int element = kind == REAL ? real(bytes)
                  : kind == COMPLEX ? complex_of(bytes)
                                    : integer((size_t)bytes, kind == SIGNED);
    if (element >= 0) predefined[n_predefined++] = (struct predefined){type, kind, element};
}

/* MPI 4's functions, which support types of large counts; null if the MPI lacks either. */
static int (*get_envelope)(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
static int (*get_contents)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], MPI_Count[],
                           MPI_Datatype[]);

void list_types(void) {
    get_envelope = (__typeof__(get_envelope))find_mpi_function("PMPI_Type_get_envelope_c");
    get_contents = (__typeof__(get_contents))find_mpi_function("PMPI_Type_get_contents_c");
    if (!get_contents) get_envelope = NULL;
    /* The most used types first. */
    add(MPI_DOUBLE, REAL);
    add(MPI_INT, SIGNED);
    add(MPI_FLOAT, REAL);
    add(MPI_DOUBLE_PRECISION, REAL);
    add(MPI_INTEGER, SIGNED);
    add(MPI_REAL, REAL);
    add(MPI_REAL8, REAL);
    add(MPI_REAL4, REAL);
    add(MPI_LONG, SIGNED);
    add(MPI_UNSIGNED, UNSIGNED);
    add(MPI_UNSIGNED_LONG, UNSIGNED);
    add(MPI_LONG_LONG, SIGNED);
    add(MPI_UNSIGNED_LONG_LONG, UNSIGNED);
    add(MPI_INT64_T, SIGNED);
    add(MPI_UINT64_T, UNSIGNED);
    add(MPI_INT32_T, SIGNED);
    add(MPI_UINT32_T, UNSIGNED);
    add(MPI_INT16_T, SIGNED);
    add(MPI_UINT16_T, UNSIGNED);
    add(MPI_INT8_T, SIGNED);
    add(MPI_UINT8_T, UNSIGNED);
    add(MPI_SHORT, SIGNED);
    add(MPI_UNSIGNED_SHORT, UNSIGNED);
    add(MPI_SIGNED_CHAR, SIGNED);
    add(MPI_UNSIGNED_CHAR, UNSIGNED);
    add(MPI_INTEGER1, SIGNED);
    add(MPI_INTEGER2, SIGNED);
    add(MPI_INTEGER4, SIGNED);
    add(MPI_INTEGER8, SIGNED);
    add(MPI_AINT, SIGNED);
    add(MPI_OFFSET, SIGNED);
    add(MPI_COUNT, SIGNED);
    add(MPI_COMPLEX, COMPLEX);
    add(MPI_DOUBLE_COMPLEX, COMPLEX);
    add(MPI_C_FLOAT_COMPLEX, COMPLEX);
    add(MPI_C_DOUBLE_COMPLEX, COMPLEX);
    add(MPI_COMPLEX8, COMPLEX);
    add(MPI_COMPLEX16, COMPLEX);
}

/* hopbine's element type of a predefined type, or -1. */
static int element_of(MPI_Datatype type) {
    for (int at = 0; at < n_predefined; at++)
        if (predefined[at].type == type) return predefined[at].element;
    return -1;
}

/* How a type was made: the results of MPI_Type_get_envelope. */
struct origin {
    int combiner;
    MPI_Count n_integers, n_addresses, n_counts, n_types;
};

static struct origin origin_of(MPI_Datatype datatype) {
    struct origin of = {0};
    if (get_envelope) {
        get_envelope(datatype, &of.n_integers, &of.n_addresses, &of.n_counts, &of.n_types, &of.combiner);
        return of;
    }
    int n_integers, n_addresses, n_types;
    PMPI_Type_get_envelope(datatype, &n_integers, &n_addresses, &n_types, &of.combiner);
    of.n_integers = n_integers, of.n_addresses = n_addresses, of.n_types = n_types;
    return of;
}

static int is_predefined_origin(const struct origin *of) {
    /* MPI_Type_create_f90_real() and its relatives return predefined types without names. */
    return of->combiner == MPI_COMBINER_NAMED || of->combiner == MPI_COMBINER_F90_REAL ||
           of->combiner == MPI_COMBINER_F90_COMPLEX || of->combiner == MPI_COMBINER_F90_INTEGER;
}

int is_predefined(MPI_Datatype datatype) {
    const struct origin of = origin_of(datatype);
    return is_predefined_origin(&of);
}

/* Whether the data of a type without holes lie in memory in the order in which they are sent: the type is predefined,
 * or a contiguous sequence or duplicate of such types. */
static int is_contiguous(MPI_Datatype datatype) {
    const struct origin made = origin_of(datatype);
    if (is_predefined_origin(&made)) return 1;
    int integer, error;
    MPI_Aint address;
    MPI_Datatype of;
    if ((made.combiner != MPI_COMBINER_DUP && made.combiner != MPI_COMBINER_CONTIGUOUS) || made.n_types != 1) return 0;
    if (made.n_integers + made.n_counts > 1 || made.n_addresses > 0) return 0;
    MPI_Count count;
    if (get_envelope)
        error = get_contents(datatype, made.n_integers, 0, made.n_counts, 1, &integer, &address, &count, &of);
    else error = PMPI_Type_get_contents(datatype, (int)made.n_integers, 0, 1, &integer, &address, &of);
    if (error != MPI_SUCCESS) return 0;
    const int contiguous = is_contiguous(of);
    if (!is_predefined(of)) PMPI_Type_free(&of);
    return contiguous;
}

int query_type(MPI_Datatype datatype, struct type *type) {
    /* Predefined types are never freed, so their properties can be cached. */
    static PER_THREAD MPI_Datatype last;
    static PER_THREAD struct type of_last;
    static PER_THREAD int has_last;
    if (has_last && last == datatype) {
        *type = of_last;
        return 1;
    }
    if (datatype == MPI_DATATYPE_NULL) return 0;
    /* A send of this type to MPI_PROC_NULL tests whether the type is valid and committed: on `self_comm` it returns an
     * error, while other functions would abort the program. */
    const int is_known = element_of(datatype) >= 0;
    const char none = 0;
    if (!is_known && PMPI_Send(&none, 1, datatype, MPI_PROC_NULL, 0, self_comm) != MPI_SUCCESS) return 0;
    const int is_fixed = is_known || is_predefined(datatype);
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count bytes;
    if (PMPI_Type_size_x(datatype, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED) return 0;
    PMPI_Type_get_extent(datatype, &lower, &extent);
    PMPI_Type_get_true_extent(datatype, &true_lower, &true_extent);
    const int has_holes = lower != 0 || true_lower != 0 || extent != bytes || true_extent != bytes;
    type->bytes = bytes;
    type->contiguous = !has_holes && is_contiguous(datatype);
    if (is_fixed) {
        last = datatype;
        of_last = *type;
        has_last = 1;
    }
    return 1;
}

static int operator_of(MPI_Op op) {
    return op == MPI_SUM    ? HOPBINE_SUM
           : op == MPI_MAX  ? HOPBINE_MAX
           : op == MPI_MIN  ? HOPBINE_MIN
           : op == MPI_PROD ? HOPBINE_PROD
           : op == MPI_LAND ? HOPBINE_LAND
           : op == MPI_LOR  ? HOPBINE_LOR
           : op == MPI_LXOR ? HOPBINE_LXOR
           : op == MPI_BAND ? HOPBINE_BAND
           : op == MPI_BOR  ? HOPBINE_BOR
           : op == MPI_BXOR ? HOPBINE_BXOR
                            : -1;
}

/* Whether MPI defines an operator for elements of a type, as hopbine applies it. */
static int is_defined(int op, int element) {
    if (element < HOPBINE_FLOAT16) return 1;
    if (op == HOPBINE_SUM || op == HOPBINE_PROD) return 1;
    return element <= HOPBINE_DOUBLE && (op == HOPBINE_MIN || op == HOPBINE_MAX);
}

/* The types of MPI_MINLOC and MPI_MAXLOC. */
static int is_pair(MPI_Datatype type) {
    return type == MPI_DOUBLE_INT || type == MPI_FLOAT_INT || type == MPI_2INT || type == MPI_LONG_INT ||
           type == MPI_SHORT_INT || type == MPI_LONG_DOUBLE_INT || type == MPI_2INTEGER || type == MPI_2REAL ||
           type == MPI_2DOUBLE_PRECISION;
}

/* Whether MPI's logical operators on Fortran's LOGICAL are hopbine's on an int: any value but 0 is true, and a true
 * result is 1. The representation of .true. depends on the compiler, so MPI_Reduce_local is tried, at the program's
 * first such call. */
static int is_int_like(MPI_Datatype logical) {
    static int known = -1;
    int like = __atomic_load_n(&known, __ATOMIC_RELAXED), bytes = 0;
    if (like >= 0) return like;
    like = PMPI_Type_size(logical, &bytes) == MPI_SUCCESS && bytes == sizeof(int32_t);
    const MPI_Op ops[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
    const int32_t values[] = {0, 1, 2, -1};
    for (int at = 0; like && at < 3 * 4 * 4; at++) {
        const int32_t a = values[at / 4 % 4], b = values[at % 4];
        const int32_t right[] = {a && b, a || b, !a != !b};
        int32_t got = b;
        like = PMPI_Reduce_local(&a, &got, 1, logical, ops[at / 16]) == MPI_SUCCESS && got == right[at / 16];
    }
    __atomic_store_n(&known, like, __ATOMIC_RELAXED);
    return like;
}

/* hopbine's element type of a pair without padding, or -1. Padding belongs to the program. */
static int pair_of(MPI_Datatype type) {
    int bytes = 0;
    const int is_real = type == MPI_2REAL || type == MPI_2DOUBLE_PRECISION;
    if (type == MPI_DATATYPE_NULL) return -1;
    if (type == MPI_FLOAT_INT) return HOPBINE_PAIR_FLOAT_INT32;
    if ((!is_real && type != MPI_2INT && type != MPI_2INTEGER) || PMPI_Type_size(type, &bytes) != MPI_SUCCESS) return -1;
    if (bytes == 8) return is_real ? HOPBINE_PAIR_FLOAT : HOPBINE_PAIR_INT32;
    if (bytes == 16) return is_real ? HOPBINE_PAIR_DOUBLE : HOPBINE_PAIR_INT64;
    return -1;
}

enum kernel kernel_of(MPI_Op op, MPI_Datatype datatype, int *number, int *element) {
    *number = operator_of(op);
    if (*number >= 0) {
        *element = element_of(datatype);
        if (*element >= 0) return is_defined(*number, *element) ? BY_HOPBINE : BY_MPI;
        const int is_logical = *number >= HOPBINE_LAND && *number <= HOPBINE_LXOR;
        const int is_bitwise = *number >= HOPBINE_BAND;
        *element = HOPBINE_UINT8;
        if (datatype == MPI_BYTE) return is_bitwise ? BY_HOPBINE : BY_MPI;
        if (datatype == MPI_C_BOOL) return is_logical ? BY_HOPBINE : BY_MPI;
        if (datatype == MPI_LOGICAL && is_logical) {
            *element = HOPBINE_INT32;
            return is_int_like(datatype) ? BY_HOPBINE : BY_REDUCE_LOCAL;
        }
        if (datatype == MPI_LOGICAL) return BY_MPI;
        return datatype == MPI_LONG_DOUBLE && !is_logical && !is_bitwise ? BY_REDUCE_LOCAL : BY_MPI;
    }
    if (op == MPI_MINLOC || op == MPI_MAXLOC) {
        *number = op == MPI_MINLOC ? HOPBINE_MINLOC : HOPBINE_MAXLOC;
        *element = pair_of(datatype);
        return *element >= 0 ? BY_HOPBINE : is_pair(datatype) ? BY_REDUCE_LOCAL : BY_MPI;
    }
    return op == MPI_REPLACE || op == MPI_NO_OP || op == MPI_OP_NULL ? BY_MPI : BY_REDUCE_LOCAL;
}
