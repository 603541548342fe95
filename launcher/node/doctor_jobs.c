/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check what slurm.conf says of the end of jobs, and their limits.
 */
#include "launcher/node/doctor_jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/rank/slurmconf.h"

enum { KILL_WAIT = 30, GRACE = 30, UNKILLABLE = 120 }; /* seconds */

void doctor_kill (struct site *s)
{
    long wait = site_number (s, "KillWait");

    if (wait >= KILL_WAIT)
        site_report (s, FINE, site_here (s, "KillWait"), "%ld s", wait);
    else
        site_report (s, CHANGE, site_here (s, "KillWait"),
                     "%ld s between SIGTERM and SIGKILL are short for a checkpoint: "
                     "set KillWait=%d or more",
                     wait, KILL_WAIT);
}

struct partition_defaults {
    long grace, tier; /* of PartitionName=DEFAULT */
    long highest;     /* tier of all */
};

static long number_of (const char *line, const char *key, long otherwise)
{
    char text[64];

    return slurmconf_value (line, key, text, sizeof (text)) ? atol (text) : otherwise;
}

static struct partition_defaults read_tiers (const struct site *s)
{
    struct partition_defaults d = { 0, 1, 0 };

    for (size_t i = 0; i < s->slurm.n; i++) {
        const char *line = s->slurm.list[i].text;
        long tier = number_of (line, "PriorityTier", d.tier);
        if (!strncasecmp (line, "PartitionName=DEFAULT", 21)) {
            d.tier = tier;
            d.grace = number_of (line, "GraceTime", d.grace);
        } else if (!strncasecmp (line, "PartitionName=", 14) && tier > d.highest)
            d.highest = tier;
    }
    return d;
}

/* Of a partition whose jobs may be preempted; -1 if none are. */
static long grace_of (const struct partition_defaults *d, const char *line)
{
    char mode[64];

    if (strncasecmp (line, "PartitionName=", 14) || !strncasecmp (line, "PartitionName=DEFAULT", 21)
        || number_of (line, "PriorityTier", d->tier) >= d->highest
        || (slurmconf_value (line, "PreemptMode", mode, sizeof (mode))
            && !strcasecmp (mode, "OFF")))
        return -1;
    return number_of (line, "GraceTime", d->grace);
}

/* slurm.conf(5): what a job has that is preempted, before KillWait. */
void doctor_preemption (struct site *s)
{
    struct partition_defaults d = read_tiers (s);
    char where[SITE_WHERE];
    size_t before = s->nfindings;

    if (!site_has (s, "PreemptType", "preempt/partition_prio"))
        return;
    for (size_t i = 0; i < s->slurm.n; i++) {
        const struct conf_line *l = &s->slurm.list[i];
        long grace = grace_of (&d, l->text);
        if (grace < 0 || grace >= GRACE)
            continue;
        snprintf (where, sizeof (where), "%s:%d", l->file, l->line);
        site_report (s, CHANGE, where, "%ld s are short for a checkpoint: set GraceTime=%d or more",
                     grace, GRACE);
    }
    if (s->nfindings == before)
        site_report (s, FINE, s->conf_path, "no partition has less than %d s", GRACE);
}

void doctor_requeue (struct site *s)
{
    site_expect (s, "JobRequeue", site_number (s, "JobRequeue") == 1, "jobs come back",
                 "jobs do not come back after preemption or a failure of a node: "
                 "set JobRequeue=1");
}

/* A process in a slow driver call is not dead at once, and drains its node. */
void doctor_unkillable (struct site *s)
{
    long timeout = site_number (s, "UnkillableStepTimeout");
    long message = site_number (s, "MessageTimeout");
    long wanted = 5 * message > UNKILLABLE ? 5 * message : UNKILLABLE;

    if (timeout >= wanted)
        site_report (s, FINE, site_here (s, "UnkillableStepTimeout"), "%ld s", timeout);
    else
        site_report (s, CHANGE, site_here (s, "UnkillableStepTimeout"),
                     "after %ld s a node is drained whose GPU processes are slow to "
                     "end: set UnkillableStepTimeout=%ld or more",
                     timeout, wanted);
}

/* slurm.conf(5): a comma list, ALL (the default) or NONE. */
void doctor_limits (struct site *s)
{
    bool goes = site_has (s, "PropagateResourceLimits", "ALL")
                || site_has (s, "PropagateResourceLimits", "MEMLOCK");

    site_expect (s, "PropagateResourceLimits",
                 !goes || site_has (s, "PropagateResourceLimitsExcept", "MEMLOCK"),
                 "locked memory is as slurmd has it",
                 "the login node's limit of locked memory goes to the job, and "
                 "RDMA fails: set PropagateResourceLimitsExcept=MEMLOCK");
}
