/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices: a table of functions that a separate module has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The work in a stream up to a moment.  With CUDA: a cudaEvent_t, for which other
 * streams can wait.
 */
struct memory_mark {
    void *event;
};

enum mark_state { MARK_FAILED = -1, MARK_PENDING, MARK_PASSED };

struct memory_ops {
    const char *name;
    /* Whether 'p' is device memory that these functions can copy. */
    bool (*is_device) (const void *p);
    int (*to_host) (void *host, const void *device, size_t n);
    int (*to_device) (void *device, const void *host, size_t n);
    /* Between device memory.  NULL: copy through the host. */
    int (*on_device) (void *to, const void *from, size_t n);
    /* Host memory that a device copies at full speed; NULL if none is left. */
    void *(*alloc_pinned) (size_t n);
    void (*free_pinned) (void *p);
    /* Between these two calls, copies to the host are only started: begin()
     * waits for the work that the program has queued on the devices, end() for
     * the copies.
     */
    int (*begin) (void);
    int (*to_host_later) (void *host, const void *device, size_t n);
    int (*end) (void);
    /* Mark the work that is in a stream of p's device now; 'stream' is a
     * cudaStream_t, NULL the default one.  Returns NULL with errno on failure;
     * unmark() frees it.  state(): whether that work is done.  All three are
     * NULL where there are no streams. */
    struct memory_mark *(*mark) (const void *p, void *stream);
    enum mark_state (*state) (const struct memory_mark *m);
    void (*unmark) (struct memory_mark *m);
};

/* The functions for 'p'; NULL for host memory.  The CUDA module is loaded (from
 * the folder DL_BACKEND_DIR, else from where it was installed) only in a
 * process that has the CUDA runtime or driver: other processes never pay for
 * it.
 */
const struct memory_ops *memory_ops_of (const void *p);
