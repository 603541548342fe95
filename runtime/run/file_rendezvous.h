/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a run meet, and wait: what the files of a session share. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "runtime/base/process_id.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"

/* A disk that is full, or a server that is away, may be better soon: so long a
 * message is tried again (s), and an error is not believed.
 */
enum { RETRY_SECONDS = 3 };

struct welcome {
    uint64_t number;    /* of the session */
    char dir[PATH_MAX]; /* of rank 0's attempt */
};

struct session {
    char dir[PATH_MAX - 128]; /* its name, for messages */
    struct own_folder folder;
    long rank, size;
    struct welcome at;
    struct process_id self;
    struct process_id *members;
    double timeout;
    unsigned counts[SESSION_COUNTS];
};

struct waiting {
    double begin, end, last;
    long us;
};

/* For the session's time-out, and 'extra' seconds. */
struct waiting session_wait_begin (const struct session *t, double extra);
/* Sleep a little; false when the time is over. */
bool session_wait_more (struct waiting *w);

/* A client of a network file system may remember for long that a name was not
 * there; to read the folder anew makes it ask.
 */
void session_read_folder (const char *dir);

int session_put_file (const char *path, const void *data, size_t n);

/* The rank, process 'm', has ended; or did not come. */
int session_gone (long rank, const struct process_id *m, struct slurmdl_error *err);
int session_timed_out (const struct session *t, long rank, const struct waiting *w,
                       struct slurmdl_error *err);

/* Rank 0, while it waits: a rank may not have heard its welcome. */
void session_welcome_again (struct session *t);
