/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of TAP with figures, and CUDA's runtime as the module has it. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Print a case; returns the condition. */
__attribute__ ((format (printf, 2, 3))) bool tap_ok (bool condition, const char *format, ...);
void tap_skip (const char *name, const char *why);
/* What contrib/gpu-bundle reports. */
void tap_figure (const char *name, double value, const char *unit);
/* Print the plan; returns the exit status. */
int tap_end (void);

/* Its names are the same everywhere. */
enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, NON_BLOCKING = 1 };

extern struct cuda_runtime {
    int (*malloc) (void **, size_t);
    int (*free) (void *);
    int (*copy) (void *, const void *, size_t, int);
    int (*copy_later) (void *, const void *, size_t, int, void *);
    int (*stream) (void **, unsigned);
    int (*query) (void *);
    int (*finish) (void *);
    int (*call_host) (void *, void (*) (void *), void *);
} cuda;

/* After the module is loaded: find the runtime that it brought. */
bool cuda_find (void);

/* Bail out if this is an error of CUDA's. */
void cuda_need (int error, const char *what);

/* Memory of the device with these bytes, or any (NULL); by cuda.free(). */
void *cuda_copy_of (const void *bytes, size_t n);

/* Does it have these bytes?  If not, says where it differs. */
bool cuda_has (const char *what, const void *device, const void *want, size_t n);
