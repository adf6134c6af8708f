/*
 * utofu_emu.h - functions of the emulated device (libtofucom_emu) beyond the uTofu API.
 */
#ifndef UTOFU_EMU_H
#define UTOFU_EMU_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes the calling thread one rank of a job of `size` ranks that are threads of this
 * process, one per node along y. To be called once per rank, from its own thread, before
 * that thread's first uTofu call; all calls in a process name the same size.
 * Errors: INVALID_NUMBER (rank not below size, or another size), USED (the rank is taken, or the
 * thread already is a rank).
 */
int utofu_emu_enter_as_thread(int rank, int size);

/**
 * Copies text about this thread's last error to message, which has room for 1024 bytes. Libraries
 * of Fujitsu's have this function but do not declare it: programs do so themselves, as it stands
 * here, although the text is written.
 */
extern void utofu_get_last_error(const char *message);

#ifdef __cplusplus
}
#endif

#endif /* UTOFU_EMU_H */
