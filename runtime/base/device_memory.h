/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is not the host's: a table of functions a separate module has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a stream has been given to do up to a moment.  Of CUDA: a cudaEvent_t,
 * for which other streams can wait.
 */
struct memory_mark {
    void *event;
};

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
    /* Mark what the program has given a stream of p's device to do until now;
     * 'stream' is a cudaStream_t, NULL the default one.  NULL with errno on
     * failure; unmark() gives it back.  passed(): 1 if all of it is done, 0 if
     * not, -1 if it has failed.  They are NULL where there are no streams. */
    struct memory_mark *(*mark) (const void *p, void *stream);
    int (*passed) (const struct memory_mark *m);
    void (*unmark) (struct memory_mark *m);
};

/* The functions for 'p', NULL if it is the host's.  The CUDA module is loaded
 * (from the folder DL_BACKEND_DIR, else where it was installed) only in a
 * process that has the CUDA runtime or driver: others never pay for it.
 */
const struct memory_ops *memory_ops_of (const void *p);
