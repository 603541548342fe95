/* SPDX-License-Identifier: Apache-2.0 */
/* A group of parameter servers and workers for tests, as processes. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/slurmdl_ps.h"

enum { GROUP = 8 };

/* Shared by the processes of a test. */
struct board {
    float values[1 << 20]; /* that worker 0 has pulled */
    int64_t clocks[GROUP]; /* iterations that a worker has ended */
    int64_t most_ahead;    /* of worker 2, mode bounded */
    volatile int stage[GROUP];
};
extern struct board *board;

/* Of all processes, but role and index: 2 servers, 3 workers, mode sync; dir
 * is that of tests/folder.h. */
extern struct slurmdl_ps_options options;

int make_group (void **state);
int remove_group (void **state);
const char *group_file (const char *name); /* in that folder */

#define IN_GROUP(f)                                                            \
    cmocka_unit_test_setup_teardown (f, make_group, remove_group)

typedef void (*worker_f) (struct slurmdl_ps *ps, void *arg);

struct slurmdl_ps *open_as (const char *role, long index);
/* Exit status 2: slurmdl_ps_serve() has failed. */
pid_t start_server (const char *role, long index);
pid_t start_worker (long index, worker_f f, void *arg);
/* The exit status, or minus the signal. */
int end_of (pid_t pid);
/* Kill it, as a signal from outside. */
void lose (pid_t pid);
/* Wait until a worker has ended so many iterations. */
void await_clock (long who, int64_t clock);

/* All servers and workers that 'options' asks for; a pid of 0 is nobody. */
struct group {
    pid_t servers[GROUP], workers[GROUP];
};
struct group start_group (worker_f f, void *arg);
/* All of them come to a good end. */
void end_group (const struct group *g);
void run_group (worker_f f, void *arg);

void nap (double seconds);
void reach (long who, int stage);
void await (long who, int stage);

/* A gradient that rounds when it is added. */
float gradient (long worker, int64_t t, uint64_t i);

enum { BIG = 200001 };

struct train {
    enum slurmdl_ps_rule rule;
    uint64_t n;
    int64_t until;
    double nap;
    bool together; /* the others do not leave before worker 1 */
};
struct slurmdl_ps_table table_of (const struct train *t);

/* worker_f, 'arg' is a struct train; worker 0 puts what it pulls at last on
 * the board, and check_values() compares it with what one process computes.
 */
void train (struct slurmdl_ps *ps, void *arg);
void check_values (const struct train *t);

/* worker_f: integers, of which the order of sums does not matter; each worker
 * looks at the end whether all was summed. */
void train_counts (struct slurmdl_ps *ps, void *arg);
