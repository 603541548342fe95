/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct experiment;
struct problems;

/* Which members of a job begin again when they end (launcher/job/verdict.h). */
enum restart_policy {
    RESTART_ON_FAILURE, /* one that fails */
    RESTART_NEVER,      /* none: its failure is the job's */
    RESTART_ALWAYS,     /* one that ends, however it ended */
    RESTART_EXIT_CODE,  /* one that fails, by its exit status */
};

/* When a job has succeeded. */
enum success_policy {
    SUCCESS_DEFAULT,     /* the chief has; without one, the first worker */
    SUCCESS_CHIEF,       /* the chief has */
    SUCCESS_ALL_WORKERS, /* the chief has; without one, all workers */
    SUCCESS_ANY,         /* any worker has, or the chief */
};

/* Exit statuses, as of a shell, and whether a member that ends with one begins
 * again.
 */
struct exit_range {
    int first, last;
    bool again;
};

/* One role of a job. */
struct job_role {
    char *name;
    int64_t count;
    char *command; /* for the shell; NULL: the entrypoint */
    int64_t cpus;  /* of a member; 0: as resources says */
    int64_t gpus;  /* of a member */
    char *memory;  /* of a member; NULL: as resources says */
    char *restart_policy;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* ended by .last 0; NULL: those of the job */
};

/* The group "job": a search of one trial whose attempts are the job's starts. */
struct job_settings {
    bool is_given;
    char *restart_policy, *success_policy, *clean_up, *deadline_text;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* NULL: exit_ranges */
    enum success_policy success;
    bool waits;            /* for the workers that still run when it has ended */
    int64_t backoff;       /* -1: not given */
    double deadline;       /* s that it may be active; 0: for ever */
    int64_t min_available; /* members with which it may begin; -1: all */
    int64_t ttl;           /* s after its end until dl ls hides it; -1: never */
    bool is_suspended;
    struct job_role *roles;
    size_t nroles;
    char *plugin_roles; /* for --dl-roles, or NULL */
};

/* The table of RESTART_EXIT_CODE where nobody gives one: 128 and above (signals)
 * begins again, 1 to 127 does not.  Ended by .last 0.
 */
extern const struct exit_range exit_ranges[];

/* "chief", "master" and "launcher" are the chief; "ps", "server", "scheduler" and
 * "evaluator" serve, and never end a job; all others are workers.
 */
bool role_is_chief (const char *name);
bool role_serves (const char *name);

/* Read it, before the rest is checked: it has defaults for other keys. */
void job_settings_read (struct experiment *e, config_t *cf, struct problems *p);

/* Check it, when the rest was. */
void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p);

void job_settings_free (struct job_settings *j);

/* Members of all roles; 0: it has none. */
int64_t job_members (const struct job_settings *j);

/* Nodes with which it may begin. */
int64_t job_min_nodes (const struct experiment *e);

/* Roles beside each other whose members need the same: of several, each is a
 * component of a heterogeneous job of Slurm's.
 */
struct job_component {
    int64_t members;
    int64_t cpus, gpus; /* of a member */
    int64_t cpu_memory; /* bytes for each of its cores; 0: as resources says */
};

/* Those of a job with roles, in their order, which is that of the ranks; NULL: it
 * has none.  The caller frees the list.
 */
struct job_component *job_components (const struct experiment *e, size_t *n);

/* GPUs of all members, and of the one that has most. */
int64_t job_gpus (const struct job_settings *j);
int64_t job_most_gpus (const struct job_settings *j);
