/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: check this host's Slurm and print what to change. */
#include "launcher/node/node.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/node/doctor.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/environment.h"
#include "runtime/rank/layout.h"

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

/* In a step of several tasks, each prefixes its lines with its node, and only rank 0
 * prints findings that need no change.
 */
static void print_findings (const struct site *s, const int *count)
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

static json_t *doctor_finding_json (const struct doctor_finding *f)
{
    return json_pack ("{s:s, s:s, s:s*, s:s*}", "check", f->check, "severity",
                      doctor_severity_names[f->severity], "where", f->where, "what", f->what);
}

static void dump_json (json_t *list)
{
    json_dumpf (list, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (list);
}

/* In a step, print one line per finding because srun forwards whole lines. */
static void print_findings_json (const struct site *s)
{
    const char *node = getenv ("SLURMD_NODENAME");
    bool step = node && getenv ("SLURM_STEP_NUM_TASKS");
    json_t *list = json_array ();

    for (size_t i = 0; i < s->nfindings; i++) {
        json_t *one = doctor_finding_json (&s->findings[i]);
        if (!step) {
            json_array_append_new (list, one);
            continue;
        }
        json_object_set_new (one, "node", json_string (node));
        json_dumpf (one, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar ('\n');
        json_decref (one);
    }
    if (step)
        json_decref (list);
    else
        dump_json (list);
}

static int conclude_doctor (const struct site *s, bool json)
{
    int count[DOCTOR_SEVERITIES] = { 0 };

    for (size_t i = 0; i < s->nfindings; i++)
        count[s->findings[i].severity]++;
    if (json)
        print_findings_json (s);
    else
        print_findings (s, count);
    return count[CHANGE] + count[BROKEN] ? EXIT_FAILED : EXIT_OK;
}

/* ---- many nodes ---- */

enum { NAMED = 8, LINE = 4096 };

/* A finding that one or more nodes report in the same words. */
struct shared_finding {
    struct doctor_finding f;
    size_t *nodes, n; /* of 'names' */
};

struct survey {
    char **names; /* nodes that answered */
    size_t nodes;
    struct shared_finding *list;
    size_t n;
    char *wanted; /* nodes given by the user; NULL: only their number is known */
    size_t nwanted;
};

static size_t find_node_name (const struct survey *v, const char *name)
{
    size_t i = 0;

    while (i < v->nodes && strcmp (v->names[i], name))
        i++;
    return i;
}

static size_t surveyed_node (struct survey *v, const char *name)
{
    size_t i = find_node_name (v, name);

    if (i == v->nodes) {
        XGROW (v->names, v->nodes);
        v->names[v->nodes++] = xstrdup (name);
    }
    return i;
}

static struct shared_finding *find_same_finding (struct survey *v, const struct doctor_finding *f)
{
    for (size_t i = 0; i < v->n; i++) {
        struct doctor_finding *other = &v->list[i].f;
        if (f->severity == other->severity && !strcmp (f->check, other->check)
            && !strcmp (f->where, other->where) && !strcmp (f->what, other->what))
            return &v->list[i];
    }
    XGROW (v->list, v->n);
    v->list[v->n] = (struct shared_finding){
        { xstrdup (f->check), f->severity, xstrdup (f->where), xstrdup (f->what) }, NULL, 0
    };
    return &v->list[v->n++];
}

static void add_shared_finding (struct survey *v, const char *node, const struct doctor_finding *f)
{
    size_t i = surveyed_node (v, node);
    struct shared_finding *same = find_same_finding (v, f);

    XGROW (same->nodes, same->n);
    same->nodes[same->n++] = i;
}

static void read_finding_line (struct survey *v, const char *line)
{
    json_t *o = json_loads (line, 0, NULL);
    struct doctor_finding f = { .where = "", .what = "" };
    const char *node, *severity;
    int k = 0;

    if (!o
        || json_unpack (o, "{s:s, s:s, s:s, s?s, s?s}", "node", &node, "check", &f.check,
                        "severity", &severity, "where", &f.where, "what", &f.what)
               < 0) {
        fputs (line, stderr); /* output of other programs on the node */
    } else {
        while (k < DOCTOR_SEVERITIES - 1 && strcmp (severity, doctor_severity_names[k]))
            k++;
        f.severity = (enum doctor_severity)k;
        add_shared_finding (v, node, &f);
    }
    json_decref (o);
}

static int count_host (void *arg, const char *host)
{
    (void)host;
    ++*(size_t *)arg;
    return 0;
}

/* Parse the options of srun that select nodes: "--nodes=3", "--nodelist=n[1-3]". */
static int read_step_words (struct survey *v, char **words)
{
    for (; *words; words++) {
        if (!strncmp (*words, "--nodelist=", 11)) {
            v->wanted = *words + 11;
            v->nwanted = 0;
            if (layout_each_host (v->wanted, count_host, &v->nwanted) < 0)
                return -1;
        } else if (!strncmp (*words, "--nodes=", 8) && !v->wanted) {
            v->nwanted = strtoul (*words + 8, NULL, 10);
        }
    }
    return 0;
}

static int start_srun (const struct survey *v, char **options, int out, pid_t *pid)
{
    static const char script[] = "\"$0\" doctor --json || [ $? = 1 ]";
    char path[PATH_MAX];
    char **words = NULL;

    own_program (path);
    slurm_node_step_words (options, v->wanted ? (long long)v->nwanted : 0, &words);
    strings_add (&words, "sh");
    strings_add (&words, "-c");
    strings_add (&words, script);
    strings_add (&words, path);
    setenv ("DL_DEFAULTS", "off", 1);
    *pid = subprocess_spawn (&(struct spawn){ .argv = words, .io = { -1, out, STDERR_FILENO } });
    strings_free (words);
    return *pid > 0 ? 0 : -1;
}

static int run_survey (struct survey *v, char **words)
{
    char *line = NULL;
    size_t size = 0;
    int out[2];
    pid_t pid = -1;
    FILE *from;

    if (pipe2 (out, O_CLOEXEC) < 0)
        return -1;
    from = fdopen (out[0], "r");
    if (!from || start_srun (v, words, out[1], &pid) < 0) {
        close (out[1]);
        if (from)
            fclose (from);
        else
            close (out[0]);
        return -1;
    }
    close (out[1]);
    while (getline (&line, &size, from) >= 0)
        read_finding_line (v, line);
    free (line);
    fclose (from);
    subprocess_wait (pid);
    return 0;
}

struct missing {
    const struct survey *v;
    char *text; /* has LINE bytes */
    size_t n;
};

static void name_one (char *text, size_t i, const char *name)
{
    size_t used = strlen (text);

    if (i < NAMED)
        snprintf (text + used, LINE - used, "%s%.200s", i ? ", " : "", name);
}

static int note_silent_node (void *arg, const char *host)
{
    struct missing *m = arg;

    if (find_node_name (m->v, host) == m->v->nodes)
        name_one (m->text, m->n++, host);
    return 0;
}

static void name_more (char *text, size_t n)
{
    size_t used = strlen (text);
    char more[AND_MORE_SIZE];

    snprintf (text + used, LINE - used, "%s", and_more (more, (long)n - NAMED));
}

/* Returns how many nodes did not answer. */
static size_t count_silent_nodes (const struct survey *v, char text[LINE])
{
    struct missing m = { v, text, 0 };

    *text = '\0';
    if (!v->wanted) {
        size_t n = v->nwanted > v->nodes ? v->nwanted - v->nodes : 0;
        snprintf (text, LINE, "%zu of %zu nodes", n, v->nwanted);
        return n;
    }
    layout_each_host (v->wanted, note_silent_node, &m);
    name_more (text, m.n);
    return m.n;
}

static void name_nodes (const struct survey *v, const struct shared_finding *same, char text[LINE])
{
    *text = '\0';
    if (same->n == v->nodes && v->nodes > 1) {
        snprintf (text, LINE, "all %zu nodes", v->nodes);
        return;
    }
    for (size_t i = 0; i < same->n && i < NAMED; i++)
        name_one (text, i, v->names[same->nodes[i]]);
    name_more (text, same->n);
}

static void print_survey (const struct survey *v, const int *count)
{
    char who[LINE];
    size_t missing = count_silent_nodes (v, who);

    if (missing)
        printf ("%-6s  %s: no answer: see what srun printed\n", doctor_severity_names[BROKEN], who);
    for (int severity = BROKEN; severity >= HINT; severity--)
        for (size_t i = 0; i < v->n; i++) {
            const struct doctor_finding *f = &v->list[i].f;
            if ((int)f->severity != severity)
                continue;
            name_nodes (v, &v->list[i], who);
            printf ("%-6s  %s: %s%s%s: %s\n", doctor_severity_names[severity], who, f->where,
                    *f->where ? ": " : "", f->check, f->what);
        }
    printf ("\n%zu nodes: %d to change, %d hints\n", v->nodes, count[CHANGE] + count[BROKEN],
            count[HINT]);
}

static void survey_json (const struct survey *v)
{
    json_t *list = json_array ();
    char who[LINE];

    if (count_silent_nodes (v, who))
        json_array_append_new (list, json_pack ("{s:s, s:s, s:s, s:s}", "check", "a step",
                                                "severity", doctor_severity_names[BROKEN], "where",
                                                "", "what", "no answer"));
    for (size_t i = 0; i < v->n; i++) {
        json_t *one = doctor_finding_json (&v->list[i].f);
        json_t *nodes = json_array ();
        for (size_t k = 0; k < v->list[i].n; k++)
            json_array_append_new (nodes, json_string (v->names[v->list[i].nodes[k]]));
        json_object_set_new (one, "nodes", nodes);
        json_array_append_new (list, one);
    }
    dump_json (list);
}

static void survey_free (struct survey *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free ((char *)v->list[i].f.check);
        free (v->list[i].f.where);
        free (v->list[i].f.what);
        free (v->list[i].nodes);
    }
    for (size_t i = 0; i < v->nodes; i++)
        free (v->names[i]);
    free (v->list);
    free (v->names);
}

static int look_at_nodes (const struct doctor_options *opt)
{
    struct survey v = { 0 };
    int count[DOCTOR_SEVERITIES] = { 0 };
    char who[LINE];
    int status = EXIT_OK;

    if (read_step_words (&v, opt->srun_options) < 0) {
        complain ("doctor: --nodelist=%s: not a list of hosts as Slurm writes it", v.wanted);
        return EXIT_USAGE;
    }
    if (run_survey (&v, opt->srun_options) < 0) {
        complain ("doctor: srun: %s", strerror (errno));
        return EXIT_IO;
    }
    for (size_t i = 0; i < v.n; i++)
        count[v.list[i].f.severity]++;
    if (v.nodes == 0) {
        complain ("doctor: no node answered: see what srun printed");
        status = EXIT_FAILED;
    } else {
        if (opt->json)
            survey_json (&v);
        else
            print_survey (&v, count);
        if (count[CHANGE] + count[BROKEN] || count_silent_nodes (&v, who))
            status = EXIT_FAILED;
    }
    survey_free (&v);
    return status;
}

int cmd_doctor (const struct command_line *line)
{
    const struct doctor_options *opt = line->options;
    struct site *s;
    int status;

    if (opt->srun_options)
        return look_at_nodes (opt);
    if (opt->root && access (opt->root, X_OK) < 0) {
        complain ("--root: %s: %s", opt->root, strerror (errno));
        return EXIT_NOT_FOUND;
    }
    s = xcalloc (1, sizeof (*s));
    s->root = opt->root ? opt->root : "";
    s->run = opt->run;
    if (opt->config && !(s->config = doctor_read ("", opt->config))) {
        complain ("doctor: %s: %s", opt->config, strerror (errno));
        site_free (s);
        return EXIT_NOT_FOUND;
    }
    site_read (s);
    for (s->check = checks; s->check->name; s->check++)
        if (s->config || !s->check->slurm)
            s->check->run (s);
    status = conclude_doctor (s, opt->json);
    site_free (s);
    return status;
}
