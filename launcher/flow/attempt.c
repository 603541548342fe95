/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of a step, and collect its outputs and values. */
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/plugin_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/software_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"

enum { VALUES_MAX = 1 << 20 };

/* A script that does not know the attempt's folder writes to its working folder. */
static json_t *take_output_from_work (const struct flow_scope *c, const char *path)
{
    size_t n = strlen (c->folder);
    json_t *file = NULL;
    char *own;

    if (strncmp (path, c->folder, n) || path[n] != '/')
        return NULL;
    own = xasprintf ("%s/" WORK_NAME "%s%s", c->folder, flow_code_below (c->r), path + n);
    file = flow_file (own, NULL);
    free (own);
    return file;
}

static json_t *flow_take_outputs (const struct flow_scope *c, struct slurmdl_error *err)
{
    json_t *all = json_object ();

    for (size_t i = 0; all && i < c->s->noutputs; i++) {
        const struct flow_output *o = &c->s->outputs[i];
        struct slurmdl_error why = { "" };
        char path[PATH_MAX];
        json_t *file = NULL;
        if (flow_output_path (c, o, path, err) == 0 && !(file = flow_file (path, &why))
            && !(file = take_output_from_work (c, path)))
            errorf (err, "its command did not write the output '%s': %s", o->name, why.text);
        if (!file) {
            json_decref (all);
            return NULL;
        }
        json_object_set_new (all, o->name, file);
    }
    return all;
}

/* Numbers, booleans and lists are JSON; anything else is a string. */
static json_t *parse_reported_value (const char *text)
{
    json_t *v = strchr ("-0123456789tf[", *text) ? json_loads (text, JSON_DECODE_ANY, NULL) : NULL;

    if (v && !json_is_object (v))
        return v;
    json_decref (v);
    return json_string (text);
}

static int add_reported_value (const struct flow_scope *c, json_t *all, char *line,
                               struct slurmdl_error *err)
{
    char *eq = strchr (line, '=');
    json_t *v;

    errno = EINVAL;
    if (!*line)
        return 0;
    if (!eq || !is_utf8 (line))
        return errorf (err, "'%.80s' in $DL_VALUES is not NAME=VALUE", line);
    *eq = '\0';
    if (!strings_contain ((const char *const *)c->s->values, line))
        return errorf (err, "its value '%.80s' is not declared: add it to 'values' of the step",
                       line);
    v = parse_reported_value (eq + 1);
    if (json_array_size (v) > FLOW_WIDTH_MAX) {
        json_decref (v);
        return errorf (err, "its value '%.80s' is a list of more than %d elements", line,
                       FLOW_WIDTH_MAX);
    }
    return json_object_set_new (all, line, v);
}

static int read_reported_values (const struct flow_scope *c, json_t *all, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char path[PATH_MAX + 16];
    char *text, *save = NULL;
    int rv = 0;

    snprintf (path, sizeof (path), "%s/values", c->folder);
    if (!(text = file_read_now (path, VALUES_MAX, NULL, NULL, &why)))
        return errno == ENOENT ? 0 : errorf (err, "%s", why.text);
    for (char *line = strtok_r (text, "\n", &save); rv == 0 && line;
         line = strtok_r (NULL, "\n", &save))
        rv = add_reported_value (c, all, line, err);
    free (text);
    return rv;
}

json_t *flow_take_values (const struct flow_scope *c, struct slurmdl_error *err)
{
    json_t *all = json_object ();

    errno = EINVAL;
    if (!all || read_reported_values (c, all, err) < 0)
        goto fail;
    for (char **v = c->s->values; v && *v; v++)
        if (!json_object_get (all, *v)) {
            errorf (err, "its command did not report the value '%s': echo %s=... >>$DL_VALUES", *v,
                    *v);
            goto fail;
        }
    return all;
fail:
    json_decref (all);
    return NULL;
}

static void add_mount (char ***list, const char *text)
{
    if (!strings_contain ((const char *const *)*list, text))
        strings_add (list, text);
}

/* Mount the folder of a file under its own path. */
static void add_mount_of (char ***list, const char *file)
{
    char path[PATH_MAX], full[PATH_MAX];
    char *slash;

    snprintf (path, sizeof (path), "%s", file);
    if (*path != '/' || (slash = strrchr (path, '/')) == path)
        return;
    *slash = '\0';
    if (realpath (path, full))
        add_mount (list, full);
}

static void add_input_mounts (char ***list, const struct flow_scope *c)
{
    char path[PATH_MAX];

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = flow_text (c, *i, NULL);
        path_from (path, c->r->flow->base->dir, text ? text : "");
        add_mount_of (list, path);
        free (text);
    }
}

static void add_output_mounts (char ***list, const struct flow_scope *c)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < c->s->noutputs; i++)
        if (flow_output_path (c, &c->s->outputs[i], path, NULL) == 0)
            add_mount_of (list, path);
}

/* The outputs of earlier steps can be anywhere. */
static void add_result_mounts (char ***list, const struct flow_scope *c)
{
    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_step *to = &c->r->flow->steps[c->s->links[i].step];
        long width = flow_width (c->r, to);
        for (long k = 0; k < width; k++) {
            const json_t *done = flow_done (c->r, to, k);
            const char *name;
            json_t *o;
            json_object_foreach (json_object_get (done, "outputs"), name, o)
                add_mount_of (list, json_string_value (json_object_get (o, "path")) ?: "");
        }
    }
}

/* Mount the folder of all runs first, because cached results are in other runs. */
static char **mounts_of_task (const struct flow_scope *c)
{
    const char *root = json_string_value (json_object_get (c->r->about, "root"));
    char **list = NULL;

    add_mount_of (&list, c->r->dir);
    add_mount (&list, c->r->dir);
    add_mount (&list, c->r->flow->base->dir);
    if (root)
        add_mount (&list, root);
    add_input_mounts (&list, c);
    add_output_mounts (&list, c);
    add_result_mounts (&list, c);
    return list;
}

/* ---- where it runs ---- */

int attempt_directory (const struct flow_run *r, char path[PATH_MAX], struct slurmdl_error *err)
{
    const char *code = json_string_value (json_object_get (r->about, "code"));
    const char *root = json_string_value (json_object_get (r->about, "root"));
    char base[PATH_MAX + 8];
    const struct code_copy copy = { base, root, r->flow->base->dir };

    snprintf (path, PATH_MAX, "%s", r->flow->base->dir);
    if (!code)
        return 0;
    snprintf (base, sizeof (base), "%s/code", r->dir);
    errno = EBADMSG;
    if (!root || code_copy_path (&copy, path, PATH_MAX) < 0)
        return errorf (err,
                       errno == ENAMETOOLONG ? "%s: the path of the copy of the code is too long"
                                             : "%s/flow.json: invalid folder of the code",
                       r->dir);
    return store_unpack (r->dir, code, &copy, err);
}

/* Whether no process of an earlier attempt can be running.  An attempt that did not record its end
 * is over if its job now runs another attempt, if a later start replaced it, or if its process is
 * gone.
 */
static bool attempt_is_over (const struct flow_scope *c, const struct flow_attempt *a)
{
    const char *own = getenv ("SLURM_JOB_ID");

    return a->outcome != ATTEMPT_OPEN || a->start < c->start
           || (a->job && own && !strcmp (a->job, own) && !getenv ("DL_FLOW_LOCAL"))
           || flow_process (a->host, a->pid, 0) == PROCESS_ENDED;
}

/* ---- the command ---- */

/* The attempt as launcher/trainer sees it: an attempt at a trial of an experiment without a
 * searcher and without a log.
 */
struct step_attempt {
    struct experiment exp; /* the step's, with these parts of its own: */
    struct code_settings code;
    struct resources resources;
    struct software software;
    struct worker_settings worker;
    struct sweep run;
    struct own_command own;
    struct trial_attempt attempt;
    char dir[PATH_MAX];
};

/* Find the words and variables of the command.  A sweep runs dl itself. */
static int find_command (const struct flow_scope *c, struct own_command *own,
                         struct slurmdl_error *err)
{
    int rv = c->s->sweep ? flow_sweep_command (c, &own->words, err)
                         : flow_command (c, &own->words, &own->variables, err);

    if (rv == 0)
        rv = flow_variables (c, &own->variables, err);
    if (rv == 0)
        own->folders = mounts_of_task (c);
    return rv;
}

static void note_plugin_option (enum plugin_option_id id, const char *key, const char *value,
                                void *found)
{
    (void)id, (void)key, (void)value;
    *(bool *)found = true;
}

/* Without a step, the options of the plugin would have no effect on a command of one rank. */
static bool needs_slurm_step (const struct experiment *e)
{
    bool found = false;

    experiment_each_plugin_option (e, note_plugin_option, &found);
    return found && slurm_in_allocation () && !getenv ("DL_FLOW_LOCAL")
           && !experiment_has_ranks (e);
}

static int prepare_step_attempt (const struct flow_scope *c, struct step_attempt *t,
                                 struct slurmdl_error *err)
{
    const struct flow *f = c->r->flow;
    struct experiment *e = &t->exp;
    struct trial_attempt *a = &t->attempt;

    *e = *c->s->exp;
    t->code = *e->code;
    t->resources = *e->resources;
    t->software = *flow_software_of (f, c->s);
    t->worker = *e->worker;
    e->code = &t->code;
    e->resources = &t->resources;
    e->software = &t->software;
    e->worker = &t->worker;
    e->name = f->base->name;
    e->dir = t->dir;
    e->file_dir = f->base->dir;
    t->code.exclude = f->base->code->exclude;
    t->code.work = c->s->work;
    t->worker.hang = c->s->hang;
    if (c->s->sweep) {
        t->code.work = WORK_SHARED;
        t->resources.nodes = t->resources.ranks = 1;
    } else
        t->resources.is_step = needs_slurm_step (e);
    t->run = (struct sweep){ .exp = e, .dir = (char *)c->r->dir };
    t->run.root = (char *)json_string_value (json_object_get (c->r->about, "root"));
    *a = (struct trial_attempt){ .sweep = &t->run, .number = c->attempt, .own = &t->own };
    a->trial = (long)flow_step_number (f, c->s) * FLOW_WIDTH_MAX + c->task + 1;
    if (snprintf (a->dir, sizeof (a->dir), "%s", c->folder) >= (int)sizeof (a->dir)) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", c->folder);
    }
    if (attempt_directory (c->r, t->dir, err) < 0)
        return -1;
    work_folder_name (a);
    for (long k = c->attempt - 1; k >= 1; k--)
        if (attempt_is_over (c, &flow_task (c->r, c->s, c->task)->attempts[k - 1]))
            work_folder_settle_earlier (a, k);
    return software_enter (e, err) < 0 ? -1 : find_command (c, &t->own, err);
}

static int run_step_command (const struct flow_scope *c, struct attempt_end *end,
                             struct slurmdl_error *err)
{
    struct step_attempt t = { .dir = "" };
    double seconds = c->end > 0 ? c->end - monotonic () : 0;
    int rv = prepare_step_attempt (c, &t, err);

    /* in a short job, leave most of the time to the command */
    if (seconds > 0 && (double)t.worker.grace > seconds / 4)
        t.worker.grace = (int64_t)(seconds / 4);
    if (rv == 0)
        rv = command_attempt (c->worker, &t.attempt, c->end > 0 && seconds < 1 ? 1 : seconds,
                              &end->report, err);
    strings_free (t.own.words);
    strings_free (t.own.variables);
    strings_free (t.own.folders);
    strings_free (t.software.activated);
    return rv;
}

struct missing_file {
    const char *line; /* of the log */
    char *found;
};

static int line_names_file (const char *path, const struct stat *st, void *arg)
{
    struct missing_file *m = arg;
    const char *base = strrchr (path, '/') ? strrchr (path, '/') + 1 : path;

    if (S_ISREG (st->st_mode) && strstr (m->line, base))
        m->found = xstrdup (path);
    return m->found != NULL;
}

/* Find a file that the line names and that an earlier step '*by' wrote to its own working folder,
 * where this step cannot see it.  The caller frees the path.
 */
static char *file_left_elsewhere (const struct flow_scope *c, const char *line, const char **by)
{
    struct missing_file m = { .line = line };
    char folder[PATH_MAX], *work;

    for (size_t i = 0; !m.found && i < c->s->nlinks; i++) {
        const struct flow_step *to = &c->r->flow->steps[c->s->links[i].step];
        long width = flow_width (c->r, to);
        *by = to->name;
        for (long k = 0; !m.found && k < width; k++) {
            long last = (long)flow_task (c->r, to, k)->n;
            flow_path (folder, c->r, to, k, "a", last);
            if (last <= 0)
                continue;
            work = xasprintf ("%s/" WORK_NAME, folder);
            working_copy_each (work, line_names_file, &m);
            free (work);
        }
    }
    return m.found;
}

/* The last lines of a sweep are names of files, which explain nothing. */
static int fail_attempt (const struct flow_scope *c, const struct attempt_end *end,
                         struct slurmdl_error *err)
{
    const char *why = end->report.verdict.why, *by = "";
    int status = WIFEXITED (end->report.status) ? WEXITSTATUS (end->report.status) : 0;
    char *file;

    if (c->s->sweep && status)
        return errorf (err, "status %d of dl run%s", status,
                       status == EXIT_FAULT ? ": all attempts failed in the same way" : "");
    if (!(file = file_left_elsewhere (c, why, &by)))
        return errorf (err, "%s", why);
    errorf (err,
            "%s; the step '%s' wrote %s in its own working folder: name it in 'outputs' there, and "
            "use {%s.NAME} here",
            why, by, file, by);
    free (file);
    return -1;
}

/* Only a sweep that has completed has a result; the best trial so far does not count.  The command
 * may succeed earlier: if two attempts ran at once, each may have created an experiment.
 */
static int finish_sweep (const struct flow_scope *c, struct attempt_end *end,
                         struct slurmdl_error *err)
{
    enum { TRIES = 3 };

    for (int i = 1; end->report.status == 0 && !flow_sweep_is_over (c); i++) {
        if (i == TRIES || end->report.stop || end->report.out_of_time) {
            errno = EBUSY;
            return errorf (err, "the sweep has not ended; 'dl show' prints its state");
        }
        if (run_step_command (c, end, err) < 0)
            return -1;
    }
    return 0;
}

int attempt_run (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err)
{
    const struct command_report *r = &end->report;

    *end = (struct attempt_end){ .values = NULL };
    if (c->s->sweep && flow_sweep_is_over (c))
        return flow_sweep_take (c, end, err);
    if (run_step_command (c, end, err) < 0 || (c->s->sweep && finish_sweep (c, end, err) < 0))
        return -1;
    errno = EINVAL;
    /* a command that saved its state and exited with 0 has no result either */
    if (r->stop && *r->verdict.why)
        return errorf (err, "%s", r->verdict.why);
    if (r->stop)
        return errorf (err, "it was asked to stop (%s)", strsignal (r->stop));
    if (r->status || r->out_of_time)
        return fail_attempt (c, end, err);
    if (c->s->sweep)
        return flow_sweep_take (c, end, err);
    end->outputs = flow_take_outputs (c, err);
    end->values = end->outputs ? flow_take_values (c, err) : NULL;
    return end->values ? 0 : -1;
}
