/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: shared by the files of the engine. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/base/device_memory.h"
#include "runtime/comm/api/comm.h"
#include "runtime/comm/engine/hash_map.h"
#include "runtime/comm/engine/tensor.h"
#include "runtime/slurmdl_comm.h"

/* ---- events in Chrome's trace format (timeline.c) ---- */

/* The array form, which readers accept without its end ("Trace Event Format",
 * docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).  A process is a rank, a
 * thread a tensor.  Times are in microseconds since the start, whose time of day is in the first
 * event. Only one thread at a time may write.
 */
struct timeline;

/* "%r" in 'path' becomes the rank; without it only rank 0 writes, and '*t' is NULL on the others.
 * 'cycles': record timeline_cycle().
 */
int timeline_open (struct timeline **t, const char *path, long rank, const char *host, bool cycles,
                   struct slurmdl_error *err);
int timeline_close (struct timeline *t); /* NULL is accepted */

/* Record an event that lasted from 'start' to 'end' (seconds) in the line 'row'. */
void timeline_span (struct timeline *t, const char *row, const char *event, double start,
                    double end, size_t bytes);

/* Record that this rank asks for new tensors. */
void timeline_cycle (struct timeline *t, double now);

/* Let others read what was written so far, at most twice a second. */
void timeline_flush (struct timeline *t);

/* ---- the engine ---- */

/* An engine has two threads.  The control thread (control.c) agrees with the other ranks on the
 * tensors to reduce.  The executor (executor.c) reduces them, batch by batch, in the order in which
 * control received them, which is the same on all ranks.  Both sleep while there is nothing to do.
 */

/* A name; kept as long as it has a task, a number, or a part in a batch. */
struct name {
    char *text;
    struct name *same;        /* next one with the same hash */
    struct engine_task *task; /* in flight, or NULL */
    unsigned parts;           /* in batches */
    uint32_t id;              /* its number, for control; 0: none */
    struct tensor *now;       /* for control: what was agreed, if id is not 0 */
};

enum task_state {
    TASK_FRESH, /* not announced to other ranks */
    TASK_BIT,   /* announced by its number */
    TASK_WORDS, /* announced by a description */
    TASK_BATCH, /* owned by the executor */
};

struct engine_task {
    int64_t ticket;
    struct name *name;
    struct tensor t;                 /* its name is name->text; it owns its group */
    const struct memory_ops *memory; /* of 'mark' */
    struct memory_mark *mark;        /* the work before it in the stream; or NULL */
    const void *in;
    void *out;
    void *result;   /* used instead of 'out' by slurmdl_take() */
    size_t nresult; /* elements */
    size_t *counts; /* of each rank, for the 'result' of an all-gather */
    bool take;
    bool awaited; /* a thread sleeps until it is done */
    enum task_state state;
    atomic_uint done;
    int code;
    struct slurmdl_error err;
    double submitted;
    struct engine_task *next;            /* in the list of fresh tasks */
    struct engine_task *before, *after;  /* in the list of unanswered tasks, by age */
    struct engine_task *earlier, *later; /* in the list of all tasks with a ticket */
};

struct engine_item {
    struct name *name;
    struct tensor *t;
    struct engine_task *task; /* NULL: this rank has joined */
    size_t done;              /* bytes of the result so far */
};

enum batch_state { BATCH_NEW, BATCH_PACKING, BATCH_PACKED };

struct engine_batch {
    struct engine_batch *next;
    enum batch_state state;
    int slot; /* of the fusion buffers */
    double agreed, packing, packed, started, ended;
    const void *in; /* of the collective */
    void *out;
    bool device; /* set by the executor: where it is reduced */
    size_t n;
    struct engine_item items[];
};

struct engine_buffer {
    void *data;
    size_t room;
};

/* Whether there is a back end for device memory; found out at its first batch. */
enum device_state { DEVICE_UNKNOWN, DEVICE_NONE, DEVICE_HERE };

struct engine {
    struct slurmdl_comm *owner, *channel;
    atomic_int device; /* enum device_state; set by the executor */
    long rank, size;
    double timeout;
    double stall_seconds, stall_abort;
    atomic_int users; /* threads in public functions */
    pthread_t control, executor;
    int wake;          /* eventfd(2) that wakes control */
    atomic_bool awake; /* control was woken */

    pthread_mutex_t lock; /* protects everything below */
    pthread_cond_t work;  /* for the executor */
    pthread_cond_t idle;  /* nothing is unfinished */
    struct map names, tickets;
    struct engine_task *fresh, **fresh_tail;
    size_t nfresh, fresh_bytes;
    double fresh_since;
    bool hurry;                          /* a thread waits for a fresh task */
    struct engine_task *oldest, *newest; /* unanswered */
    size_t unfinished, unanswered;
    size_t known;              /* names that have numbers */
    struct engine_task *all;   /* the last one with a ticket */
    struct engine_task *spare; /* memory to reuse */
    enum { JOIN_NO, JOIN_ASKED, JOIN_SENT } joining;
    atomic_uint joined; /* changes when slurmdl_join() may end */
    uint64_t joins;     /* how often all ranks had joined */
    long last_to_join;
    bool left;    /* another rank has closed the communicator */
    bool closing; /* no more tasks are accepted */
    bool leave;   /* control must tell rank 0 */
    bool over;    /* control has ended: no more batches follow */
    bool aborted; /* the channel */
    int code;     /* not 0: broken */
    struct slurmdl_error why;
    struct slurmdl_error trouble;
    bool news; /* 'trouble' is new */
    struct engine_batch *queue, **queue_tail;
    size_t batches; /* in the queue, including the running one */
    bool running;
    bool hungry; /* control on rank 0 holds back tensors that could run */
    struct engine_buffer slots[2][2];
    struct slurmdl_comm_stats stats;
    size_t fusion;
    double cycle; /* seconds */
    struct timeline *timeline;
};

/* named_tasks.c */

/* Wake control: it has something to do. */
void engine_wake (struct engine *e);

/* Break the engine; only the first cause is kept.  All tasks fail; those that the executor owns,
 * when it reaches them.
 */
void engine_fail (struct engine *e, int code, const char *text);
void engine_fail_locked (struct engine *e, int code, const char *text);

/* The cause of the failure, 0: it has not failed. */
int engine_code (struct engine *e);

/* With the lock held: complete a task, which must not be used any more. */
void engine_finish (struct engine *e, struct engine_task *t, int code, const char *text);

/* With the lock held: fail the tasks that are in no batch yet. */
void engine_fail_unanswered (struct engine *e, int code, const char *text);

/* With the lock held: wake threads in slurmdl_join(). */
void engine_wake_joined (struct engine *e);

/* With the lock held: make the executor leave its collective. */
void engine_abort_channel (struct engine *e);

/* With the lock held: record that a task was answered. */
void engine_answered (struct engine *e, struct engine_task *t);

/* With the lock held: find a name, or add it if 'make'. */
struct name *name_find (struct engine *e, const char *text, bool make);
void name_tidy (struct engine *e, struct name *n); /* free it if it is unused */

/* With the lock held. */
void task_free (struct engine *e, struct engine_task *t);

void name_free (struct name *n);

/* control.c, executor.c: the functions of the threads; 'arg' is the engine. */
void *control_main (void *arg);
void *executor_main (void *arg);

/* For control: pack the next batch while the executor is busy with the previous one.  Returns
 * whether there was one.
 */
bool executor_help (struct engine *e);

/* batch.c: the three steps of a batch.  batch_pack() and batch_unpack() use only the buffers of the
 * slot and of the tasks.  batch_may_pack() tells whether batch_pack() can run without waiting for a
 * stream.
 */
bool batch_may_pack (const struct engine *e, const struct engine_batch *b);
int batch_pack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);
int batch_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);
int batch_unpack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);

/* Make room for 'n' bytes.  Returns NULL if out of memory. */
void *engine_buffer_room (struct engine_buffer *b, size_t n);

/* For public functions: the engine of a communicator, which is kept until engine_leave(); NULL if
 * it has none.  With 'start', it is created; NULL is then a failure.
 */
struct engine *engine_enter (struct slurmdl_comm *c, bool start, struct slurmdl_error *err);
void engine_leave (struct engine *e);
