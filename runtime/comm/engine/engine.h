/* SPDX-License-Identifier: Apache-2.0 */
/* Named tensors: what the files of the engine share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/device_memory.h"
#include "runtime/comm/api/comm.h"
#include "runtime/comm/engine/hash_map.h"
#include "runtime/comm/engine/tensor.h"
#include "runtime/comm/engine/timeline.h"

/* An engine has two threads.  That of control.c agrees with the other ranks
 * about which tensors are to be reduced; that of executor.c reduces them, one
 * batch after the other, in the order in which control was told, which is the
 * same on all ranks.  Both sleep where there is nothing to do.
 */

/* What is known of a name; kept as long as it has a task, a number, or a part
 * in a batch.
 */
struct name {
    char *text;
    struct name *same;        /* of the same hash */
    struct engine_task *task; /* in flight, or NULL */
    unsigned parts;           /* in batches */
    uint32_t id;              /* control's: 0: none */
    struct tensor *now;       /* control's: what is agreed, where id is not 0 */
};

enum task_state {
    TASK_FRESH, /* other ranks do not know */
    TASK_BIT,   /* asked for by its number */
    TASK_WORDS, /* described */
    TASK_BATCH, /* the executor's */
};

struct engine_task {
    int64_t ticket;
    struct name *name;
    struct tensor t;                 /* name is name->text; the group is the task's */
    const struct memory_ops *memory; /* of 'mark' */
    struct memory_mark *mark;        /* what comes before it in the stream; or NULL */
    const void *in;
    void *out;
    void *result;   /* instead of 'out', for slurmdl_take() */
    size_t nresult; /* elements */
    size_t *counts; /* of each rank, with 'result' of an all-gather */
    bool take;
    bool awaited; /* somebody sleeps until it is done */
    enum task_state state;
    atomic_uint done;
    int code;
    struct slurmdl_error err;
    double submitted;
    struct engine_task *next;            /* of those that are fresh */
    struct engine_task *before, *after;  /* of those without an answer, by age */
    struct engine_task *earlier, *later; /* of all that have a ticket */
};

struct engine_item {
    struct name *name;
    struct tensor *t;
    struct engine_task *task; /* NULL: this rank has joined */
    size_t done;              /* bytes of the result, so far */
};

enum batch_state { BATCH_NEW, BATCH_PACKING, BATCH_PACKED };

struct engine_batch {
    struct engine_batch *next;
    enum batch_state state;
    int slot; /* of the fusion buffers */
    double agreed, packing, packed, started, ended;
    const void *in; /* of the collective */
    void *out;
    bool device; /* the executor finds out where it is reduced */
    size_t n;
    struct engine_item items[];
};

struct engine_buffer {
    void *data;
    size_t room;
};

/* A back end for device memory, looked for at the first batch of it. */
enum device_state { DEVICE_UNKNOWN, DEVICE_NONE, DEVICE_HERE };

struct engine {
    struct slurmdl_comm *owner, *channel;
    atomic_int device; /* enum device_state; the executor's to set */
    long rank, size;
    double timeout;
    double stall_seconds, stall_abort;
    atomic_int users; /* callers inside */
    pthread_t control, executor;
    int wake;          /* eventfd(2): control has something to do */
    atomic_bool awake; /* it was told so */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;  /* for the executor */
    pthread_cond_t idle;  /* nothing is unfinished */
    struct map names, tickets;
    struct engine_task *fresh, **fresh_tail;
    size_t nfresh, fresh_bytes;
    double fresh_since;
    bool hurry;                          /* somebody waits for what is fresh */
    struct engine_task *oldest, *newest; /* without an answer */
    size_t unfinished, unanswered;
    size_t known;              /* names that have numbers */
    struct engine_task *all;   /* the last one that got a ticket */
    struct engine_task *spare; /* memory for the next ones */
    enum { JOIN_NO, JOIN_ASKED, JOIN_SENT } joining;
    atomic_uint joined; /* changes when slurmdl_join() may end */
    uint64_t joins;     /* times that all had joined */
    long last_to_join;
    bool left;    /* another rank has closed the communicator */
    bool closing; /* no more is taken */
    bool leave;   /* control is to tell rank 0 */
    bool over;    /* control has ended: no more batches come */
    bool aborted; /* the channel */
    int code;     /* not 0: broken */
    struct slurmdl_error why;
    struct slurmdl_error trouble;
    bool news; /* of 'trouble' */
    struct engine_batch *queue, **queue_tail;
    size_t batches; /* in the queue, with the one that runs */
    bool running;
    bool hungry; /* control, of rank 0, holds back what could run */
    struct engine_buffer slots[2][2];
    struct slurmdl_comm_stats stats;
    size_t fusion;
    double cycle; /* seconds */
    struct timeline *timeline;
};

/* named_tasks.c */

/* Control has something new to do. */
void engine_wake (struct engine *e);

/* The first cause counts.  All tasks but those that the executor has fail; it
 * fails these when it gets to them. */
void engine_fail (struct engine *e, int code, const char *text);
void engine_fail_locked (struct engine *e, int code, const char *text);

/* The cause, 0: it has not failed. */
int engine_code (struct engine *e);

/* With the lock held: the task is done, and may not be touched any more. */
void engine_finish (struct engine *e, struct engine_task *t, int code, const char *text);

/* With the lock held: those whose batch is not known yet fail. */
void engine_fail_unanswered (struct engine *e, int code, const char *text);

/* Whoever waits in slurmdl_join(), with the lock held. */
void engine_wake_joined (struct engine *e);

/* With the lock held: the executor gets out of its collective. */
void engine_abort_channel (struct engine *e);

/* With the lock held: the task has an answer. */
void engine_answered (struct engine *e, struct engine_task *t);

/* Names, with the lock held. */
struct name *name_find (struct engine *e, const char *text, bool make);
void name_tidy (struct engine *e, struct name *n); /* it may be unused now */

/* With the lock held. */
void task_free (struct engine *e, struct engine_task *t);

void name_free (struct name *n);

/* control.c, executor.c: the threads; both take the engine. */
void *control_main (void *arg);
void *executor_main (void *arg);

/* Pack the next batch, while the executor is busy with the one before it:
 * whether there was one.  By control. */
bool executor_help (struct engine *e);

/* batch.c: the three steps of a batch; pack() and unpack() touch only the
 * slot's buffers and the tasks'.  may_pack(): pack() would not wait for what a
 * stream has still to do. */
bool batch_may_pack (const struct engine *e, const struct engine_batch *b);
int batch_pack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);
int batch_run (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);
int batch_unpack (struct engine *e, struct engine_batch *b, struct slurmdl_error *err);

/* At least 'n' bytes; NULL: no memory. */
void *engine_buffer_room (struct engine_buffer *b, size_t n);

/* For the public functions: the engine of a communicator, which stays until
 * engine_leave(); NULL if it has none.  'start' creates it; NULL is then a
 * failure.
 */
struct engine *engine_enter (struct slurmdl_comm *c, bool start, struct slurmdl_error *err);
void engine_leave (struct engine *e);
