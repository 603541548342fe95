/* SPDX-License-Identifier: Apache-2.0 */
/* Print TAP and figures, and use the CUDA runtime that the module loaded. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Print the result of a case.  Returns the condition. */
__attribute__ ((format (printf, 2, 3))) bool tap_ok (bool condition, const char *format, ...);
void tap_skip (const char *name, const char *why);
/* Print a figure for the report of contrib/gpu-bundle. */
void tap_figure (const char *name, double value, const char *unit);
/* Print the plan.  Returns the exit status. */
int tap_end (void);

/* Constants of CUDA's API. */
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

/* Find the CUDA runtime that the module loaded.  Call this after loading the module. */
bool cuda_find (void);

/* Bail out if 'error' is a CUDA error. */
void cuda_need (int error, const char *what);

/* Allocate device memory, and copy the bytes to it if there are any.  Free it with cuda.free(). */
void *cuda_copy_of (const void *bytes, size_t n);

/* Whether device memory has these bytes.  Prints the first difference. */
bool cuda_has (const char *what, const void *device, const void *want, size_t n);
