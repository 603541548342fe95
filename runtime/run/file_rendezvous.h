/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of the ranks of a run: what the files of a session share. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "runtime/base/process_id.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"

/* Seconds for which writing a message is repeated after an error: a full disk or an absent server
 * may recover.
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

/* Begin a wait for the timeout of the session plus 'extra' seconds. */
struct waiting session_wait_begin (const struct session *t, double extra);
/* Sleep briefly; returns false when the time is over. */
bool session_wait_more (struct waiting *w);

/* Read a folder: a client of a network file system may cache for long that a name does not exist,
 * and this makes it ask the server.
 */
void session_read_folder (const char *dir);

int session_put_file (const char *path, const void *data, size_t n);

/* Fail because a rank, process 'm', has ended; or because it did not come. */
int session_gone (long rank, const struct process_id *m, struct slurmdl_error *err);
int session_timed_out (const struct session *t, long rank, const struct waiting *w,
                       struct slurmdl_error *err);

/* For rank 0 while it waits: repeat the welcome, which a rank may have missed. */
void session_welcome_again (struct session *t);
