/* SPDX-License-Identifier: Apache-2.0 */
/* Talk to Slurm through its commands, which only this folder runs.  Each question has one function,
 * and each answer one parser.
 *
 * Code that runs inside a job must not query Slurm.  A worker does so only where a comment says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

struct command;

/* ---- the queue: squeue ---- */

struct slurm_job {
    long id, task;   /* the job and, for an array, the task; else -1 */
    char state[32];  /* for example "PENDING" */
    char reason[96]; /* why it is pending; "None" if it is not */
    char comment[160];
    double seconds_left; /* until the time limit; 0: no limit, or unknown */
    const char *folder;  /* where it was submitted; points into slurm_jobs.text */
};

struct slurm_jobs {
    struct slurm_job *list;
    size_t n;
    char *text;
};

struct slurm_queue {
    const char *jobs; /* for example "12,13_4"; NULL: all jobs of this user */
    bool each_task;   /* list pending array tasks one by one */
    bool ended;       /* include ended jobs, which Slurm remembers for some minutes */
    unsigned seconds; /* timeout; 0: none */
};

enum slurm_answer {
    SLURM_ANSWERED,
    SLURM_NO_SUCH_JOB, /* Slurm never had the job, or has forgotten it */
    SLURM_UNREACHABLE, /* slurmctld does not answer */
    SLURM_FAILED       /* there is no squeue, or it failed for another reason */
};

/* Run squeue once.  Unless the result is SLURM_ANSWERED, the list is empty, 'err' (may be NULL) is
 * set and errno is EPROTO.  Call slurm_jobs_free() in any case.
 */
enum slurm_answer slurm_jobs_ask (const struct slurm_queue *q, struct slurm_jobs *jobs,
                                  struct slurmdl_error *err);

void slurm_jobs_free (struct slurm_jobs *jobs);

/* Write the state and reason of a job to 'buf', for example "PENDING Resources", or "UNKNOWN" and
 * why if Slurm does not answer.  Returns -1 if Slurm no longer knows the job.
 */
int slurm_job_text (long job, char *buf, size_t size);

/* ---- a new job: sbatch, salloc ---- */

/* Add --output=FOLDER/FILE, where 'file' may contain %A, %a and %j, and 'folder' any character.
 * sbatch writes no output into a folder with a backslash in its name, so that the batch script must
 * redirect its output itself, as slurm_script_text() does.
 */
void slurm_add_output (struct command *c, const char *folder, const char *file);

/* Do so for a job 'name' that may be requeued, and then appends to its output. */
void slurm_add_requeueable (struct command *c, const char *name, const char *folder,
                            const char *file);

/* A batch script that restarts its command if it dies, 20 times at most.  The parts are shell text
 * that may use $job, "12" or "12_3".  'variables' sets $out, the folder of its output, which the
 * script itself writes to the file 'log' there if sbatch cannot.
 */
struct slurm_script {
    const char *comment;
    const char *variables; /* lines */
    const char *log;
    const char *time_left; /* variable that gets the time until the job's limit, as squeue prints
                              it, or "" if the job has $SLURM_JOB_END_TIME; NULL: none */
    const char *setup;     /* lines that run once, or "" */
    const char *command;   /* begins with "run " unless it is a step */
    const char *cases;     /* of the exit status of the command: exit, or restart it */
};

/* Write the script to a string that the caller frees. */
char *slurm_script_text (const struct slurm_script *s);

/* Why sbatch submitted no job. */
struct slurm_refusal {
    bool no_job;       /* there certainly is no job: no answer was lost */
    bool for_good;     /* the same command will always be rejected */
    bool too_much;     /* Slurm might accept a smaller array */
    bool unknown_node; /* --exclude or --nodelist names an unknown node */
};

/* Run sbatch with the options and the script in 'c', and free 'c'.  Returns the job ID, or -1 with
 * 'why' (may be NULL) and 'err'.
 */
long slurm_submit (struct command *c, struct slurm_refusal *why, struct slurmdl_error *err);

/* Replace this process with salloc, which takes its options from 'c' and runs the program that
 * follows them there.  Returns only on failure, with the cause in errno.
 */
void slurm_allocate (struct command *c);

/* The start that sbatch --test-only predicts. */
struct slurm_start {
    double seconds;      /* from now */
    char time[64];       /* for example "2026-01-31T12:00:00" */
    char partition[256]; /* "": unknown */
};

/* Predict when and where such a job would start, and free 'c'.  Returns -1 with 'err' if, as far as
 * Slurm knows, it never would.
 */
int slurm_test (struct command *c, struct slurm_start *start, struct slurmdl_error *err);

/* ---- cancelling and requeueing jobs: scancel, scontrol ---- */

/* Cancel jobs and array tasks such as "12" and "13_4".  The list ends with NULL.  'option' is an
 * additional option of scancel, or NULL.  A job that has already ended is not an error.
 */
int slurm_cancel (char *const *jobs, const char *option, struct slurmdl_error *err);

/* Cancel a step of the job that this process runs in, in all components of the job.  'option' is as
 * in slurm_cancel().
 */
int slurm_cancel_step (const char *step, const char *option, struct slurmdl_error *err);

/* The same without waiting for slurmctld, which may not answer.  scancel prints its errors to the
 * standard error of this process.  Returns 0, or -1 with errno.
 */
int slurm_begin_to_cancel_step (const char *step);

/* Requeue a job.  Slurm ends its present run. */
int slurm_requeue (const char *job, struct slurmdl_error *err);

/* Exclude the nodes "n1,n2" from a pending job. */
int slurm_avoid (const char *job, const char *nodes, struct slurmdl_error *err);

/* ---- nodes and partitions: scontrol show ---- */

struct slurm_node {
    long gpus, cpus;
    const char *partitions; /* "a,b", terminated by a blank instead of a NUL */
};

struct slurm_nodes {
    char *text; /* 'partitions' points into it */
    struct slurm_node *list;
    size_t n;
};

/* List all nodes.  Returns -1 with errno EPROTO if Slurm does not answer.  Call slurm_nodes_free()
 * in any case.
 */
int slurm_nodes_ask (struct slurm_nodes *c, struct slurmdl_error *err);
void slurm_nodes_free (struct slurm_nodes *c);

/* Whether a node is in one of the partitions "a,b".  NULL: any partition. */
bool slurm_node_is_in (const struct slurm_node *node, const char *partitions);

/* Number of nodes in these partitions that have at least 'gpus' GPUs and 'cpus' cores. */
long slurm_nodes_with (const struct slurm_nodes *c, const char *partitions, long gpus, long cpus);

/* Whether another partition preempts jobs of 'partition' on its nodes.  Writes one such partition
 * to 'by', and the mode, for example "REQUEUE", to 'how'.
 */
bool slurm_preempts (const struct slurm_nodes *c, const char *partition, char by[256],
                     char how[64]);

/* Write the name of the job or array task that this process runs in: "12" or "12_3". */
void slurm_own_job (char name[80]);

/* The nodes that a job "12" or "12_3" has now, of all its components: "n[1-3],n5".  Slurm takes a
 * node that it sets DOWN from a job that was submitted with --no-kill.  The caller frees the text.
 * Returns NULL if the job has no nodes or Slurm does not answer.
 */
char *slurm_nodes_of_job (const char *job);

/* The most nodes a job in a partition can have.  NULL: the default partition.  Returns 0 if Slurm
 * does not tell.
 */
long slurm_partition_nodes (const char *partition);

/* The cores of a partition, and of its largest node.  NULL: the default partition.  Returns 0 if
 * Slurm does not tell, or the first if jobs may share the cores.
 */
long slurm_partition_cpus (const char *partition);
long slurm_partition_largest (const char *partition);

/* Whether Slurm says that the job was given no GPUs; false if it does not answer. */
bool slurm_job_lacks_gpus (const char *job);

/* Number of GPUs of a node.  Returns 0 if there are none or Slurm does not answer. */
long slurm_gpus_of (const char *node);

/* The configuration of slurmctld as lines "Key = value", which the caller frees.  Returns NULL with
 * 'err' on failure.
 */
char *slurm_config (struct slurmdl_error *err);

/* ---- how a job or step ended: sacct, scontrol show job ---- */

/* Write the final state, for example "OUT_OF_MEMORY", of a step, or of a job or array task that has
 * left the queue.  For a requeued job this is the state at its last end.  Writes "" if Slurm does
 * not know or has no accounting.
 */
void slurm_step_state (long job, long step, char state[32]);
void slurm_job_state (const char *job, char state[32]);

/* ---- steps: srun ---- */

/* A step of ranks in the job that this process runs in.  0 leaves a number to srun. */
struct slurm_step {
    long long nodes, tasks, tasks_per_node, cpus; /* 'cpus' is per rank */
    long long gpus;                               /* per task, which sees no others */
    const char *node;                             /* use only the nodes "n1,n2"; NULL: any */
    long long components;                         /* of the job; if more than 1, start the tasks of
                                                     each */
    bool no_kill;                                 /* losing a node does not end the step */
    bool goes_on;                                 /* a task that ends does not end the others */
    bool of_script; /* a batch script starts it as its only step, in the environment that sbatch
                       gave the script */
};

/* Append the srun command line, up to the options of the plugin and the program. */
void slurm_step_words (const struct slurm_step *s, char ***words);

/* The same as shell text, which the caller frees.  s->node must be NULL. */
char *slurm_step_text (const struct slurm_step *s);

/* The job that srun waits for, from its message on standard error; 0: none. */
long slurm_queued_job (const char *said);

/* Number of components of the job that this process runs in; more than 1: the job is heterogeneous.
 */
long slurm_components (void);

/* Whether srun or slurmstepd printed a line, and not the program that they run. */
bool slurm_printed (const char *line);

/* Whether a line is srun's own error, neither the plugin's nor about how a task ended. */
bool slurm_complained (const char *line);

/* Whether such an error means that srun cannot start the step. */
bool slurm_refused_step (const char *line);

/* Find the last line of an output that is not blank and that Slurm did not print, without "dl: ".
 * NULL: there is none.  Changes the text.
 */
char *slurm_last_line (char *text);

/* The nodes of a component, or of the whole job if it has only one: "n[1-3]".  Returns NULL if that
 * is unknown.
 */
const char *slurm_component_nodes (long component);

/* Number of cores of the job that this process runs in, if it has one component.  Returns 0 if that
 * is unknown.
 */
long slurm_allocated_cpus (void);

/* Whether this process runs in a job, but in none of its steps: in a batch script or under salloc.
 */
bool slurm_in_allocation (void);

/* Whether a list such as "n[1-4]" contains the node. */
bool slurm_lists_node (const char *list, const char *node);

/* The first component that has a node; -1: none. */
long slurm_component_of (const char *node);

/* Append an srun command line that starts one task per node, in a new job unless this process runs
 * in one, with the user's 'options'.  'nodes' 0 leaves the number to these options.  A task that
 * ends does not end the others.
 */
void slurm_node_step_words (char *const *options, long long nodes, char ***words);

/* Run a program with one argument as a task on a node of the job that this process runs in, and
 * write its output to 'text'.  Returns its exit status, or -1 after a timeout of 'seconds'.
 */
int slurm_run_on (const char *node, const char *program, const char *argument, unsigned seconds,
                  char *text, size_t size);

/* Append an srun command line for an interactive terminal, up to the options. */
void slurm_terminal_words (char ***words);

/* Write the output of `srun --help` or `srun --version` to 'text'.  Returns the exit status. */
int slurm_srun_output (const char *option, char *text, size_t size);

/* Run a program as a single task of a new job, with one additional option of srun, and write its
 * output to 'text'.  Returns the exit status.
 */
int slurm_try (const char *option, const char *program, char *text, size_t size);

/* ---- amounts ---- */

/* Convert a Slurm time such as "1-02:03:04" to seconds.  Returns 0 for no time or no limit. */
double slurm_seconds (const char *text);

/* Convert "16G", "500M" or "500" (in M) to bytes.  The unit is K, M, G or T, optionally followed by
 * "B".  Returns 0 for "0" (all memory of a node), or -1 if the text is invalid.
 */
int64_t slurm_bytes (const char *text);

/* Convert bytes to text, rounded up to whole M and in the largest unit that divides them: "16G",
 * "1536M".
 */
void slurm_bytes_text (char *buf, size_t size, int64_t bytes);

/* ---- private to this folder ---- */

/* Join the output of a Slurm command into one line, without the command's name at the beginning of
 * each line.
 */
void slurm_message (char *out, size_t size, const char *text);

/* Run `scontrol show WHAT [NAME]` with one object per line.  Returns the exit status. */
int slurm_show (const char *what, const char *name, unsigned seconds, char *text, size_t size);
