/* SPDX-License-Identifier: Apache-2.0 */
/* The group "job" of an experiment file. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Which members of a job are restarted when they end (launcher/job/job.h). */
enum restart_policy {
    RESTART_ON_FAILURE, /* those that fail */
    RESTART_NEVER,      /* none: if a member fails, the job fails */
    RESTART_ALWAYS,     /* all, whether they fail or succeed */
    RESTART_EXIT_CODE,  /* those that fail with certain exit statuses */
};

/* Who has to succeed for the job to succeed. */
enum success_policy {
    SUCCESS_DEFAULT,     /* the chief or, without one, the first worker */
    SUCCESS_CHIEF,       /* the chief */
    SUCCESS_ALL_WORKERS, /* the chief or, without one, all workers */
    SUCCESS_ANY,         /* the chief or any worker */
};

/* A range of exit statuses, as a shell reports them, and whether a member that exits with one is
 * restarted.
 */
struct exit_range {
    int first, last;
    bool again;
};

/* One role of a job. */
struct job_role {
    char *name;
    int64_t count;
    char *command; /* shell command; NULL: the entrypoint */
    int64_t cpus;  /* per member; 0: as in the group "resources" */
    int64_t gpus;  /* per member */
    char *memory;  /* per member; NULL: as in the group "resources" */
    char *restart_policy;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* the last has .last 0; NULL: those of the job */
    struct origin origin;      /* of the command, or else of the role */
};

/* The group "job".  dl runs a job as a search of one trial: each start of the job is an attempt. */
struct job_settings {
    bool is_given;
    char *restart_policy, *success_policy, *clean_up, *deadline_text;
    char **exit_codes;
    enum restart_policy restart;
    struct exit_range *ranges; /* NULL: exit_ranges */
    enum success_policy success;
    bool waits;            /* wait for the workers that still run when the job has ended */
    int64_t backoff;       /* -1: not given */
    double deadline;       /* seconds that the job may be active; 0: no limit */
    int64_t min_available; /* members needed to start; -1: all */
    int64_t ttl;           /* seconds until `dl ls` hides the ended job; -1: never */
    bool is_suspended;
    struct job_role *roles;
    size_t nroles;
    char *plugin_roles; /* the value of --dl-roles, or NULL */
};

/* The default table for RESTART_EXIT_CODE: restart for 128 and above (signals), but not for 1 to
 * 127.  The last row has .last 0.
 */
extern const struct exit_range exit_ranges[];

/* The roles "chief", "master" and "launcher" are the chief.  "ps", "server", "scheduler" and
 * "evaluator" are servers: their end never ends the job.  All other roles are workers.
 */
bool role_is_chief (const char *name);
bool role_serves (const char *name);

/* Whether a member is restarted after it ended with 'status', which is not 0. */
bool role_begins_again (enum restart_policy restart, const struct exit_range *ranges, int status);

/* The ranks of the members that restart alone, because no other member waits for them, and the exit
 * statuses after which they do: "4-4:1-127,130-255".  The caller frees the text.  Returns NULL if
 * there are none.
 */
char *job_alone (const struct job_settings *j);

/* Read the group.  Call this before checking the rest, because it sets defaults of other keys. */
void job_settings_read (struct experiment *e, config_t *cf, struct problems *p);

/* Check the group.  Call this after checking the rest. */
void job_settings_check (const struct experiment *e, config_t *cf, struct problems *p);

void job_settings_free (struct job_settings *j);

/* Number of members of all roles; 0: the job has no roles. */
int64_t job_members (const struct job_settings *j);

/* Whether a policy restarts any member. */
bool job_may_restart (const struct job_settings *j);

/* Number of nodes needed to start. */
int64_t job_min_nodes (const struct experiment *e);

/* Consecutive roles whose members need the same resources.  If there are several components, each
 * becomes a component of a heterogeneous Slurm job.
 */
struct job_component {
    int64_t members;
    int64_t cpus, gpus; /* per member */
    int64_t cpu_memory; /* bytes per core; 0: as in the group "resources" */
};

/* The components of a job in order of the ranks.  Returns NULL if the job has no roles.  The caller
 * frees the list.
 */
struct job_component *job_components (const struct experiment *e, size_t *n);

/* The GPUs of all members together, and those of the member that has the most. */
int64_t job_gpus (const struct job_settings *j);
int64_t job_most_gpus (const struct job_settings *j);
