/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of a step, and take what it has left. */
#include "launcher/flow/attempt.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/code/copy.h"
#include "launcher/code/store.h"
#include "launcher/config/queries.h"
#include "launcher/flow/cache.h"
#include "launcher/sys/job_variables.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/storage/inside.h"

enum { VALUES_MAX = 1 << 20, SAID_MAX = 64 << 10 };

/* ---- where ---- */

int attempt_directory (const struct flow_run *r,
                       char path[PATH_MAX],
                       struct slurmdl_error *err)
{
    const char *code = json_string_value (json_object_get (r->about, "code"));
    const char *root = json_string_value (json_object_get (r->about, "root"));
    struct code_archive a = { .data = NULL };
    char base[PATH_MAX + 8];
    const struct code_copy copy = { base, root, r->flow->base.dir };
    int rv;

    snprintf (path, PATH_MAX, "%s", r->flow->base.dir);
    if (!code)
        return 0;
    snprintf (base, sizeof (base), "%s/code", r->dir);
    errno = EBADMSG;
    if (!root || code_copy_path (&copy, path, PATH_MAX) < 0)
        return errorf (err,
                       "%.160s/flow.json: the folder of the code is not good",
                       r->dir);
    if (code_copy_check (&copy, NULL) == 0)
        return 0;
    if (store_get (r->dir, code, &a, err) < 0)
        return -1;
    rv = code_copy_make (&copy, &a, err);
    code_archive_free (&a);
    return rv;
}

/* ---- signals ---- */

static volatile sig_atomic_t told;
static volatile pid_t running;

static void pass_on (int signal)
{
    told = signal;
    if (running > 0)
        kill (-running, signal);
}

void attempt_signals (void)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    struct sigaction sa = { .sa_handler = pass_on };

    for (size_t i = 0; i < sizeof (signals) / sizeof (*signals); i++)
        sigaction (signals[i], &sa, NULL);
}

/* ---- variables ---- */

static void set (char ***list, const char *name, const char *value)
{
    char *entry = NULL;

    if (asprintf (&entry, "%s=%s", name, value) > 0)
        strings_add (list, entry, strlen (entry));
    free (entry);
}

static int set_given (const struct flow_scope *c,
                      char *const *given,
                      char ***list,
                      struct slurmdl_error *err)
{
    for (; given && *given; given++) {
        char *text = flow_text (c, *given, err);
        if (!text)
            return -1;
        strings_add (list, text, strlen (text));
        free (text);
    }
    return 0;
}

static int set_outputs (const struct flow_scope *c,
                        char ***list,
                        struct slurmdl_error *err)
{
    char path[PATH_MAX], name[256];

    for (size_t i = 0; i < c->s->noutputs; i++) {
        const struct flow_output *o = &c->s->outputs[i];
        if (flow_output_path (c, o, path, err) < 0)
            return -1;
        snprintf (name, sizeof (name), "DL_OUT_%s", o->name);
        for (char *at = name; *at; at++)
            if (!isalnum ((unsigned char)*at))
                *at = '_';
        set (list, name, path);
    }
    return 0;
}

static int variables_of (const struct flow_scope *c,
                         char ***list,
                         struct slurmdl_error *err)
{
    json_t *item;
    char text[PATH_MAX + 16];

    set (list, "DL_FLOW_DIR", c->r->dir);
    set (list, "DL_STEP", c->s->name);
    set (list, "DL_STEP_DIR", c->folder);
    snprintf (text, sizeof (text), "%s/values", c->folder);
    set (list, "DL_VALUES", text);
    if ((item = flow_item (c->r, c->s, c->task))) {
        char *value = flow_text (c, "{item}", err);
        set (list, "DL_ITEM", value ? value : "");
        free (value);
    }
    json_decref (item);
    if (c->outcome)
        set (list, "DL_FLOW_OUTCOME", c->outcome);
    if (c->failed)
        set (list, "DL_FLOW_FAILED", c->failed);
    if (set_outputs (c, list, err) < 0
        || set_given (c, c->r->flow->base.variables, list, err) < 0)
        return -1;
    return set_given (c, c->s->exp.variables, list, err);
}

/* ---- the command ---- */

static void prepare (const void *arg)
{
    char *const *list = arg;

    for (; *list; list++)
        putenv (*list);
}

static int wait_status (pid_t pid)
{
    int status = 0;

    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

/* What it has left running ends with it. */
static int run (char **argv, char **variables, const char *dir, int log)
{
    struct spawn s = { .argv = argv,
                       .dir = dir,
                       .io = { -1, log, log },
                       .new_group = true,
                       .death_signal = SIGKILL,
                       .prepare = prepare,
                       .arg = variables };
    pid_t pid = told ? -1 : subprocess_spawn (&s);
    int status;

    if (pid < 0)
        return told ? 128 + told : 126;
    running = pid;
    if (told)
        kill (-pid, told);
    status = wait_status (pid);
    running = 0;
    kill (-pid, SIGKILL);
    return status;
}

/* ---- what it has left ---- */

static json_t *take_outputs (const struct flow_scope *c,
                             struct slurmdl_error *err)
{
    json_t *all = json_object ();

    for (size_t i = 0; all && i < c->s->noutputs; i++) {
        const struct flow_output *o = &c->s->outputs[i];
        struct slurmdl_error why = { "" };
        char path[PATH_MAX];
        json_t *file = NULL;
        if (flow_output_path (c, o, path, err) == 0
            && !(file = flow_file (path, &why)))
            errorf (
                err, "it ended without its output '%s': %s", o->name, why.text);
        if (!file) {
            json_decref (all);
            return NULL;
        }
        json_object_set_new (all, o->name, file);
    }
    return all;
}

static bool is_declared (const struct flow_step *s, const char *name)
{
    char **v = s->values;

    while (v && *v && strcmp (*v, name))
        v++;
    return v && *v;
}

/* Numbers, truth values and lists as JSON has them, all else is a string. */
static json_t *value_of (const char *text)
{
    json_t *v = strchr ("-0123456789tf[", *text)
                    ? json_loads (text, JSON_DECODE_ANY, NULL)
                    : NULL;

    if (v && !json_is_object (v))
        return v;
    json_decref (v);
    return json_string (text);
}

static int add_value (const struct flow_scope *c,
                      json_t *all,
                      char *line,
                      struct slurmdl_error *err)
{
    char *eq = strchr (line, '=');
    json_t *v;

    errno = EINVAL;
    if (!*line)
        return 0;
    if (!eq || !is_utf8 (line))
        return errorf (err, "'%.80s' in $DL_VALUES is no NAME=VALUE", line);
    *eq = '\0';
    if (!is_declared (c->s, line))
        return errorf (err,
                       "its value '%.80s' is not declared: add it to 'values' "
                       "of the step",
                       line);
    if (!(v = value_of (eq + 1)))
        return errorf (err, "out of memory");
    if (json_array_size (v) > FLOW_WIDTH_MAX) {
        json_decref (v);
        return errorf (err,
                       "its value '%.80s' is a list of more than %d elements",
                       line,
                       FLOW_WIDTH_MAX);
    }
    return json_object_set_new (all, line, v);
}

static int
read_values (const struct flow_scope *c, json_t *all, struct slurmdl_error *err)
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
        rv = add_value (c, all, line, err);
    free (text);
    return rv;
}

static json_t *take_values (const struct flow_scope *c,
                            struct slurmdl_error *err)
{
    json_t *all = json_object ();

    errno = EINVAL;
    if (!all || read_values (c, all, err) < 0)
        goto fail;
    for (char **v = c->s->values; v && *v; v++)
        if (!json_object_get (all, *v)) {
            errorf (err,
                    "it ended without its value '%s': echo %s=... >>$DL_VALUES",
                    *v,
                    *v);
            goto fail;
        }
    return all;
fail:
    json_decref (all);
    return NULL;
}

/* ---- a sweep ---- */

static void self (char dl[PATH_MAX])
{
    ssize_t n = readlink ("/proc/self/exe", dl, PATH_MAX - 1);

    dl[n > 0 ? n : 0] = '\0';
}

/* The experiment that an attempt before has made; "": there is none. */
static void sweep_find (const struct flow_scope *c,
                        char home[PATH_MAX],
                        char found[PATH_MAX])
{
    struct dirent *e;
    DIR *d;

    flow_path (home, c->r, c->s, c->task, "sweep", 0);
    *found = '\0';
    if (folder_create (home, NULL) < 0 || !(d = opendir (home)))
        return;
    while ((e = readdir (d)))
        if (*e->d_name != '.')
            snprintf (found, PATH_MAX, "%s/%s", home, e->d_name);
    closedir (d);
}

static void add (char ***list, const char *word)
{
    strings_add (list, word, strlen (word));
}

static int sweep_command (const struct flow_scope *c,
                          char ***argv,
                          struct slurmdl_error *err)
{
    char dl[PATH_MAX], home[PATH_MAX], found[PATH_MAX];
    char *text;

    self (dl);
    sweep_find (c, home, found);
    add (argv, dl);
    add (argv, *found ? "resume" : "run");
    if (getenv ("DL_FLOW_LOCAL"))
        add (argv, "--local");
    if (*found) {
        add (argv, "--");
        add (argv, found);
        return 0;
    }
    add (argv, "--dir");
    add (argv, home);
    for (char **s = c->s->set; s && *s; s++) {
        if (!(text = flow_text (c, *s, err)))
            return -1;
        add (argv, "--set");
        add (argv, text);
        free (text);
    }
    if (!(text = flow_text (c, c->s->sweep, err)))
        return -1;
    add (argv, "--");
    add (argv, text);
    free (text);
    return 0;
}

/* Whether the experiment of an attempt before has completed. */
static bool sweep_is_over (const struct flow_scope *c)
{
    struct command wait = { .no_errors = true };
    char dl[PATH_MAX], home[PATH_MAX], found[PATH_MAX];
    char said[256];
    int status;

    self (dl);
    sweep_find (c, home, found);
    command_add (&wait, dl, NULL);
    command_add (&wait, "wait", NULL);
    command_add (&wait, "--timeout=0", NULL);
    command_add (&wait, "--", NULL);
    command_add (&wait, found, NULL);
    status = *found ? command_run (&wait, NULL, said, sizeof (said)) : -1;
    command_free (&wait);
    return status == 0;
}

/* What `dl best --json` says of the best trial. */
static json_t *sweep_best (const char *experiment, struct slurmdl_error *err)
{
    struct command c = { .no_errors = true };
    char dl[PATH_MAX];
    char *said = malloc (SAID_MAX);
    json_t *best = NULL;

    self (dl);
    command_add (&c, dl, NULL);
    command_add (&c, "best", NULL);
    command_add (&c, "--json", NULL);
    command_add (&c, "--", NULL);
    command_add (&c, experiment, NULL);
    if (said && command_run (&c, NULL, said, SAID_MAX) == 0)
        best = json_loads (said, 0, NULL);
    command_free (&c);
    free (said);
    errno = EINVAL;
    if (!best)
        errorf (err, "%.160s: no trial has a result", experiment);
    return best;
}

/* "optimizer.lr" of nested groups. */
static void flatten (json_t *to, const json_t *from, const char *prefix)
{
    char path[256];
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)from, key, v)
    {
        snprintf (
            path, sizeof (path), "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object (v))
            flatten (to, v, path);
        else
            json_object_set (to, path, v);
    }
}

static int sweep_take (const struct flow_scope *c,
                       struct attempt_end *end,
                       struct slurmdl_error *err)
{
    char home[PATH_MAX], found[PATH_MAX];
    const char *checkpoint;
    json_t *best, *file, *v;

    sweep_find (c, home, found);
    if (!*found || !(best = sweep_best (found, err)))
        return errorf (err, "the sweep has made no experiment");
    end->outputs = json_object ();
    end->values = json_object ();
    flatten (end->values, json_object_get (best, "hyperparameters"), "");
    json_object_set_new (end->values, "experiment", json_string (found));
    json_object_set (end->values, "trial", json_object_get (best, "trial"));
    v = json_object_get (best, "metrics");
    json_object_set (
        end->values, "metric", json_object_iter_value (json_object_iter (v)));
    checkpoint = json_string_value (json_object_get (best, "checkpoint"));
    if (checkpoint && (file = flow_file (checkpoint, NULL)))
        json_object_set_new (end->outputs, "checkpoint", file);
    json_decref (best);
    return 0;
}

/* ---- an attempt ---- */

static int open_log (const struct flow_scope *c)
{
    char path[PATH_MAX + 8];

    snprintf (path, sizeof (path), "%s/log", c->folder);
    return inside_open (
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, NULL);
}

static int start (const struct flow_scope *c,
                  struct attempt_end *end,
                  struct slurmdl_error *err)
{
    char **argv = NULL, **variables = NULL;
    char dir[PATH_MAX];
    int log = open_log (c);
    int rv = log < 0 ? errorf (err, "%.160s: %s", c->folder, strerror (errno))
                     : attempt_directory (c->r, dir, err);

    if (rv == 0)
        rv = c->s->sweep ? sweep_command (c, &argv, err)
                         : flow_command (c, &argv, &variables, err);
    if (rv == 0)
        rv = variables_of (c, &variables, err);
    if (rv == 0) {
        if (experiment_has_ranks (&c->s->exp))
            variables_drop (variable_is_of_step);
        end->status = run (argv, variables, dir, log);
        end->told = told;
    }
    if (log >= 0)
        close (log);
    strings_free (argv);
    strings_free (variables);
    return rv;
}

int attempt_run (const struct flow_scope *c,
                 struct attempt_end *end,
                 struct slurmdl_error *err)
{
    *end = (struct attempt_end){ .status = 0 };
    if (c->s->sweep && sweep_is_over (c))
        return sweep_take (c, end, err);
    if (start (c, end, err) < 0)
        return -1;
    errno = EINVAL;
    if (end->told && end->status)
        return errorf (err, "it was told to end (%s)", strsignal (end->told));
    if (end->status > 128)
        return errorf (err, "%s", strsignal (end->status - 128));
    if (end->status)
        return errorf (err, "status %d", end->status);
    if (c->s->sweep)
        return sweep_take (c, end, err);
    end->outputs = take_outputs (c, err);
    end->values = end->outputs ? take_values (c, err) : NULL;
    return end->values ? 0 : -1;
}
