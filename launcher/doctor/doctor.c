/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check this host's Slurm and print what to change. */
#include "launcher/doctor/doctor.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/doctor/host.h"
#include "launcher/doctor/jobs.h"
#include "launcher/doctor/plugin.h"
#include "launcher/doctor/slurm.h"
#include "launcher/sys/say.h"
#include "runtime/base/environment.h"

/* clang-format off */
static const struct doctor_check checks[] = {
    { "slurm",            doctor_slurm,              false, BROKEN },
    { "plugstack",        doctor_plugstack,          true,  BROKEN },
    { "plugin line",      doctor_plugin_line,        true,  BROKEN },
    { "plugin file",      doctor_plugin_file,        true,  BROKEN },
    { "plugin release",   doctor_plugin_release,     true,  BROKEN },
    { "plugin arguments", doctor_plugin_arguments,   true,  CHANGE },
    { "plugin order",     doctor_order,              true,  CHANGE },
    { "command dl",       doctor_command,            true,  CHANGE },
    { "profiles",         doctor_profiles,           true,  CHANGE },
    { "MpiParams",        doctor_ports,              true,  BROKEN },
    { "SrunPortRange",    doctor_srun_ports,         true,  CHANGE },
    { "TaskPlugin",       doctor_task_plugin,        true,  CHANGE },
    { "ProctrackType",    doctor_proctrack,          true,  CHANGE },
    { "cgroups",          doctor_cgroup,             true,  CHANGE },
    { "SelectType",       doctor_select,             true,  CHANGE },
    { "gres",             doctor_gres,               true,  CHANGE },
    { "AccountingStorageTRES", doctor_tres,               true,  CHANGE },
    { "values",           doctor_values,             true,  CHANGE },
    { "KillWait",         doctor_kill,               true,  CHANGE },
    { "GraceTime",        doctor_preemption,         true,  CHANGE },
    { "JobRequeue",       doctor_requeue,            true,  CHANGE },
    { "MaxArraySize",     doctor_array,              true,  HINT },
    { "UnkillableStepTimeout", doctor_unkillable,         true,  CHANGE },
    { "PropagateResourceLimits", doctor_limits,             true,  CHANGE },
    { "PrologFlags",      doctor_prolog,             true,  HINT },
    { "JobAcctGather",    doctor_gather,             true,  HINT },
    { "HealthCheckProgram", doctor_health,             true,  HINT },
    { "GPUs",             doctor_gpus,               false, CHANGE },
    { "nvidia_peermem",   doctor_peermem,            false, HINT },
    { "locked memory",    doctor_memlock,            false, CHANGE },
    { "open files",       doctor_nofile,             false, CHANGE },
    { "shared memory",    doctor_shm,                false, CHANGE },
    { "RemoveIPC",        doctor_remove_ipc,         false, HINT },
    { "host names",       doctor_hosts,              true,  CHANGE },
    { "a step",           doctor_step,               true,  BROKEN },
    { NULL },
};
/* clang-format on */

/* In a step of several tasks each has its node before its lines, and rank 0
 * alone what need not be changed.
 */
static void print_text (const struct site *s, const int *count)
{
    const char *node = getenv ("SLURMD_NODENAME");
    long rank = (long)environment_number ("SLURM_PROCID", -1);
    bool step = node && rank >= 0 && environment_number ("SLURM_STEP_NUM_TASKS", 1) > 1;
    enum doctor_severity least = !step ? FINE : rank == 0 ? HINT : CHANGE;

    for (size_t i = 0; i < s->nfindings; i++) {
        const struct doctor_finding *f = &s->findings[i];
        if (f->severity < least)
            continue;
        if (step)
            printf ("%s: ", node);
        printf ("%-6s  %s%s%s: %s\n", doctor_severity_names[f->severity], f->where ? f->where : "",
                f->where && *f->where ? ": " : "", f->check, f->what ? f->what : "");
    }
    if (!step)
        printf ("\n%d to change, %d hints, %d ok\n", count[CHANGE] + count[BROKEN], count[HINT],
                count[FINE]);
}

static void print_json (const struct site *s)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < s->nfindings; i++)
        json_array_append_new (
            list, json_pack ("{s:s, s:s, s:s*, s:s*}", "check", s->findings[i].check, "severity",
                             doctor_severity_names[s->findings[i].severity], "where",
                             s->findings[i].where, "what", s->findings[i].what));
    json_dumpf (list, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (list);
}

static int conclude (const struct site *s, bool json)
{
    int count[DOCTOR_SEVERITIES] = { 0 };

    for (size_t i = 0; i < s->nfindings; i++)
        count[s->findings[i].severity]++;
    if (json)
        print_json (s);
    else
        print_text (s, count);
    return count[CHANGE] + count[BROKEN] ? EXIT_FAILED : EXIT_OK;
}

int cmd_doctor (const struct settings *st)
{
    struct site *s = calloc (1, sizeof (*s));
    int status;

    if (!s) {
        complain ("doctor: out of memory");
        return EXIT_IO;
    }
    s->root = st->root ? st->root : "";
    s->run = st->run;
    if (st->config && !(s->config = doctor_read ("", st->config))) {
        complain ("doctor: %s: %s", st->config, strerror (errno));
        site_free (s);
        return EXIT_NOT_FOUND;
    }
    site_read (s);
    for (s->check = checks; s->check->name; s->check++)
        if (s->config || !s->check->slurm)
            s->check->run (s);
    status = conclude (s, st->json);
    site_free (s);
    return status;
}
