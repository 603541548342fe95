/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm, through its own commands: this folder alone runs them.  One function
 * asks one question, and one parser reads each answer.
 *
 * Whoever runs in a job is not to ask: a worker does so only where this is said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct command;

/* ---- the queue: squeue ---- */

struct slurm_job {
    long id, task;   /* of an array: its job and the task; else task is -1 */
    char state[32];  /* "PENDING" */
    char reason[96]; /* why it waits; "None" */
    char comment[160];
    double seconds_left; /* until its time limit; 0: none, or not known */
    const char *folder;  /* where it was submitted; within 'text' */
};

struct slurm_jobs {
    struct slurm_job *list;
    size_t n;
    char *text;
};

struct slurm_queue {
    const char *jobs; /* "12,13_4"; NULL: all of this user's */
    bool each_task;   /* those tasks of an array, too, that wait */
    bool ended;       /* those, too, that Slurm remembers for some minutes */
    unsigned seconds; /* until Slurm is given up; 0: never */
};

enum slurm_answer {
    SLURM_ANSWERED,
    SLURM_NO_SUCH_JOB, /* it never had it, or has forgotten it */
    SLURM_UNREACHABLE, /* the controller does not answer */
    SLURM_FAILED       /* there is no squeue, or it fails for another reason */
};

/* Ask once.  The answer is empty but for SLURM_ANSWERED; 'err' (may be NULL)
 * then says why, and errno is EPROTO.  slurm_jobs_free() in any case.
 */
enum slurm_answer slurm_jobs_ask (const struct slurm_queue *q, struct slurm_jobs *jobs,
                                  struct slurmdl_error *err);

void slurm_jobs_free (struct slurm_jobs *jobs);

/* Ask for the state and the reason of one job, "PENDING Resources"; "UNKNOWN"
 * and why, if Slurm does not answer.  -1: it does not know the job any more.
 */
int slurm_job_text (long job, char *buf, size_t size);

/* ---- a new job: sbatch ---- */

/* Add --output: 'file' (with %A, %a and %j) in a folder of any name.  In one
 * with a backslash sbatch writes nothing; the script of the job then names the
 * same file itself, and begins with
 *     case FOLDER in *\\*) exec >>FILE 2>&1 ;; esac
 */
void slurm_add_output (struct command *c, const char *folder, const char *file);

/* What an sbatch that made no job means. */
struct slurm_refusal {
    bool no_job;       /* there is none for certain: no answer was lost */
    bool for_good;     /* the same command will never make one */
    bool too_much;     /* a smaller array might be taken */
    bool unknown_node; /* one of --exclude or --nodelist */
};

/* Run sbatch with the options and the script of 'c', which is freed.  Returns
 * the job, -1 with 'why' (may be NULL) and 'err'.
 */
long slurm_submit (struct command *c, struct slurm_refusal *why, struct slurmdl_error *err);

/* When such a job would begin (sbatch --test-only), in seconds from now, and
 * where; 'c' is freed.  -1 with 'err': never, as far as Slurm knows.
 */
struct slurm_start {
    double seconds;
    char time[64];       /* "2026-01-31T12:00:00" */
    char partition[256]; /* "": not told */
};
int slurm_test (struct command *c, struct slurm_start *start, struct slurmdl_error *err);

/* ---- jobs that are to end, or to begin again: scancel, scontrol ---- */

/* Cancel jobs and array tasks, "12" and "13_4" (NULL-ended), with one more
 * option of scancel's, or NULL.  Those that have ended are no error.
 */
int slurm_cancel (char *const *jobs, const char *option, struct slurmdl_error *err);

/* Put a job back into the queue, which ends it here. */
int slurm_requeue (const char *job, struct slurmdl_error *err);

/* Keep a job that waits away from the nodes "n1,n2". */
int slurm_avoid (const char *job, const char *nodes, struct slurmdl_error *err);

/* ---- what the cluster is: scontrol show ---- */

struct slurm_node {
    long gpus, cpus;
    const char *partitions; /* "a,b", not ended by a NUL but by a blank */
};

struct slurm_nodes {
    char *text; /* that 'partitions' leads into */
    struct slurm_node *list;
    size_t n;
};

/* Ask for all nodes, once.  slurm_nodes_free() in any case.  Returns -1 with
 * errno EPROTO if Slurm does not answer.
 */
int slurm_nodes_ask (struct slurm_nodes *c, struct slurmdl_error *err);
void slurm_nodes_free (struct slurm_nodes *c);

/* Whether a node is in one of the partitions "a,b"; NULL: in any. */
bool slurm_node_is_in (const struct slurm_node *node, const char *partitions);

/* How many nodes of these partitions have so many GPUs and cores at least. */
long slurm_nodes_with (const struct slurm_nodes *c, const char *partitions, long gpus, long cpus);

/* Ask whether jobs of other partitions preempt those of 'partition' on its
 * nodes, and how, as "REQUEUE"; 'by' is one of those.
 */
bool slurm_preempts (const struct slurm_nodes *c, const char *partition, char by[256],
                     char how[64]);

/* Ask how many nodes a job of a partition (NULL: the default one) can have; 0: Slurm does not say.
 */
long slurm_partition_nodes (const char *partition);

/* Ask for the GPUs of one node; 0: none, or Slurm does not answer. */
long slurm_gpus_of (const char *node);

/* Ask for the configuration of the controller, lines "Key = value", which the
 * caller frees; NULL with 'err'.
 */
char *slurm_config (struct slurmdl_error *err);

/* ---- how a job or step has ended: sacct, scontrol show job ---- */

/* The final state of a step, or of a job or array task that is not in the queue
 * any more (of a requeued one its last end), as "OUT_OF_MEMORY"; "": Slurm does
 * not know, or has no accounting.
 */
void slurm_step_state (long job, long step, char state[32]);
void slurm_job_state (const char *job, char state[32]);

/* ---- steps: srun ---- */

/* Add the words of srun that starts ranks in the job that this process is in,
 * up to the options of the plugin and the program; 'cpus' a rank, 0: not said.
 * Returns -1 if out of memory.
 */
struct slurm_step {
    long long nodes, tasks, tasks_per_node, cpus; /* 0: not said */
    long long gpus;                               /* of a task, which sees no others; 0: not said */
    const char *node;                             /* the only ones, "n1,n2"; NULL: any */
    long long components;                         /* of the job; more than 1: of each its tasks */
    bool no_kill;                                 /* the loss of a node does not end it */
    bool goes_on;                                 /* a task that ends does not end the others */
};
int slurm_step_words (const struct slurm_step *s, char ***words);

/* Components of the job that this process is in; more than 1: it is heterogeneous. */
long slurm_components (void);

/* The same for one task on each node, of a job of its own unless this process is
 * in one, with these options of the user's; 'nodes' 0: as they say.  No task
 * ends the others.
 */
int slurm_node_step_words (char *const *options, long long nodes, char ***words);

/* Run a program with one argument in a task on this node of the job that this process is in.
 * Returns its exit status, -1 if it took longer; 'text' gets its output.
 */
int slurm_run_on (const char *node, const char *program, const char *argument, unsigned seconds,
                  char *text, size_t size);

/* Add the words of srun for a terminal, up to its options. */
int slurm_terminal_words (char ***words);

/* What `srun --help` or `srun --version` prints; the exit status. */
int slurm_srun_says (const char *option, char *text, size_t size);

/* Run a program in one task of a new job, with one more option; its exit status
 * and output.
 */
int slurm_try (const char *option, const char *program, char *text, size_t size);

/* ---- amounts ---- */

/* Seconds of a time as Slurm writes it, "1-02:03:04"; 0: none, or no limit. */
double slurm_seconds (const char *text);

/* Bytes of "16G", "500M", "500" (M): with K, M, G or T, and perhaps "B".  -1 if
 * it is no such amount, 0 for "0" (all of a node).
 */
int64_t slurm_bytes (const char *text);

/* The same back, in the largest unit that fits, of whole M: "16G", "1536M". */
void slurm_bytes_text (char *buf, size_t size, int64_t bytes);

/* ---- here only ---- */

/* What a program of Slurm said in one line, without the names that stand before
 * each of its lines.
 */
void slurm_said (char *out, size_t size, const char *text);

/* Run `scontrol show WHAT [NAME]`, an object a line; the exit status. */
int slurm_show (const char *what, const char *name, unsigned seconds, char *text, size_t size);
