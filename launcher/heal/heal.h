/* SPDX-License-Identifier: Apache-2.0 */
/* Healing: judge what is wrong with the ranks of a step, and watch them from the worker. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/sweep/conditions.h"
#include "launcher/sys/network_readings.h"
#include "runtime/base/error.h"

struct slow_ranks;
struct rank_watch;
struct heal_rank;

/* ---- Decide what is wrong with the ranks of a step, from their reports ---- */

/* How a rank spent its time: sums of the shares in its heartbeats, of which it sends one a second.
 */
struct heal_work {
    double beats;
    double active;    /* it ran, or was ready to run: it waited for no other rank */
    double ready;     /* part of 'active': it was ready, but had no core */
    double throttled; /* a limit of its cgroup kept it from running */
    double blocked;   /* it waited for storage (state D) */
    double stopped;   /* SIGSTOP had stopped it */
};

/* The GPU of a rank, in a heartbeat.  Of several, the one that is slowed down most. */
struct heal_gpu {
    int64_t known;      /* 0: none of the rank's processes uses a GPU, or none can be read */
    int64_t index;      /* as the driver numbers it */
    int64_t slowed;     /* enum nvml_slowed (launcher/sys/nvml.h) */
    double clock;       /* of its SMs, MHz */
    double clock_most;  /* the highest it can have, MHz; 0: not known, as in all that follows */
    double power_limit; /* W */
    int64_t lanes, lanes_most; /* of its PCIe link; that it and its slot could have */
    int64_t generation, generation_most;
    double others;         /* share of the time in which another program kept its SMs busy ... */
    int64_t other_process; /* ... above all this one */
};

enum { HEAL_CLOCK_REASONS = 9 }; /* bits of heal_gpu.slowed */

/* What its GPU did: sums over the heartbeats that had a reading, and the newest one. */
struct heal_gpu_work {
    double readings;
    double clock;                      /* MHz */
    double slowed[HEAL_CLOCK_REASONS]; /* readings with this bit; of an idle GPU, only NVML_IDLE */
    double narrow;                     /* the same, with a PCIe link below what it could be */
    double others;
    struct heal_gpu last; /* its other_process is that of the last one that had any */
};

enum { HEAL_LINKS = 16, HEAL_LINK_NAME = 24 };

/* What a network interface or an InfiniBand port of a host did. */
struct heal_link {
    char name[HEAL_LINK_NAME];
    double speed;   /* bytes/s; 0: not known */
    double bytes;   /* in the direction that had more */
    double packets; /* both ways; 0: not known */
    double faults[NETWORK_FAULTS];
};

/* What the network of a host did.  One rank on each host reports it, every few seconds. */
struct heal_network {
    double seconds;          /* the time that this is about; 0: nothing is known */
    double segments, resent; /* TCP segments sent; those that were sent again */
    double received, gaps;   /* those received; received while an earlier one is missing */
    int64_t nlinks;
    struct heal_link links[HEAL_LINKS];
};

/* A rank as the worker sees it.  All times are seconds of one monotonic clock. */
struct heal_seen {
    bool came;     /* it has connected */
    bool over;     /* its program has exited ... */
    int status;    /* ... with this status of waitpid() */
    bool cut;      /* its connection closed before it reported the exit of its program */
    bool lost;     /* its host no longer acknowledges packets */
    double at;     /* when 'over', 'cut' or 'lost' was set */
    double moved;  /* when it last made progress */
    double heard;  /* when its last message came; 0: never */
    double cores;  /* average number of CPU cores in its last heartbeat */
    double sleeps; /* seconds until its own timer wakes it at the latest; 0 if it does not sleep */
    char state;    /* of its training process, such as 'T' (proc(5)); 0 if unknown */
    struct heal_work work;
    struct heal_gpu_work gpu;
    struct heal_network network; /* sums of its reports */
    const char *host;
};

enum heal_cause {
    HEAL_NONE,
    HEAL_DIED,    /* the program of a rank failed */
    HEAL_CUT,     /* the processes of a rank are gone */
    HEAL_STOPPED, /* a rank is stopped (SIGSTOP), and the others wait for it */
    HEAL_SILENT,  /* a rank sends no heartbeat, and no rank makes progress */
    HEAL_HANG,    /* no rank makes progress */
    HEAL_LOST,    /* a node does not answer */
    HEAL_ALONE,   /* no other node answers: the worker's own host may be cut off */
    HEAL_CAUSES
};

/* How long this run went without progress in the past. */
struct heal_learned {
    double longest; /* seconds of the longest gap that ended; in a gap, no rank makes progress */
    double gap;     /* seconds of the current gap at the last call */
};

/* Call this regularly with the seconds that heal_quiet() returns. */
void heal_learn (struct heal_learned *l, double quiet);

struct heal_limits {
    double start; /* limit in seconds until heal_has_begun() */
    double least; /* limit in seconds afterwards, at least; 0 turns hang detection off */
    bool fixed;   /* always use 'least', however long earlier gaps were */
    long signs;   /* how often the worker saw the training print, log or save */
    bool may_end; /* ignore how programs exit: the ranks have roles, and job_judge() judges that */
    const char *home; /* the worker's node; NULL: unknown */
};

struct heal_verdict {
    enum heal_cause cause;
    int status;    /* HEAL_DIED: of waitpid(), ... */
    int signal;    /* ... and the signal that killed the rank; 0: it ended by itself */
    long rank;     /* the rank at fault, or the first of them; -1 if none is */
    char host[64]; /* the host at fault; "" if none is */
    long others;   /* HEAL_ALONE: number of other hosts that have ranks */
    double quiet;  /* seconds since any rank made progress */
    double limit;  /* as soon as 'quiet' reaches this, it is a hang */
    char why[256];
    char before[128]; /* ", after rank 1 on n2 had ended with status 0", or "" */
};

/* Whether a rank is connected and its program runs. */
bool heal_lives (const struct heal_seen *r);

/* Whether a connected rank has sent no heartbeat for so long that its host or its processes seem
 * frozen.
 */
bool heal_is_silent (const struct heal_seen *r, double now);

/* The rank that failed first, or whose processes are gone; -1 if none has failed. */
long heal_first_to_fail (const struct heal_seen *ranks, size_t n);

/* Seconds since any rank made progress.  'output' is when the training last printed, logged or
 * saved anything.
 */
double heal_quiet (const struct heal_seen *ranks, size_t n, double output, double now);

/* Whether the training is past its start: it printed, logged or saved twice. */
bool heal_has_begun (const struct heal_limits *limits);

/* Find what went wrong first, because later failures are usually its consequences.  Fills in 'v';
 * its cause is HEAL_NONE if all is well.
 */
void heal_judge (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                 const struct heal_learned *learned, double output, double now,
                 struct heal_verdict *v);

/* Turn HEAL_ALONE into HEAL_LOST: the worker's host is not cut off. */
void heal_blame_lost (const struct heal_seen *ranks, size_t n, struct heal_verdict *v);

/* -- how to react to each cause -- */

struct heal_row {
    enum condition_reason reason; /* cause of the event in the log */
    bool takes_stacks;            /* take the ranks' stacks before ending the step */
    bool leaves;                  /* abandon the step, because the lost host cannot end it */
    bool checks;                  /* check the rank's node before the next attempt */
    bool is_free;                 /* do not count the failure towards worker.max_restarts */
};
extern const struct heal_row heal_rows[HEAL_CAUSES];

/* ---- Find a rank that is slow, from how each spends its time, and from its hardware ---- */

/* Add what a heartbeat says about the rank's GPU. */
void slow_add_gpu (struct heal_gpu_work *w, const struct heal_gpu *g);

/* Add a report on the network of its host. */
void slow_add_network (struct heal_network *sum, const struct heal_network *report);

struct slow_ranks *slow_create (size_t n);
void slow_destroy (struct slow_ranks *s);

enum slow_news {
    SLOW_NOTHING,
    SLOW_FOUND, /* a rank is slow for a known cause */
    SLOW_OVER,  /* a slow rank keeps up again */
};

/* Compare the ranks, and describe any news in 'why'.  Call this regularly; 'now' is always from the
 * same monotonic clock.  Returns each event once, and a slow rank again if the cause changes.  Does
 * not report a rank that just has more work, such as rank 0 while it evaluates.
 */
enum slow_news slow_judge (struct slow_ranks *s, const struct heal_seen *ranks, size_t n,
                           double now, char *why, size_t size);

/* ---- The worker's side: receive the reports of a step's ranks ---- */

/* Listen for 'ranks' ranks of a step, and write the address and key to the notice 'name'
 * (runtime/comm/net/notice.h), which only this user can read.  A worker that was killed has left
 * its notice: those that differ only after the last dot are removed.  Returns NULL with 'err'.
 */
struct rank_watch *rank_watch_create (const char *name, size_t ranks, struct slurmdl_error *err);

/* Closes the connections without a message to the ranks. */
void rank_watch_destroy (struct rank_watch *w);

/* Accept connections and read messages, without blocking.  Call it several times a second. */
void rank_watch_serve (struct rank_watch *w);

/* Return the state of each rank, indexed by rank.  Valid until rank_watch_destroy(). */
const struct heal_seen *rank_watch_seen (const struct rank_watch *w, size_t *n);

/* Return Slurm's number of the step, or -1 if no rank has reported it yet. */
long rank_watch_step (const struct rank_watch *w);

/* Ask all connected ranks to write their stacks to 'folder', as dump 'number'
 * (launcher/debug/debug.h).
 */
void rank_watch_dump (struct rank_watch *w, const char *folder, long number);

/* Return how many connected ranks that are not silent have not answered rank_watch_dump() yet. */
size_t rank_watch_dumping (const struct rank_watch *w);

/* Ask all connected ranks to kill their programs. */
void rank_watch_end (struct rank_watch *w);

/* ---- The rank's side: report to the worker how the rank's program is doing ---- */

/* Find the worker that HEAL_VARIABLE names, and remove the variable from the environment.  Returns
 * NULL if no worker watches this rank, or if its notice cannot be read.
 */
struct heal_rank *heal_rank_create (void);
void heal_rank_destroy (struct heal_rank *r);

/* Return the descriptor to poll for messages from the worker; -1 if not connected. */
int heal_rank_fd (const struct heal_rank *r);

/* Connect if necessary, obey the worker, and send a heartbeat if one is due.  Call it once a
 * second, and whenever the descriptor is readable.
 *
 * Returns false if the caller must kill the program: either the worker requested it, or it has died
 * since, so that the next worker begins another attempt on these nodes, or it has been unreachable
 * for a minute and has most likely restarted the attempt elsewhere, or it is frozen.
 */
bool heal_rank_serve (struct heal_rank *r);

/* Whether the worker is connected, but has sent nothing for five minutes. */
bool heal_rank_is_frozen (const struct heal_rank *r);

/* Try to connect once more.  Returns whether the worker's host still does not answer. */
bool heal_rank_is_abandoned (struct heal_rank *r);

/* Report that the program has exited, with this status of waitpid(). */
void heal_rank_over (struct heal_rank *r, int status);
