/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error, and exit statuses. */
#pragma once

#include "runtime/base/error.h"

/* Exit statuses; dl(1) explains them. */
enum dl_exit {
    EXIT_OK = 0,
    EXIT_FAILED = 1, /* the experiment failed; the user has to change something */
    EXIT_USAGE = 2,  /* bad option, argument or experiment file */
    EXIT_NOT_FOUND = 3,
    EXIT_STOPPED = 4,
    EXIT_DAMAGED = 5,
    EXIT_SLURM = 6,
    EXIT_IO = 7,
    EXIT_NO_WORKERS = 8,
    EXIT_BUSY = 9,      /* workers are running */
    EXIT_TIMEOUT = 10,  /* dl wait --timeout */
    EXIT_FAULT = 11,    /* paused: all attempts failed in the same way */
    EXIT_PARTIAL = 12,  /* completed, but more than max_failed trials failed */
    EXIT_PARKED = 75,   /* EX_TEMPFAIL: a worker stopped before all work was done */
    EXIT_EXCLUDED = 76, /* the same, and the work must not continue on this machine */
    EXIT_SMALL = 77,    /* the same, and the work needs a job with more memory */
    EXIT_BAD_NODE = 79, /* dl check: this node is bad */
};

/* Print "dl: TEXT" to standard error.  All messages of dl go through here. */
void complain (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));

/* Exit status that corresponds to an errno. */
int error_status (int e);

/* Print an error that a function returned.  Returns the exit status for errno. */
int fail (const struct slurmdl_error *err);
