/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check Slurm's configuration. */
#include "launcher/node/doctor.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "runtime/rank/layout.h"
#include "runtime/rank/slurmconf.h"

/* ---- the end of jobs ---- */

enum { KILL_WAIT = 30, GRACE = 30, UNKILLABLE = 120 }; /* seconds */

void doctor_kill (struct site *s)
{
    long wait = site_number (s, "KillWait");

    if (wait >= KILL_WAIT)
        site_report (s, FINE, site_here (s, "KillWait"), "%ld s", wait);
    else
        site_report (
            s, CHANGE, site_here (s, "KillWait"),
            "%ld s from SIGTERM to SIGKILL is too short for a checkpoint: set KillWait=%d or more",
            wait, KILL_WAIT);
}

struct partition_defaults {
    long grace, tier; /* of PartitionName=DEFAULT */
    long highest;     /* highest tier of any partition */
};

static long number_in_line (const char *line, const char *key, long otherwise)
{
    char text[64];

    return slurmconf_value (line, key, text, sizeof (text)) ? atol (text) : otherwise;
}

static struct partition_defaults read_tiers (const struct site *s)
{
    struct partition_defaults d = { 0, 1, 0 };

    for (size_t i = 0; i < s->slurm.n; i++) {
        const char *line = s->slurm.list[i].text;
        long tier = number_in_line (line, "PriorityTier", d.tier);
        if (!strncasecmp (line, "PartitionName=DEFAULT", 21)) {
            d.tier = tier;
            d.grace = number_in_line (line, "GraceTime", d.grace);
        } else if (!strncasecmp (line, "PartitionName=", 14) && tier > d.highest)
            d.highest = tier;
    }
    return d;
}

/* GraceTime of a partition, or -1 if its jobs cannot be preempted. */
static long grace_of (const struct partition_defaults *d, const char *line)
{
    char mode[64];

    if (strncasecmp (line, "PartitionName=", 14) || !strncasecmp (line, "PartitionName=DEFAULT", 21)
        || number_in_line (line, "PriorityTier", d->tier) >= d->highest
        || (slurmconf_value (line, "PreemptMode", mode, sizeof (mode))
            && !strcasecmp (mode, "OFF")))
        return -1;
    return number_in_line (line, "GraceTime", d->grace);
}

/* Check GraceTime (slurm.conf(5)): the time a preempted job gets before KillWait starts. */
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
        site_report (s, CHANGE, where,
                     "%ld s is too short for a checkpoint: set GraceTime=%d or more", grace, GRACE);
    }
    if (s->nfindings == before)
        site_report (s, FINE, s->conf_path, "no partition has less than %d s", GRACE);
}

void doctor_requeue (struct site *s)
{
    site_expect (
        s, "JobRequeue", site_number (s, "JobRequeue") == 1, "jobs are requeued",
        "Slurm does not requeue jobs after preemption or a node failure: set JobRequeue=1");
}

/* A process in a slow driver call takes time to die, and Slurm then drains its node. */
void doctor_unkillable (struct site *s)
{
    long timeout = site_number (s, "UnkillableStepTimeout");
    long message = site_number (s, "MessageTimeout");
    long wanted = 5 * message > UNKILLABLE ? 5 * message : UNKILLABLE;

    if (timeout >= wanted)
        site_report (s, FINE, site_here (s, "UnkillableStepTimeout"), "%ld s", timeout);
    else
        site_report (s, CHANGE, site_here (s, "UnkillableStepTimeout"),
                     "Slurm drains a node if GPU processes take more than %ld s to end: set "
                     "UnkillableStepTimeout=%ld or more",
                     timeout, wanted);
}

/* PropagateResourceLimits (slurm.conf(5)) is a comma-separated list, ALL (the default) or NONE. */
void doctor_limits (struct site *s)
{
    bool goes = site_has (s, "PropagateResourceLimits", "ALL")
                || site_has (s, "PropagateResourceLimits", "MEMLOCK");

    site_expect (s, "PropagateResourceLimits",
                 !goes || site_has (s, "PropagateResourceLimitsExcept", "MEMLOCK"),
                 "jobs get slurmd's limit of locked memory",
                 "jobs get the login node's limit of locked memory, so RDMA fails: set "
                 "PropagateResourceLimitsExcept=MEMLOCK");
}

/* ---- other parameters ---- */

enum {
    PORTS_WANTED = 1000,
    PORTS_FROM = 20000, /* start of the range that we suggest */
};

/* ---- versions ---- */

/* Find the line "slurm-wlm 22.05.8" among lines that plugins print. */
static int read_version (const char *said, char number[32])
{
    for (; *said; said += strcspn (said, "\n"), said += *said == '\n')
        if (sscanf (said, "slurm%*[^0-9\n]%31s", number) == 1)
            return 0;
    return -1;
}

static void ask_srun (struct site *s)
{
    char number[32];
    char text[64];
    int status;

    setenv ("DL_DOCTOR", "1", 1); /* makes the plugin report all its arguments */
    status = slurm_srun_output ("--version", s->said, sizeof (s->said));
    unsetenv ("DL_DOCTOR");
    site_value (s, "SLURM_VERSION", text, sizeof (text), "");
    if (status != 0 || read_version (s->said, number) < 0)
        site_report (s, BROKEN, "srun", "cannot run it (status %d): %.200s", status,
                     *s->said ? s->said : "without a word");
    else if (s->alone)
        site_report (s, FINE, "srun", "%s", strcpy (s->version, number));
    else if (strncmp (number, text, 5))
        site_report (s, CHANGE, "srun",
                     "this host has version %s, and the controller %s: upgrade this host", number,
                     text);
    else
        site_report (s, FINE, "srun", "%s, as the controller", number);
}

void doctor_slurm (struct site *s)
{
    char text[64];

    if (!s->config || s->alone)
        site_report (s, BROKEN, "scontrol show config", "%s: %s", s->why,
                     s->alone ? "using slurm.conf and Slurm's defaults instead"
                              : "slurm.conf was not checked");
    if (!s->config)
        return;
    if (!*s->root)
        ask_srun (s);
    else
        site_report (s, FINE, s->conf_path, "Slurm %s",
                     site_value (s, "SLURM_VERSION", text, sizeof (text), "?"));
    if (!s->slurm.n)
        site_report (s, HINT, s->conf_path,
                     "cannot read it here, so findings have no line numbers");
}

/* ---- ports; slurm.conf(5) MpiParams ---- */

struct range {
    long low, high;
};

static bool ranges_overlap (struct range a, struct range b)
{
    return a.low <= b.high && b.low <= a.high;
}

static struct range ephemeral_range (const struct site *s)
{
    char *text = doctor_read (s->root, "/proc/sys/net/ipv4/ip_local_port_range");
    struct range r = { 32768, 60999 };

    if (text)
        sscanf (text, "%ld %ld", &r.low, &r.high);
    free (text);
    return r;
}

/* Slurm's own daemons occupy their ports before any step starts. */
static void check_daemon (struct site *s, const char *where, struct range r, const char *key,
                          long otherwise)
{
    long port = site_number (s, key);

    if (port < 0)
        port = otherwise;
    if (port >= r.low && port <= r.high)
        site_report (s, CHANGE, where,
                     "ports=%ld-%ld includes %s=%ld: a step that gets this port cannot start: use "
                     "other ports",
                     r.low, r.high, key, port);
}

static void compare_range (struct site *s, const char *where, struct range r)
{
    struct range e = ephemeral_range (s);
    long from = e.low > PORTS_FROM + PORTS_WANTED ? PORTS_FROM : e.high + 1;
    long n = r.high - r.low + 1;
    size_t before = s->nfindings;

    if (ranges_overlap (r, e))
        site_report (s, CHANGE, where,
                     "ports=%ld-%ld overlaps %ld-%ld, from which programs get random ports "
                     "(ip_local_port_range): use others, such as ports=%ld-%ld",
                     r.low, r.high, e.low, e.high, from, from + PORTS_WANTED - 1);
    check_daemon (s, where, r, "SlurmctldPort", 6817);
    check_daemon (s, where, r, "SlurmdPort", 6818);
    if (n < PORTS_WANTED)
        site_report (s, HINT, where,
                     "only %ld ports: a step takes one more than it has tasks on a node, and waits "
                     "if none are left: reserve %d",
                     n, PORTS_WANTED);
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
        site_report (s, CHANGE, where,
                     "Slurm reserves no ports, so MASTER_PORT depends on the job's number, and two "
                     "jobs on a node may collide: set MpiParams=ports=%d-%d",
                     PORTS_FROM, PORTS_FROM + PORTS_WANTED - 1);
    else if (!ports || sscanf (ports + 6, "%ld-%ld", &r.low, &r.high) != 2)
        site_report (s, BROKEN, where,
                     "%s has no ports=LOW-HIGH, so Slurm 22.05 cannot start steps (\"Requires more "
                     "ports than can be reserved\")",
                     text);
    else
        compare_range (s, where, r);
}

/* Check SrunPortRange (slurm.conf(5)), which srun and the collector of --dl-check use. */
void doctor_srun_ports (struct site *s)
{
    char text[DOCTOR_TEXT];
    const char *where = site_here (s, "SrunPortRange");
    const char *ports;
    struct range srun = { 0, 0 };
    struct range steps = { 0, 0 };

    sscanf (site_value (s, "SrunPortRange", text, sizeof (text), "0-0"), "%ld-%ld", &srun.low,
            &srun.high);
    if (srun.high == 0) {
        site_report (s, HINT, where,
                     "srun and --dl-check listen on any port: if there is a firewall between login "
                     "and compute nodes, set SrunPortRange=60001-63000 and open it");
        return;
    }
    site_value (s, "MpiParams", text, sizeof (text), "");
    ports = strstr (text, "ports=");
    if (ports && sscanf (ports + 6, "%ld-%ld", &steps.low, &steps.high) == 2
        && ranges_overlap (srun, steps))
        site_report (
            s, CHANGE, where,
            "%ld-%ld overlaps the ports of MpiParams, so srun takes ports from steps: use others",
            srun.low, srun.high);
    else
        site_report (s, FINE, where, "%ld-%ld", srun.low, srun.high);
}

/* ---- tasks, processes, cgroups ---- */

void doctor_task_plugin (struct site *s)
{
    bool affinity = site_has (s, "TaskPlugin", "affinity");
    bool cgroup = site_has (s, "TaskPlugin", "cgroup");

    if (affinity && cgroup)
        site_report (s, FINE, site_here (s, "TaskPlugin"), "affinity and cgroup");
    else
        site_report (s, CHANGE, site_here (s, "TaskPlugin"),
                     "%s is missing, so jobs on a node can use each other's %s: set "
                     "TaskPlugin=task/cgroup,task/affinity",
                     cgroup ? "task/affinity" : "task/cgroup",
                     cgroup ? "cores" : "cores, memory and GPUs");
}

void doctor_proctrack (struct site *s)
{
    site_expect (s, "ProctrackType", site_has (s, "ProctrackType", "cgroup"), "proctrack/cgroup",
                 "processes that leave their session outlive the job and keep its GPUs: set "
                 "ProctrackType=proctrack/cgroup");
}

static bool conf_says_yes (const struct conf *c, const char *key)
{
    const struct conf_line *l = conf_find (c, key);
    const char *value = l ? strchr (l->text, '=') : NULL;

    return value && strcasestr (value, "yes");
}

static void expect_constraint (struct site *s, const char *key, const char *lost)
{
    const struct conf_line *l = conf_find (&s->cgroup, key);
    char where[SITE_WHERE] = "cgroup.conf";

    if (l)
        snprintf (where, sizeof (where), "%s:%d", l->file, l->line);
    if (conf_says_yes (&s->cgroup, key))
        site_report (s, FINE, where, "%s=yes", key);
    else
        site_report (s, CHANGE, where, "%s: set %s=yes", lost, key);
}

/* Check that Slurm limits memory.  Without _Memory in SelectTypeParameters, it does not allocate
 * any.
 */
static void expect_memory_limit (struct site *s)
{
    const struct conf_line *l = conf_find (&s->cgroup, "AllowedRAMSpace");
    char where[SITE_WHERE];
    char text[DOCTOR_TEXT];

    if (!conf_says_yes (&s->cgroup, "ConstrainRAMSpace"))
        return;
    if (l && atof (l->text + strcspn (l->text, "=") + 1) < 100) {
        snprintf (where, sizeof (where), "%s:%d", l->file, l->line);
        site_report (
            s, CHANGE, where,
            "a job is killed before it uses all memory it requested: set AllowedRAMSpace=100");
    }
    site_value (s, "SelectTypeParameters", text, sizeof (text), "");
    if (*text && !strcasestr (text, "_MEMORY"))
        site_report (s, CHANGE, site_here (s, "SelectTypeParameters"),
                     "%s does not allocate memory, so ConstrainRAMSpace does not limit it: set "
                     "SelectTypeParameters=CR_Core_Memory",
                     text);
}

/* cgroup.conf(5) */
void doctor_cgroup (struct site *s)
{
    expect_constraint (s, "ConstrainCores", "a job can use all cores of a node");
    expect_constraint (s, "ConstrainRAMSpace", "a job can use the memory of others");
    expect_constraint (s, "ConstrainDevices", "a job can use the GPUs of others");
    expect_memory_limit (s);
    if (conf_says_yes (&s->cgroup, "ConstrainDevices"))
        site_report (
            s, HINT, "cgroup.conf",
            "--gpus-per-task and --gpu-bind hide the GPUs of other ranks, which disables NVLink: "
            "recommend --gpus-per-node or, since 23.11.4, SLURM_GRES_FLAGS=allow-task-sharing");
}

void doctor_select (struct site *s)
{
    site_expect (s, "SelectType", site_has (s, "SelectType", "cons_tres"), "select/cons_tres",
                 "--gpus-per-node, --gpus-per-task and --cpus-per-gpu need "
                 "SelectType=select/cons_tres");
}

/* ---- GPUs; gres.conf(5) ---- */

/* Number of GPUs of each node in a line. */
static long gres_gpus_in_line (const char *line)
{
    char gres[DOCTOR_TEXT];

    return !strncasecmp (line, "NodeName=", 9)
                   && slurmconf_value (line, "Gres", gres, sizeof (gres))
               ? slurmconf_gpus (gres)
               : 0;
}

static bool has_nodes_with_gpus (const struct site *s)
{
    for (size_t i = 0; i < s->slurm.n; i++)
        if (gres_gpus_in_line (s->slurm.list[i].text) > 0)
            return true;
    return false;
}

/* Find a line about GPUs that has neither AutoDetect nor a word beginning with 'word'. */
static const struct conf_line *find_without (const struct site *s, const char *word)
{
    for (size_t i = 0; i < s->gres.n; i++) {
        const char *text = s->gres.list[i].text;
        if (strcasestr (text, "Name=gpu") && !strcasestr (text, word)
            && !strcasestr (text, "AutoDetect="))
            return &s->gres.list[i];
    }
    return NULL;
}

/* Whether all nodes use AutoDetect: a line without NodeName sets it. */
static bool is_detected (const struct site *s)
{
    for (size_t i = 0; i < s->gres.n; i++)
        if (strcasestr (s->gres.list[i].text, "AutoDetect=")
            && !strcasestr (s->gres.list[i].text, "AutoDetect=off")
            && !strcasestr (s->gres.list[i].text, "NodeName="))
            return true;
    return false;
}

static int is_this_host (void *arg, const char *host)
{
    return !strcasecmp (arg, host);
}

static int count_file (void *arg, const char *name)
{
    (void)name;
    ++*(long *)arg;
    return 0;
}

struct node_gpus {
    struct site *s;
    long wanted; /* number in slurm.conf */
};

/* Number of device files that a line of gres.conf lists for a host.  Returns -1 if the line is not
 * for that host, or LONG_MAX if it detects or counts the GPUs in another way.
 */
static long gres_files_for_host (const char *line, char *host)
{
    char text[DOCTOR_TEXT];
    long n = 0;

    if (slurmconf_value (line, "NodeName", text, sizeof (text))
        && layout_each_host (text, is_this_host, host) != 1)
        return -1;
    if (strcasestr (line, "AutoDetect=") && !strcasestr (line, "AutoDetect=off"))
        return LONG_MAX;
    if (!strcasestr (line, "Name=gpu"))
        return -1;
    if (!slurmconf_value (line, "File", text, sizeof (text)))
        return LONG_MAX;
    layout_each_host (text, count_file, &n);
    return n;
}

/* Returns 1, which ends the loop, if gres.conf disagrees about the host. */
static int compare_node (void *arg, const char *host)
{
    const struct node_gpus *g = arg;
    struct site *s = g->s;
    char name[256];
    long files = -1;

    snprintf (name, sizeof (name), "%s", host);
    for (size_t i = 0; i < s->gres.n && files < LONG_MAX; i++) {
        long n = gres_files_for_host (s->gres.list[i].text, name);
        if (n >= 0)
            files = n == LONG_MAX ? n : (files < 0 ? 0 : files) + n;
    }
    if (files == g->wanted || files == LONG_MAX)
        return 0;
    if (files < 0)
        site_report (s, CHANGE, "gres.conf",
                     "%s has GPUs in slurm.conf but no line here, so Slurm drains it: set "
                     "AutoDetect=nvml in a line without NodeName=",
                     name);
    else
        site_report (s, CHANGE, "gres.conf",
                     "%s has %ld GPUs in slurm.conf but %ld files here: Slurm uses the smaller "
                     "number, or drains it: make them equal",
                     name, g->wanted, files);
    return 1;
}

static void check_nodes (struct site *s)
{
    char names[DOCTOR_TEXT];

    if (is_detected (s) || !s->gres.n)
        return;
    for (size_t i = 0; i < s->slurm.n; i++) {
        const char *line = s->slurm.list[i].text;
        struct node_gpus g = { s, gres_gpus_in_line (line) };
        if (g.wanted > 0 && slurmconf_value (line, "NodeName", names, sizeof (names))
            && layout_each_host (names, compare_node, &g) == 1)
            return;
    }
}

static void check_cores (struct site *s)
{
    const struct conf_line *nothing = find_without (s, "File");
    const struct conf_line *blind = find_without (s, "Cores=");
    char where[SITE_WHERE];

    if (is_detected (s))
        site_report (s, FINE, "gres.conf", "AutoDetect");
    else if (nothing) {
        snprintf (where, sizeof (where), "%s:%d", nothing->file, nothing->line);
        site_report (
            s, CHANGE, where,
            "no File=, so Slurm allocates no device and does not set CUDA_VISIBLE_DEVICES: set "
            "AutoDetect=nvml (rsmi for AMD), or File=/dev/nvidia[0-7]");
    } else if (blind) {
        snprintf (where, sizeof (where), "%s:%d", blind->file, blind->line);
        site_report (s, CHANGE, where,
                     "Slurm does not know which cores are near the GPU: set "
                     "AutoDetect=nvml (rsmi for AMD), or Cores=");
    } else if (s->gres.n)
        site_report (s, FINE, "gres.conf", "each GPU has its cores");
    else
        site_report (
            s, HINT, "gres.conf",
            "not found: fine on a host without GPUs; nodes with GPUs need AutoDetect=nvml");
}

void doctor_gres (struct site *s)
{
    bool gpus = has_nodes_with_gpus (s) || s->gres.n;

    if (site_has (s, "GresTypes", "gpu")) {
        check_cores (s);
        check_nodes (s);
        if (s->slurm.n && !has_nodes_with_gpus (s) && !conf_find (&s->slurm, "MaxNodeCount"))
            site_report (s, CHANGE, site_here (s, "NodeName"),
                         "no node has GPUs, so Slurm rejects jobs that request them: set "
                         "Gres=gpu:N for the nodes");
    } else
        site_report (s, gpus ? CHANGE : HINT, site_here (s, "GresTypes"),
                     "Slurm cannot allocate GPUs: set GresTypes=gpu, Gres=gpu:N for the nodes, and "
                     "AutoDetect=nvml in gres.conf");
}

void doctor_tres (struct site *s)
{
    const char *where = site_here (s, "AccountingStorageTRES");

    if (!site_has (s, "GresTypes", "gpu"))
        return;
    if (site_has (s, "AccountingStorageTRES", "gres/gpu"))
        site_report (s, FINE, where, "gres/gpu is accounted");
    else if (site_has (s, "AccountingStorageType", "slurmdbd"))
        site_report (s, CHANGE, where,
                     "Slurm does not account GPU hours: set AccountingStorageTRES=gres/gpu");
    else
        site_report (s, HINT, where, "Slurm accounts nothing, not even GPU hours");
}

/* ---- values that no site wants ---- */

/* clang-format off */
static const struct {
    const char *key, *word, *advice;
    enum doctor_severity severity;
} config_values[] = {
    { "AuthType", "none", "anyone can impersonate any user, even root: set AuthType=auth/munge", CHANGE },
    { "PreemptMode", "SUSPEND", "a suspended job keeps its GPU memory, which the next job then lacks: set PreemptMode=REQUEUE", CHANGE },
    { "PreemptMode", "CANCEL", "Slurm does not requeue preempted jobs: set PreemptMode=REQUEUE", HINT },
    { "SelectTypeParameters", "CR_CPU", "two jobs can get the hyperthreads of one core: set SelectTypeParameters=CR_Core_Memory", CHANGE },
};
static const struct {
    const char *key, *advice;
    long least;
    enum doctor_severity severity;
} bounds[] = {
    { "MessageTimeout", "s are short for a busy controller: srun and steps fail: set MessageTimeout=10 or more", 10, CHANGE },
    { "MaxTasksPerNode", "tasks on a node are few: srun refuses more ranks: set MaxTasksPerNode=512", 64, CHANGE },
};
static const char *const programs[] = {
    "TaskProlog", "TaskEpilog", "SrunProlog", "SrunEpilog", "HealthCheckProgram"
};
/* clang-format on */

/* A copy of a host's files may lack some directories. */
static void expect_program (struct site *s, const char *key)
{
    char path[DOCTOR_TEXT];
    char full[DOCTOR_TEXT + PATH_MAX];

    site_value (s, key, path, sizeof (path), "");
    if (*path != '/')
        return;
    snprintf (full, sizeof (full), "%s%s", s->root, path);
    if (access (full, X_OK) == 0)
        return;
    *strrchr (full, '/') = '\0';
    if (access (full, F_OK) == 0)
        site_report (s, CHANGE, site_here (s, key),
                     "%s=%s: no such program, so it fails or is skipped on each node", key, path);
}

/* Do not complain on a host that has no MPI plugins at all, such as a login node. */
static void check_mpi (struct site *s)
{
    char name[64];
    char file[80];
    char path[PATH_MAX];
    char full[2 * PATH_MAX];
    glob_t g;

    site_value (s, "MpiDefault", name, sizeof (name), "none");
    if (!strcmp (name, "none"))
        return;
    snprintf (file, sizeof (file), "mpi_%s.so", name);
    site_plugin_path (s, file, path);
    snprintf (full, sizeof (full), "%s%s", s->root, path);
    if (access (full, F_OK) == 0)
        return;
    site_plugin_path (s, "mpi_*.so", path);
    snprintf (full, sizeof (full), "%s%s", s->root, path);
    if (glob (full, 0, NULL, &g) == 0) {
        site_report (s, CHANGE, site_here (s, "MpiDefault"),
                     "%s: no such plugin, so srun without --mpi fails: see srun --mpi=list", name);
        globfree (&g);
    }
}

/* job_container.conf(5) */
static void expect_container_settings (struct site *s)
{
    if (!site_has (s, "JobContainerType", "tmpfs"))
        return;
    if (site_has (s, "PrologFlags", "Contain"))
        site_report (s, HINT, site_here (s, "JobContainerType"),
                     "each job has its own /tmp and /dev/shm, which Slurm removes at its end: keep "
                     "results elsewhere");
    else
        site_report (s, CHANGE, site_here (s, "JobContainerType"),
                     "job_container/tmpfs needs PrologFlags=Contain: set it");
}

void doctor_values (struct site *s)
{
    for (size_t i = 0; i < sizeof (config_values) / sizeof (*config_values); i++)
        if (site_has (s, config_values[i].key, config_values[i].word))
            site_report (s, config_values[i].severity, site_here (s, config_values[i].key),
                         "%s: %s", config_values[i].key, config_values[i].advice);
    for (size_t i = 0; i < sizeof (bounds) / sizeof (*bounds); i++) {
        long n = site_number (s, bounds[i].key);
        if (n >= 0 && n < bounds[i].least)
            site_report (s, bounds[i].severity, site_here (s, bounds[i].key), "%ld %s", n,
                         bounds[i].advice);
    }
    for (size_t i = 0; i < sizeof (programs) / sizeof (*programs); i++)
        expect_program (s, programs[i]);
    expect_container_settings (s);
    check_mpi (s);
}

/* ---- hints ---- */

void doctor_array (struct site *s)
{
    long n = site_number (s, "MaxArraySize");

    if (n >= 1001)
        site_report (s, FINE, site_here (s, "MaxArraySize"), "%ld", n);
    else
        site_report (s, HINT, site_here (s, "MaxArraySize"),
                     "%ld: dl run needs one task per worker", n);
}

void doctor_prolog (struct site *s)
{
    site_expect (s, "PrologFlags", site_has (s, "PrologFlags", "Contain"), "Contain",
                 "PrologFlags=Alloc,Contain runs the prolog on all nodes before "
                 "the first step, and lets pam_slurm_adopt confine ssh");
}

void doctor_gather (struct site *s)
{
    site_expect (s, "JobAcctGatherType",
                 site_has (s, "JobAcctGatherType", "cgroup")
                     || site_has (s, "JobAcctGatherType", "linux"),
                 "sstat and seff report the memory of a job",
                 "sstat and seff have no data: set JobAcctGatherType=jobacct_gather/cgroup");
}

void doctor_health (struct site *s)
{
    char text[DOCTOR_TEXT];

    if (*site_value (s, "HealthCheckProgram", text, sizeof (text), ""))
        site_report (s, FINE, site_here (s, "HealthCheckProgram"), "%s", text);
    else
        site_report (s, HINT, site_here (s, "HealthCheckProgram"),
                     "a node whose GPU has failed keeps taking jobs: set HealthCheckProgram to a "
                     "program that drains it");
}
