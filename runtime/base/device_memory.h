/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is not the host's: a table of functions a separate module has. */
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
    /* Whether 'p' is memory of a device that these functions can copy. */
    bool (*is_device) (const void *p);
    int (*to_host) (void *host, const void *device, size_t n);
    int (*to_device) (void *device, const void *host, size_t n);
    /* Between memory of devices.  NULL: by the host. */
    int (*on_device) (void *to, const void *from, size_t n);
    /* Host memory that a device copies to at full speed; NULL if there is
     * none left. */
    void *(*alloc_pinned) (size_t n);
    void (*free_pinned) (void *p);
    /* Between these two, copies to the host are only begun: begin() waits for
     * what the program has given the devices to do, end() for the copies. */
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

/* The functions for 'p', NULL if it is the host's.  The CUDA module is loaded
 * (from the folder DL_BACKEND_DIR, else where it was installed) only in a
 * process that has the CUDA runtime or driver: others never pay for it.
 */
const struct memory_ops *memory_ops_of (const void *p);
