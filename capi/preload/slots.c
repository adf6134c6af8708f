/* Code of the slots. See slots.h. */
#include "slots.h"

#include "../mpi/signatures.h"

/* hopbine_first: saves the argument registers, calls hopbine_first_call(slot, caller), and jumps to the address it
 * returns. No call has floating-point arguments. */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type hopbine_first, @function\n"
        "hopbine_first:\n"
        ".cfi_startproc\n"
        "    pushq %rdi\n    pushq %rsi\n    pushq %rdx\n    pushq %rcx\n    pushq %r8\n    pushq %r9\n    pushq %rax\n"
        ".cfi_adjust_cfa_offset 56\n"
        "    movq %r11, %rdi\n"
        "    movq 56(%rsp), %rsi\n"
        "    call hopbine_first_call\n"
        "    movq %rax, %r11\n"
        "    popq %rax\n    popq %r9\n    popq %r8\n    popq %rcx\n    popq %rdx\n    popq %rsi\n    popq %rdi\n"
        ".cfi_adjust_cfa_offset -56\n"
        "    jmp *%r11\n"
        ".cfi_endproc\n"
        ".size hopbine_first, . - hopbine_first\n"
        ".popsection\n");
#define CODE(NAME)                                                                                 \
    "    endbr64\n"                                                                                \
    "    jmp *8+hopbine_slot_" NAME "(%rip)\n"                                                     \
    "0:  leaq hopbine_slot_" NAME "(%rip), %r11\n"                                                 \
    "    jmp hopbine_first\n"
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".type hopbine_first, %function\n"
        "hopbine_first:\n"
        ".cfi_startproc\n"
        "    stp x29, x30, [sp, #-80]!\n"
        ".cfi_def_cfa_offset 80\n"
        ".cfi_offset 29, -80\n"
        ".cfi_offset 30, -72\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n    stp x2, x3, [sp, #32]\n    stp x4, x5, [sp, #48]\n    stp x6, x7, [sp, #64]\n"
        "    mov x0, x16\n"
        "    mov x1, x30\n"
        "    bl hopbine_first_call\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n    ldp x2, x3, [sp, #32]\n    ldp x4, x5, [sp, #48]\n    ldp x6, x7, [sp, #64]\n"
        "    ldp x29, x30, [sp], #80\n"
        ".cfi_restore 29\n"
        ".cfi_restore 30\n"
        ".cfi_def_cfa_offset 0\n"
        "    br x16\n"
        ".cfi_endproc\n"
        ".size hopbine_first, . - hopbine_first\n"
        ".popsection\n");
/* (hint 34: BTI, a valid target of indirect branches, for processors that check them.) */
#define CODE(NAME)                                                                                 \
    "    hint #34\n"                                                                               \
    "    adrp x16, hopbine_slot_" NAME "\n"                                                        \
    "    add x16, x16, :lo12:hopbine_slot_" NAME "\n"                                              \
    "    ldr x17, [x16, #8]\n"                                                                     \
    "    br x17\n"                                                                                 \
    "0:  b hopbine_first\n"
#else
#error "libhopbine_preload.so needs x86-64 or aarch64; elsewhere HB_ calls are served (libhopbine_hb.so)"
#endif

/* On aarch64 x16 holds the slot's address on both paths. */
#define SLOT(NAME)                                                                                 \
    __asm__(".pushsection .text\n"                                                                 \
            ".p2align 4\n"                                                                         \
            ".globl " NAME "\n"                                                                    \
            ".type " NAME ", %function\n" NAME ":\n" CODE(NAME) ".size " NAME ", . - " NAME "\n"   \
            ".popsection\n"                                                                        \
            ".pushsection .rodata\n"                                                               \
            "1:  .asciz \"" NAME "\"\n"                                                            \
            ".popsection\n"                                                                        \
            ".pushsection hopbine_slots, \"aw\", %progbits\n"                                      \
            ".p2align 3\n"                                                                         \
            "hopbine_slot_" NAME ":\n"                                                             \
            "    .quad 1b\n"                                                                       \
            "    .quad 0b, 0b\n"                                                                   \
            ".popsection\n");
#define BOTH(NAME) SLOT("MPI_" NAME) SLOT("PMPI_" NAME)
#define EACH(NAME) BOTH(NAME) SLOT("HB_" NAME)

#define PLAIN(Name, name, COLLECTIVE, P, A, M) EACH(#Name) EACH("I" #name) EACH(#Name "_init")
#define LARGE(Name, name, COLLECTIVE, P, A, M) EACH(#Name "_c") EACH("I" #name "_c") EACH(#Name "_init_c")
#define EXTENSION(Name, name, COLLECTIVE, P, A, M) SLOT("MPIX_" #Name "_init") SLOT("PMPIX_" #Name "_init")
SIGNATURES(PLAIN, , )
SIGNATURES(LARGE, , )
SIGNATURES(EXTENSION, , )
BARRIER_SIGNATURE(PLAIN)
BARRIER_SIGNATURE(EXTENSION)

SLOT("HB_Init")
BOTH("Init")
BOTH("Init_thread")

BOTH("Comm_dup")
BOTH("Comm_dup_with_info")
BOTH("Comm_create")
BOTH("Comm_create_group")
BOTH("Comm_split")
BOTH("Comm_split_type")
BOTH("Cart_create")
BOTH("Cart_sub")
BOTH("Graph_create")
BOTH("Dist_graph_create")
BOTH("Dist_graph_create_adjacent")
BOTH("Intercomm_merge")
BOTH("Comm_free")
BOTH("Comm_disconnect")
SLOT("MPIX_Comm_revoke")
SLOT("PMPIX_Comm_revoke")

BOTH("Wait")
BOTH("Waitall")
BOTH("Waitany")
BOTH("Waitsome")
BOTH("Test")
BOTH("Testall")
BOTH("Testany")
BOTH("Testsome")
BOTH("Request_get_status")
BOTH("Request_get_status_all")
BOTH("Request_get_status_any")
BOTH("Request_get_status_some")
BOTH("Start")
BOTH("Startall")
BOTH("Request_free")
BOTH("Cancel")

BOTH("Iprobe")
BOTH("Improbe")
BOTH("Win_test")

/* Fortran procedures of libraries that call MPI by names that are not interposed. */
SLOT("mpi_barrier_f08_")
SLOT("mpi_ibarrier_f08_")
SLOT("mpi_barrier_init_f08_")
