/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error, and exit statuses. */
#pragma once

#include "runtime/base/error.h"

/* Exit statuses; dl(1) explains them. */
enum dl_exit {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the experiment failed; there is something to change */
    EXIT_USAGE = 2,  /* bad option, argument or experiment file */
    EXIT_NOT_FOUND = 3,
    EXIT_STOPPED = 4,
    EXIT_DAMAGED = 5,
    EXIT_SLURM = 6,
    EXIT_IO = 7,
    EXIT_NO_WORKERS = 8,
    EXIT_BUSY = 9,      /* workers are at work */
    EXIT_TIMEOUT = 10,  /* dl wait --timeout */
    EXIT_FAULT = 11,    /* paused: all attempts failed in the same way */
    EXIT_PARTIAL = 12,  /* completed, but more than max_failed trials failed */
    EXIT_PARKED = 75,   /* EX_TEMPFAIL: a worker with work left */
    EXIT_EXCLUDED = 76, /* the same, and it must not run on this machine */
    EXIT_SMALL = 77,    /* the same, and it needs a job of more memory */
    EXIT_BAD_NODE = 79, /* dl check: this node is bad */
};

/* The one way to speak: "dl: TEXT" on stderr. */
void complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* The exit status for an errno. */
int error_status (int e);

/* Print an error that a function gave; returns the exit status for errno. */
int fail (const struct slurmdl_error *err);
