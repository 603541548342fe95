/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of jobs with roles: policies, members, and elastic worker groups. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/config/job_settings.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/conditions.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

struct command_line;
struct sweep;
struct sweep_trial;

/* ---- Apply the policies of a job ---- */

/* Decide whether it runs, has succeeded, fails or restarts.  Names and meanings are those of
 * Kubeflow's training operator. */

/* The members of one role, and their policy. */
struct role_members {
    const char *name;
    long count;
    enum restart_policy restart;
    const struct exit_range *ranges; /* for RESTART_EXIT_CODE; NULL: exit_ranges */
    long succeeded, failed;          /* all other members run */
    bool first_succeeded;            /* member 0 has succeeded */
    int status;                      /* of a failed member, if possible one that is not restarted */
};

struct verdict {
    enum life_event_kind kind; /* LIFE_STARTED: it runs; LIFE_BROKEN: it restarts; LIFE_SUCCEEDED or
                                  LIFE_FAILED: it ends */
    enum condition_reason reason;
    const char *role; /* the role that decides, or NULL */
    int status;       /* of the member that failed in this role */
};

/* Judge a job with roles by how many members of each role run, have succeeded and have failed. */
struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success);

/* -- a failed attempt -- */

struct job_failure {
    int status; /* exit status, as in a shell */
    bool free;  /* the failure does not count: the program asked to be restarted, or the machine was
                   to blame */
    bool progress; /* the attempt got further than those before it */
    int before;    /* attempts that failed since the last progress, without this one */
    int alike;     /* attempts that failed in the same way, this one included */
};

/* Why a job fails now; REASON_NONE: it is restarted. */
enum condition_reason job_gives_up (const struct experiment *e, const struct job_failure *f);

/* The deadline of a job in seconds since the epoch; 0: it has none.  The time counts from the start
 * of the job or, if it was suspended, from when it was last resumed.
 */
double job_deadline (const struct sweep *s, const struct sweep_trial *t);

/* ---- The members of a running job: which have ended, and how ---- */

/* The state of an attempt of a job with roles, judged by the ends that its ranks recorded in the
 * attempt's folder (launcher/trainer/trainer.h).  Files that do not belong to 'owner' are ignored.
 */
struct members {
    struct verdict verdict;
    long rank;     /* the failed rank that decides; -1: none failed */
    long index;    /* of that rank in its role, from 0 */
    char node[65]; /* where it ran */
    bool others;   /* only members that serve, such as parameter servers, may still run */
};
void members_look (const struct trial_attempt *a, uid_t owner, struct members *m);

/* ---- The plan of a run of dl elastic: its nodes, its limits and its folder ---- */

/* A node of the allocation or, with --local, a place on this machine.  All ranks of a unit are one
 * step, so that they end together.
 */
struct elastic_unit {
    char node[256];     /* "": this machine */
    long tries;         /* how often it was started */
    long fails;         /* failures in a row; a long run resets the count */
    pid_t pid;          /* of srun or the program; 0: nothing runs */
    double begun, next; /* when it last started, and when it may start again; monotonic, in s */
    double asked;       /* when SIGTERM was sent; 0: not yet */
};

struct elastic {
    const struct command_line *line;
    const struct elastic_options *opt;
    char dir[PATH_MAX - 128]; /* folder of this run */
    struct own_folder folder; /* the same, held open in case others replace it */
    struct elastic_unit *units;
    long n;
    long ranks;    /* per unit */
    long min, max; /* units that must and may run */
    long wanted;   /* units that should run, without spares */
    long spares;
    bool local;
    bool done;  /* a rank has completed the training, so no unit is started any more */
    bool never; /* a rank reported that another try makes no sense */
    int signal; /* the signal that ends the run; 0: none */
};

/* Fill in the units and limits from the options and from Slurm's variables, and create the folder
 * of the run.  Returns -1 with 'err'.
 */
int elastic_plan (struct elastic *e, struct slurmdl_error *err);

/* Whether 'dir' is the folder of a run of dl elastic that belongs to this user. */
bool elastic_is_run (const char *dir);

/* Ask the run in 'dir' to use that many units.  SCALE_SAME: it was already asked for that many.
 * SCALE_ERROR: failed, with 'err'.
 */
enum elastic_scaling { SCALE_ERROR = -1, SCALE_ASKED, SCALE_SAME };
enum elastic_scaling elastic_scale (const char *dir, long units, struct slurmdl_error *err);

/* Mark the run as ended in its folder, which stays. */
void elastic_end (const struct elastic *e);

/* Remove the folder that elastic_plan() created, even if something else has its name now. */
void elastic_remove (struct elastic *e);

/* ---- The command dl elastic ---- */

/* Options of dl elastic. */
struct elastic_options {
    int64_t min; /* nodes, like the next three; 0: not given */
    int64_t max;
    int64_t nodes;
    int64_t spares;
    int64_t ranks_per_node; /* 0: one */
    int64_t restarts;       /* most failures in a row after which a node is tried again */
    char **srun_options;    /* NULL-ended, or NULL */
    bool local;             /* run all ranks on this machine */
};

/* Run the command; returns an exit status of launcher/sys/messages.h. */
int cmd_elastic (const struct command_line *line);
