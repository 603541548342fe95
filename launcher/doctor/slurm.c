/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check slurm.conf, cgroup.conf and gres.conf. */
#include "launcher/doctor/slurm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/subprocess.h"

enum {
    PORTS_WANTED = 1000,
    PORTS_FROM = 20000, /* what is proposed */
};

/* ---- versions ---- */

/* "slurm-wlm 22.05.8", in a line between what the plugins have to say. */
static int read_version (const char *said, char number[32])
{
    for (; *said; said += strcspn (said, "\n"), said += *said == '\n')
        if (sscanf (said, "slurm%*[^0-9\n]%31s", number) == 1)
            return 0;
    return -1;
}

static void ask_srun (struct site *s)
{
    struct command c = { .timeout = 10 };
    char number[32];
    char text[64];
    int status;

    command_add (&c, "srun", NULL);
    command_add (&c, "--version", NULL);
    setenv ("DL_DOCTOR", "1", 1); /* the plugin then tells all that it knows */
    status = command_run (&c, NULL, s->said, sizeof (s->said));
    unsetenv ("DL_DOCTOR");
    command_free (&c);
    site_value (s, "SLURM_VERSION", text, sizeof (text), "");
    if (status != 0 || read_version (s->said, number) < 0)
        site_report (s,
                     BROKEN,
                     "srun",
                     "it does not run (status %d): %.200s",
                     status,
                     *s->said ? s->said : "without a word");
    else if (strncmp (number, text, 5))
        site_report (s,
                     CHANGE,
                     "srun",
                     "it is of %s, and the controller of %s: upgrade this host",
                     number,
                     text);
    else
        site_report (s, FINE, "srun", "%s, as the controller", number);
}

void doctor_slurm (struct site *s)
{
    char text[64];

    if (!s->config) {
        site_report (s,
                     BROKEN,
                     "scontrol show config",
                     "%s: what is in slurm.conf was not looked at",
                     s->why);
        return;
    }
    if (!*s->root)
        ask_srun (s);
    else
        site_report (s,
                     FINE,
                     s->conf_path,
                     "Slurm %s",
                     site_value (s, "SLURM_VERSION", text, sizeof (text), "?"));
    if (!s->slurm.n)
        site_report (s,
                     HINT,
                     s->conf_path,
                     "it cannot be read here: findings have no lines");
}

/* ---- ports; slurm.conf(5) MpiParams ---- */

struct range {
    long low, high;
};

static bool overlap (struct range a, struct range b)
{
    return a.low <= b.high && b.low <= a.high;
}

static struct range ephemeral (const struct site *s)
{
    char *text =
        doctor_read (s->root, "/proc/sys/net/ipv4/ip_local_port_range");
    struct range r = { 32768, 60999 };

    if (text)
        sscanf (text, "%ld %ld", &r.low, &r.high);
    free (text);
    return r;
}

static void compare_range (struct site *s, const char *where, struct range r)
{
    struct range e = ephemeral (s);
    long from = e.low > PORTS_FROM + PORTS_WANTED ? PORTS_FROM : e.high + 1;
    long n = r.high - r.low + 1;
    size_t before = s->nfindings;

    if (overlap (r, e))
        site_report (s,
                     CHANGE,
                     where,
                     "ports=%ld-%ld: programs get ports from %ld-%ld by chance "
                     "(ip_local_port_range): take others, as ports=%ld-%ld",
                     r.low,
                     r.high,
                     e.low,
                     e.high,
                     from,
                     from + PORTS_WANTED - 1);
    if (n < PORTS_WANTED)
        site_report (
            s,
            HINT,
            where,
            "%ld ports: a step takes one more than it has tasks on a node, "
            "and waits if none are left: have %d",
            n,
            PORTS_WANTED);
    if (s->nfindings == before)
        site_report (s, FINE, where, "ports=%ld-%ld", r.low, r.high);
}

void doctor_ports (struct site *s)
{
    char text[DOCTOR_TEXT];
    const char *where = site_here (s, "MpiParams");
    const char *ports;
    struct range r;

    site_value (s, "MpiParams", text, sizeof (text), "");
    ports = strstr (text, "ports=");
    if (!*text)
        site_report (
            s,
            CHANGE,
            where,
            "no ports are reserved: MASTER_PORT is chosen by the job's "
            "number, and two jobs on a node may meet: set "
            "MpiParams=ports=%d-%d",
            PORTS_FROM,
            PORTS_FROM + PORTS_WANTED - 1);
    else if (!ports || sscanf (ports + 6, "%ld-%ld", &r.low, &r.high) != 2)
        site_report (
            s,
            BROKEN,
            where,
            "%s has no ports=LOW-HIGH: Slurm 22.05 then starts no step "
            "(\"Requires more ports than can be reserved\")",
            text);
    else
        compare_range (s, where, r);
}

/* ---- tasks, processes, cgroups ---- */

void doctor_task_plugin (struct site *s)
{
    bool affinity = site_has (s, "TaskPlugin", "affinity");
    bool cgroup = site_has (s, "TaskPlugin", "cgroup");

    if (affinity && cgroup)
        site_report (
            s, FINE, site_here (s, "TaskPlugin"), "affinity and cgroup");
    else
        site_report (s,
                     CHANGE,
                     site_here (s, "TaskPlugin"),
                     "%s is missing: jobs on a node take each other's %s: set "
                     "TaskPlugin=task/cgroup,task/affinity",
                     cgroup ? "task/affinity" : "task/cgroup",
                     cgroup ? "cores" : "cores, memory and GPUs");
}

void doctor_proctrack (struct site *s)
{
    site_expect (s,
                 "ProctrackType",
                 site_has (s, "ProctrackType", "cgroup"),
                 "proctrack/cgroup",
                 "processes that leave their session outlive the job (and hold "
                 "GPUs): set ProctrackType=proctrack/cgroup");
}

static bool is_yes (const struct conf *c, const char *key)
{
    const struct conf_line *l = conf_find (c, key);
    const char *value = l ? strchr (l->text, '=') : NULL;

    return value && strcasestr (value, "yes");
}

static void check_constraint (struct site *s, const char *key, const char *lost)
{
    const struct conf_line *l = conf_find (&s->cgroup, key);
    char where[SITE_WHERE] = "cgroup.conf";

    if (l)
        snprintf (where, sizeof (where), "%s:%d", l->file, l->line);
    if (is_yes (&s->cgroup, key))
        site_report (s, FINE, where, "%s=yes", key);
    else
        site_report (s, CHANGE, where, "%s: set %s=yes", lost, key);
}

/* cgroup.conf(5) */
void doctor_cgroup (struct site *s)
{
    check_constraint (s, "ConstrainCores", "a job can use all cores of a node");
    check_constraint (
        s, "ConstrainRAMSpace", "a job can take the memory of others");
    check_constraint (
        s, "ConstrainDevices", "a job can open the GPUs of others");
    if (is_yes (&s->cgroup, "ConstrainDevices"))
        site_report (
            s,
            HINT,
            "cgroup.conf",
            "--gpus-per-task and --gpu-bind hide the GPUs of the other "
            "ranks, and NVLink is lost: tell users --gpus-per-node, or from "
            "23.11.4 on SLURM_GRES_FLAGS=allow-task-sharing");
}

void doctor_select (struct site *s)
{
    site_expect (s,
                 "SelectType",
                 site_has (s, "SelectType", "cons_tres"),
                 "select/cons_tres",
                 "--gpus-per-node, --gpus-per-task and --cpus-per-gpu need "
                 "SelectType=select/cons_tres");
}

/* ---- GPUs; gres.conf(5) ---- */

static bool has_nodes_with_gpus (const struct site *s)
{
    for (size_t i = 0; i < s->slurm.n; i++)
        if (strcasestr (s->slurm.list[i].text, "Gres=gpu"))
            return true;
    return false;
}

/* Without Cores= and AutoDetect Slurm does not know what is near. */
static const struct conf_line *find_blind (const struct site *s)
{
    for (size_t i = 0; i < s->gres.n; i++) {
        const char *text = s->gres.list[i].text;
        if (strcasestr (text, "Name=gpu") && !strcasestr (text, "Cores=")
            && !strcasestr (text, "AutoDetect="))
            return &s->gres.list[i];
    }
    return NULL;
}

static bool is_detected (const struct site *s)
{
    for (size_t i = 0; i < s->gres.n; i++)
        if (strcasestr (s->gres.list[i].text, "AutoDetect=")
            && !strcasestr (s->gres.list[i].text, "AutoDetect=off"))
            return true;
    return false;
}

static void check_cores (struct site *s)
{
    const struct conf_line *blind = find_blind (s);
    char where[SITE_WHERE];

    if (is_detected (s))
        site_report (s, FINE, "gres.conf", "AutoDetect");
    else if (blind) {
        snprintf (where, sizeof (where), "%s:%d", blind->file, blind->line);
        site_report (s,
                     CHANGE,
                     where,
                     "Slurm does not know which cores are near the GPU: set "
                     "AutoDetect=nvml (rsmi for AMD), or Cores=");
    } else if (s->gres.n)
        site_report (s, FINE, "gres.conf", "each GPU has its cores");
    else
        site_report (
            s,
            HINT,
            "gres.conf",
            "not here: a host that reads none, or a node without GPUs; on "
            "nodes with GPUs have AutoDetect=nvml");
}

void doctor_gres (struct site *s)
{
    bool gpus = has_nodes_with_gpus (s) || s->gres.n;

    if (site_has (s, "GresTypes", "gpu"))
        check_cores (s);
    else
        site_report (
            s,
            gpus ? CHANGE : HINT,
            site_here (s, "GresTypes"),
            "Slurm gives no GPUs: set GresTypes=gpu, Gres=gpu:N of the "
            "nodes, and AutoDetect=nvml in gres.conf");
}

void doctor_tres (struct site *s)
{
    const char *where = site_here (s, "AccountingStorageTRES");

    if (!site_has (s, "GresTypes", "gpu"))
        return;
    if (site_has (s, "AccountingStorageTRES", "gres/gpu"))
        site_report (s, FINE, where, "gres/gpu is accounted");
    else if (site_has (s, "AccountingStorageType", "slurmdbd"))
        site_report (s,
                     CHANGE,
                     where,
                     "GPU hours are not accounted: set "
                     "AccountingStorageTRES=gres/gpu");
    else
        site_report (s, HINT, where, "no accounting, none of GPU hours either");
}

/* ---- what helps ---- */

void doctor_array (struct site *s)
{
    long n = site_number (s, "MaxArraySize");

    if (n >= 1001)
        site_report (s, FINE, site_here (s, "MaxArraySize"), "%ld", n);
    else
        site_report (s,
                     HINT,
                     site_here (s, "MaxArraySize"),
                     "%ld: dl run needs as many as it has workers",
                     n);
}

void doctor_prolog (struct site *s)
{
    site_expect (
        s,
        "PrologFlags",
        site_has (s, "PrologFlags", "Contain"),
        "Contain",
        "PrologFlags=Alloc,Contain runs the prolog on all nodes before "
        "the first step, and lets pam_slurm_adopt confine ssh");
}

void doctor_gather (struct site *s)
{
    site_expect (s,
                 "JobAcctGatherType",
                 site_has (s, "JobAcctGatherType", "cgroup")
                     || site_has (s, "JobAcctGatherType", "linux"),
                 "sstat and seff know the memory of a job",
                 "sstat and seff know nothing: set "
                 "JobAcctGatherType=jobacct_gather/cgroup");
}

void doctor_health (struct site *s)
{
    char text[DOCTOR_TEXT];

    if (*site_value (s, "HealthCheckProgram", text, sizeof (text), ""))
        site_report (s, FINE, site_here (s, "HealthCheckProgram"), "%s", text);
    else
        site_report (s,
                     HINT,
                     site_here (s, "HealthCheckProgram"),
                     "a node whose GPU has failed keeps taking jobs: set "
                     "HealthCheckProgram to what drains it");
}
