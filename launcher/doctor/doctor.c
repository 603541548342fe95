/* SPDX-License-Identifier: Apache-2.0 */
/* dl doctor: look at this host's Slurm and say what to change. */
#include "launcher/doctor/doctor.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/say.h"
#include "launcher/sys/settings.h"
#include "launcher/sys/subprocess.h"

enum { CONFIG_SIZE = 256 * 1024, PATIENCE = 20 };

const char *const grade_names[] = { "ok", "hint", "change", "broken" };

/* clang-format off */
const struct check doctor_checks[] = {
    { "slurm",            check_slurm,            false, BROKEN },
    { "plugstack",        check_plugstack,        true,  BROKEN },
    { "plugin line",      check_plugin_line,      true,  BROKEN },
    { "plugin file",      check_plugin_file,      true,  BROKEN },
    { "plugin release",   check_plugin_release,   true,  BROKEN },
    { "plugin arguments", check_plugin_arguments, true,  CHANGE },
    { "plugin order",     check_order,            true,  CHANGE },
    { "command dl",       check_command,          true,  CHANGE },
    { "profiles",         check_profiles,         true,  CHANGE },
    { "MpiParams",        check_ports,            true,  BROKEN },
    { "TaskPlugin",       check_task_plugin,      true,  CHANGE },
    { "ProctrackType",    check_proctrack,        true,  CHANGE },
    { "cgroup.conf",      check_cgroup,           true,  CHANGE },
    { "SelectType",       check_select,           true,  CHANGE },
    { "gres.conf",        check_gres,             true,  CHANGE },
    { "AccountingStorageTRES", check_tres,        true,  CHANGE },
    { "KillWait",         check_kill,             true,  CHANGE },
    { "GraceTime",        check_preemption,       true,  CHANGE },
    { "JobRequeue",       check_requeue,          true,  CHANGE },
    { "MaxArraySize",     check_array,            true,  HINT },
    { "UnkillableStepTimeout", check_unkillable,  true,  CHANGE },
    { "PropagateResourceLimits", check_limits,    true,  CHANGE },
    { "PrologFlags",      check_prolog,           true,  HINT },
    { "JobAcctGather",    check_gather,           true,  HINT },
    { "HealthCheckProgram", check_health,         true,  HINT },
    { "GPUs",             check_host_gpus,             false, CHANGE },
    { "nvidia_peermem",   check_peermem,          false, HINT },
    { "locked memory",    check_memlock,          false, CHANGE },
    { "open files",       check_nofile,           false, CHANGE },
    { "shared memory",    check_shm,              false, CHANGE },
    { "RemoveIPC",        check_remove_ipc,       false, HINT },
    { "host names",       check_hosts,            true,  CHANGE },
    { "a step",           check_run,              true,  BROKEN },
    { NULL },
};
/* clang-format on */

/* ---- findings ---- */

void found (struct site *s,
            enum severity severity,
            const char *where,
            const char *fmt,
            ...)
{
    struct finding *more = realloc (s->findings, (s->n + 1) * sizeof (*more));
    struct finding *f;
    va_list ap;

    if (!more)
        return;
    s->findings = more;
    f = &more[s->n++];
    *f = (struct finding){ s->check->name, severity, strdup (where), NULL };
    va_start (ap, fmt);
    if (vasprintf (&f->what, fmt, ap) < 0)
        f->what = NULL;
    va_end (ap);
}

/* ---- what is known ---- */

/* One question to the controller, by hand; never from a job. */
static void ask_slurm (struct site *s)
{
    struct command c = { .timeout = PATIENCE };
    int status;

    s->config = malloc (CONFIG_SIZE);
    if (!s->config)
        return;
    command_add (&c, "scontrol", NULL);
    command_add (&c, "show", NULL);
    command_add (&c, "config", NULL);
    status = command_run (&c, NULL, s->config, CONFIG_SIZE);
    command_free (&c);
    if (status == 0 && strstr (s->config, "SLURM_VERSION"))
        return;
    s->config[strcspn (s->config, "\n")] = '\0';
    snprintf (s->why,
              sizeof (s->why),
              "%.400s",
              *s->config ? s->config : "no answer from slurmctld");
    free (s->config);
    s->config = NULL;
}

/* Beside slurm.conf, as Slurm finds it. */
static void read_beside (struct site *s, struct conf *c, const char *name)
{
    char path[PATH_MAX + 32];
    const char *slash = strrchr (s->conf_path, '/');

    snprintf (path,
              sizeof (path),
              "%.*s/%s",
              slash ? (int)(slash - s->conf_path) : 0,
              s->conf_path,
              name);
    conf_read (c, s->root, path);
}

static void find_stack (struct site *s)
{
    char fallback[PATH_MAX + 32];
    const char *slash = strrchr (s->conf_path, '/');

    snprintf (fallback,
              sizeof (fallback),
              "%.*s/plugstack.conf",
              slash ? (int)(slash - s->conf_path) : 0,
              s->conf_path);
    site_value (
        s, "PlugStackConfig", s->stack_path, sizeof (s->stack_path), fallback);
    conf_read (&s->stack, s->root, s->stack_path);
}

/* "optional dl.so ARGUMENT...": spank(8). */
static void read_stack_line (struct site *s, const struct conf_line *l)
{
    struct stack_line p = { .at = l };
    char plugin[PATH_MAX];
    char dir[PATH_MAX - 512];
    int end = 0;

    if (sscanf (l->text, "%15s %4000s %n", p.word, plugin, &end) < 2)
        return;
    p.arguments = end ? l->text + end : "";
    if (strcmp (strrchr (plugin, '/') ? strrchr (plugin, '/') + 1 : plugin,
                "dl.so"))
        return;
    site_value (s, "PluginDir", dir, sizeof (dir), "/usr/lib/slurm");
    dir[strcspn (dir, ":")] = '\0';
    if (*plugin == '/')
        memcpy (p.plugin, plugin, sizeof (plugin));
    else
        snprintf (p.plugin, sizeof (p.plugin), "%s/%.500s", dir, plugin);
    s->plugins++;
    if (!s->plugin.at)
        s->plugin = p;
}

static void look (struct site *s)
{
    if (!s->config)
        return;
    site_value (s,
                "SLURM_CONF",
                s->conf_path,
                sizeof (s->conf_path),
                "/etc/slurm/slurm.conf");
    conf_read (&s->slurm, s->root, s->conf_path);
    read_beside (s, &s->cgroup, "cgroup.conf");
    read_beside (s, &s->gres, "gres.conf");
    find_stack (s);
    for (size_t i = 0; i < s->stack.n; i++)
        read_stack_line (s, &s->stack.list[i]);
}

/* ---- what is printed ---- */

static void print_text (const struct site *s, const int *count)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct finding *f = &s->findings[i];
        printf ("%-6s  %s%s%s%s: %s\n",
                grade_names[f->severity],
                f->where ? f->where : "",
                f->where && *f->where ? ": " : "",
                "",
                f->check,
                f->what ? f->what : "");
    }
    printf ("\n%d to change, %d hints, %d ok\n",
            count[CHANGE] + count[BROKEN],
            count[HINT],
            count[FINE]);
}

static void print_json (const struct site *s)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < s->n; i++)
        json_array_append_new (list,
                               json_pack ("{s:s, s:s, s:s*, s:s*}",
                                          "check",
                                          s->findings[i].check,
                                          "severity",
                                          grade_names[s->findings[i].severity],
                                          "where",
                                          s->findings[i].where,
                                          "what",
                                          s->findings[i].what));
    json_dumpf (list, stdout, JSON_INDENT (2) | JSON_PRESERVE_ORDER);
    putchar ('\n');
    json_decref (list);
}

static void site_free (struct site *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free (s->findings[i].where);
        free (s->findings[i].what);
    }
    free (s->findings);
    free (s->config);
    conf_free (&s->slurm);
    conf_free (&s->cgroup);
    conf_free (&s->gres);
    conf_free (&s->stack);
    free (s);
}

static int conclude (const struct site *s, bool json)
{
    int count[SEVERITIES] = { 0 };

    for (size_t i = 0; i < s->n; i++)
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
    if (!st->config)
        ask_slurm (s);
    else if (!(s->config = doctor_read ("", st->config))) {
        complain ("doctor: %s: %s", st->config, strerror (errno));
        site_free (s);
        return EXIT_NOT_FOUND;
    }
    look (s);
    for (s->check = doctor_checks; s->check->name; s->check++)
        if (s->config || !s->check->slurm)
            s->check->run (s);
    status = conclude (s, st->json);
    site_free (s);
    return status;
}
