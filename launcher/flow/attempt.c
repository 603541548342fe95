/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of a step, and take what it has left. */
#include "launcher/flow/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/code/archive.h"
#include "launcher/code/container.h"
#include "launcher/code/software.h"
#include "launcher/code/store.h"
#include "launcher/code/working_copy.h"
#include "launcher/config/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/job_variables.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trainer/resume_dir.h"
#include "launcher/trainer/step.h"
#include "launcher/trainer/work_folder.h"
#include "launcher/worker/failure.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/storage/inside.h"

enum { VALUES_MAX = 1 << 20 };

/* A script that knows nothing of the attempt's folder writes into its working
 * folder.
 */
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
            errorf (err, "it ended without its output '%s': %s", o->name, why.text);
        if (!file) {
            json_decref (all);
            return NULL;
        }
        json_object_set_new (all, o->name, file);
    }
    return all;
}

/* Numbers, truth values and lists as JSON has them, all else is a string. */
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
        return errorf (err, "'%.80s' in $DL_VALUES is no NAME=VALUE", line);
    *eq = '\0';
    if (!strings_contain ((const char *const *)c->s->values, line))
        return errorf (err,
                       "its value '%.80s' is not declared: add it to 'values' "
                       "of the step",
                       line);
    if (!(v = parse_reported_value (eq + 1)))
        return errorf (err, "out of memory");
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
            errorf (err, "it ended without its value '%s': echo %s=... >>$DL_VALUES", *v, *v);
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

/* The folder of a file, under its own name. */
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
        bool is_absolute = text && *text == '/';
        snprintf (path, sizeof (path), "%s%s%s", is_absolute ? "" : c->r->flow->base.dir,
                  is_absolute ? "" : "/", text ? text : "");
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

/* Files that the steps before it have left: anywhere. */
static void add_result_mounts (char ***list, const struct flow_scope *c)
{
    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_step *to = &c->r->flow->steps[c->s->links[i].step];
        long width = flow_width (c->r, to);
        for (long k = 0; k < width; k++) {
            json_t *done = flow_record (c->r, to, k, "done", 0);
            const char *name;
            json_t *o;
            json_object_foreach (json_object_get (done, "outputs"), name, o)
                add_mount_of (list, json_string_value (json_object_get (o, "path")) ?: "");
            json_decref (done);
        }
    }
}

/* The folder of all runs first: results of the cache are in others of them. */
static char **mounts_of_task (const struct flow_scope *c)
{
    const char *root = json_string_value (json_object_get (c->r->about, "root"));
    char **list = NULL;

    add_mount_of (&list, c->r->dir);
    add_mount (&list, c->r->dir);
    add_mount (&list, c->r->flow->base.dir);
    if (root)
        add_mount (&list, root);
    add_input_mounts (&list, c);
    add_output_mounts (&list, c);
    add_result_mounts (&list, c);
    return list;
}

static int flow_software_enter (const struct flow_scope *c, const char *dir, struct experiment *e,
                                struct slurmdl_error *err)
{
    *e = c->s->exp;
    e->software = *flow_software_of (c->r->flow, c->s);
    e->dir = (char *)dir;
    return software_enter (e, err);
}

static int add_within_words (const struct software *s, char *const *folders, char ***argv,
                             char ***variables)
{
    char *text = software_text (s, folders, false);
    int rv = text ? strings_addf (variables, "DL_SOFTWARE=%s", text) : -1;

    free (text);
    if (rv == 0)
        within_command (argv);
    return rv;
}

static int flow_software_start (const struct flow_scope *c, const struct experiment *e,
                                char ***argv, char ***variables, struct slurmdl_error *err)
{
    const struct software *s = &e->software;
    char **folders;
    int rv;

    if (c->s->sweep) /* dl itself */
        return 0;
    if (experiment_has_ranks (e))
        step_command (e, !s->by_srun, argv);
    if (!s->image)
        return 0;
    folders = mounts_of_task (c);
    if (s->by_srun)
        rv = container_srun_words (s, e->dir, folders, *variables, argv, err);
    else if ((rv = add_within_words (s, folders, argv, variables)) < 0)
        errorf (err, "out of memory");
    strings_free (folders);
    return rv;
}

/* How long to wait for the signal that may have ended the command, too. */
static const double LATE_SIGTERM = 2, LATE_OTHER = 0.2;

/* ---- where ---- */

int attempt_directory (const struct flow_run *r, char path[PATH_MAX], struct slurmdl_error *err)
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
                       errno == ENAMETOOLONG ? "%s: the path of the copy of the code is too long"
                                             : "%s/flow.json: the folder of the code is not good",
                       r->dir);
    if (code_copy_check (&copy, NULL) == 0)
        return 0;
    if (store_get (r->dir, code, &a, err) < 0)
        return -1;
    rv = code_copy_make (&copy, &a, err);
    code_archive_free (&a);
    return rv;
}

/* ---- its own working folder ---- */

struct step_folder {
    char from[PATH_MAX]; /* the copy of the code; "": it runs there */
    char to[PATH_MAX];   /* its own, beside it */
};

static int step_folders (const struct flow_scope *c, const char *dir, long attempt,
                         struct step_folder *f, struct slurmdl_error *err)
{
    size_t below = strlen (flow_code_below (c->r));

    *f->from = '\0';
    if (c->s->work == WORK_SHARED || c->s->sweep || !json_object_get (c->r->about, "code"))
        return 0;
    snprintf (f->from, PATH_MAX, "%.*s", (int)(strlen (dir) - below), dir);
    errno = ENAMETOOLONG;
    return snprintf (f->to, PATH_MAX, "%s.%s.%ld.%ld", f->from, c->s->name, c->task, attempt)
                   < PATH_MAX - (int)below
               ? 0
               : errorf (err, "%s: the path of a working folder is too long", f->from);
}

/* Whether nothing of an earlier attempt can be at work.  What is known of one
 * that has not ended itself: its job runs another attempt now, a later start
 * took its place, or its process is gone.
 */
static bool attempt_is_over (const struct flow_scope *c, long attempt)
{
    json_t *begin = flow_record (c->r, c->s, c->task, "begin", attempt);
    json_t *end = flow_record (c->r, c->s, c->task, "end", attempt);
    const char *own = getenv ("SLURM_JOB_ID");
    const char *job = json_string_value (json_object_get (begin, "job"));
    const char *host = json_string_value (json_object_get (begin, "host"));
    pid_t pid = (pid_t)json_integer_value (json_object_get (begin, "pid"));
    char here[256] = "";
    bool over;

    gethostname (here, sizeof (here) - 1);
    over = end || json_integer_value (json_object_get (begin, "start")) < c->start
           || (job && *job && own && !strcmp (job, own) && !getenv ("DL_FLOW_LOCAL"))
           || (host && !strcmp (host, here) && pid > 0 && kill (pid, 0) < 0 && errno == ESRCH);
    json_decref (begin);
    json_decref (end);
    return over;
}

/* Take what earlier attempts of the task left when they were killed; returns
 * the folder of the newest that wrote something, or NULL.
 */
static char *settle_earlier_attempts (const struct flow_scope *c, const char *dir)
{
    char folder[PATH_MAX];
    struct step_folder f;
    char *newest = NULL, *work;

    for (long k = c->attempt - 1; k >= 1; k--) {
        flow_path (folder, c->r, c->s, c->task, "a", k);
        if (step_folders (c, dir, k, &f, NULL) == 0 && attempt_is_over (c, k))
            work_folder_take (f.from, f.to, folder);
        if (newest || asprintf (&work, "%s/" WORK_NAME, folder) < 0)
            continue;
        if (working_copy_has_files (work))
            newest = work;
        else
            free (work);
    }
    return newest;
}

/* Make it, and change 'dir' to the folder of the flow file there. */
static int enter_step_folder (const struct flow_scope *c, struct step_folder *f, char dir[PATH_MAX],
                              struct slurmdl_error *err)
{
    char *before = NULL, *link = NULL;
    int rv = step_folders (c, dir, c->attempt, f, err);

    if (rv < 0 || !*f->from)
        return rv;
    before = settle_earlier_attempts (c, dir);
    rv = work_folder_copy (&c->r->flow->base, f->from, f->to, err);
    if (rv == 0 && before && c->s->work == WORK_TRIAL)
        rv = working_copy_add (before, f->to, err);
    /* for those who look */
    if (asprintf (&link, "%s/" WORK_NAME, c->folder) > 0 && symlink (f->to, link) < 0)
        errno = 0;
    snprintf (dir, PATH_MAX, "%s%s", f->to, flow_code_below (c->r));
    free (link);
    free (before);
    return rv;
}

/* ---- signals ---- */

static volatile sig_atomic_t told;
static volatile pid_t running;

static void pass_signal_on (int signal)
{
    told = signal;
    if (running > 0)
        kill (-running, signal);
}

void attempt_signals (void)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
    struct sigaction sa = { .sa_handler = pass_signal_on };

    for (size_t i = 0; i < sizeof (signals) / sizeof (*signals); i++)
        sigaction (signals[i], &sa, NULL);
}

/* ---- the command ---- */

extern char **environ;

struct attempt_variables {
    char **activated; /* of modules, conda or venv; NULL: those that are set */
    char **added;
    bool is_step; /* not those of the step in which dl is */
};

static void set_step_variables (const void *arg)
{
    const struct attempt_variables *v = arg;

    environ = v->activated ? v->activated : environ;
    if (v->is_step)
        variables_drop (variable_is_of_step);
    for (char **list = v->added; *list; list++)
        putenv (*list);
}

static int wait_for_command (pid_t pid)
{
    int status = 0;

    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

/* Slurm signals the processes of a job one by one, the deepest first: what the
 * command ends with may be its answer to a signal that is still to come here.
 */
static void wait_for_late_signal (int status)
{
    double wait = status == 128 + SIGTERM ? LATE_SIGTERM : LATE_OTHER;
    double limit = monotonic () + wait;

    while (status && !told && !getenv ("DL_FLOW_LOCAL") && monotonic () < limit)
        usleep (5000);
}

/* What it has left running ends with it. */
static int run_command (char **argv, const struct attempt_variables *variables, const char *dir,
                        int log)
{
    struct spawn s = { .argv = argv,
                       .dir = dir,
                       .io = { -1, log, log },
                       .new_group = true,
                       .death_signal = SIGKILL,
                       .prepare = set_step_variables,
                       .arg = variables };
    pid_t pid = told ? -1 : subprocess_spawn (&s);
    int status;

    if (pid < 0)
        return told ? 128 + told : 126;
    running = pid;
    if (told)
        kill (-pid, told);
    status = wait_for_command (pid);
    running = 0;
    kill (-pid, SIGKILL);
    wait_for_late_signal (status);
    return status;
}

/* ---- an attempt ---- */

static int open_attempt_log (const struct flow_scope *c)
{
    char path[PATH_MAX + 8];

    snprintf (path, sizeof (path), "%s/log", c->folder);
    return inside_open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, NULL);
}

/* The command with what starts it, and its variables. */
static int command_words (const struct flow_scope *c, const struct experiment *e, char ***argv,
                          char ***variables, struct slurmdl_error *err)
{
    char **command = NULL;
    int rv = c->s->sweep ? flow_sweep_command (c, &command, err)
                         : flow_command (c, &command, variables, err);

    if (rv == 0)
        rv = flow_variables (c, variables, err);
    if (rv == 0)
        rv = flow_software_start (c, e, argv, variables, err);
    if (rv == 0)
        rv = strings_add_all (argv, command);
    strings_free (command);
    return rv;
}

static int start_command (const struct flow_scope *c, struct attempt_end *end,
                          struct slurmdl_error *err)
{
    struct experiment e = { .software.image = NULL };
    struct attempt_variables v = { .is_step = experiment_has_ranks (&c->s->exp) };
    char **argv = NULL;
    struct step_folder own = { "", "" };
    char dir[PATH_MAX];
    int log = open_attempt_log (c);
    int rv = log < 0 ? errorf (err, "%s: %s", c->folder, strerror (errno))
                     : attempt_directory (c->r, dir, err);

    if (rv == 0)
        rv = enter_step_folder (c, &own, dir, err);
    if (rv == 0)
        rv = flow_software_enter (c, dir, &e, err);
    if (rv == 0)
        rv = command_words (c, &e, &argv, &v.added, err);
    if (rv == 0) {
        v.activated = e.software.activated;
        end->status = run_command (argv, &v, dir, log);
        end->told = told;
    }
    if (*own.from)
        work_folder_take (own.from, own.to, c->folder);
    if (log >= 0)
        close (log);
    strings_free (argv);
    strings_free (v.added);
    strings_free (e.software.activated);
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

/* A file that a step before it wrote into its own working folder, and that the
 * line names: it is not in this one's.  The caller frees it; '*by' is the step.
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
            long last = flow_last (c->r, to, k, "begin");
            flow_path (folder, c->r, to, k, "a", last);
            if (last > 0 && asprintf (&work, "%s/" WORK_NAME, folder) > 0) {
                working_copy_each (work, line_names_file, &m);
                free (work);
            }
        }
    }
    return m.found;
}

/* Its last line is mostly the reason; a sweep ends with the names of files. */
static int say_why_it_failed (const struct flow_scope *c, int status, struct slurmdl_error *err)
{
    char line[LAST_LINE], *file;
    const char *by = "";

    if (c->s->sweep)
        return errorf (err, "status %d of dl run%s", status,
                       status == EXIT_FAULT ? ": all attempts failed in the same way" : "");
    if (attempt_last_line (c->folder, line) < 0)
        return errorf (err, "status %d", status);
    while (!is_utf8 (line))
        line[strlen (line) - 1] = '\0';
    if ((file = file_left_elsewhere (c, line, &by))) {
        errorf (err,
                "status %d: %s; the step '%s' wrote %s in a working folder of "
                "its own: name it in 'outputs' there, and {%s.NAME} here",
                status, line, by, file, by);
        free (file);
        return -1;
    }
    return errorf (err, "status %d%s%s", status, *line ? ": " : "", line);
}

/* Only a sweep that has completed has a result: what is the best so far is
 * none.  The command may have ended well without that, as where two attempts
 * at once have made an experiment each.
 */
static int finish_sweep (const struct flow_scope *c, struct attempt_end *end,
                         struct slurmdl_error *err)
{
    enum { TRIES = 3 };

    for (int i = 0; i < TRIES && !end->status && !end->told; i++) {
        if (flow_sweep_is_over (c))
            return 0;
        if (start_command (c, end, err) < 0)
            return -1;
    }
    if (end->status || end->told || flow_sweep_is_over (c))
        return 0;
    errno = EBUSY;
    return errorf (err, "the sweep has not ended; 'dl show' prints its state");
}

int attempt_run (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err)
{
    *end = (struct attempt_end){ .status = 0 };
    if (c->s->sweep && flow_sweep_is_over (c))
        return flow_sweep_take (c, end, err);
    if (start_command (c, end, err) < 0 || (c->s->sweep && finish_sweep (c, end, err) < 0))
        return -1;
    errno = EINVAL;
    if (end->told && end->status)
        return errorf (err, "it was told to end (%s)", strsignal (end->told));
    if (end->status > 128)
        return errorf (err, "%s", strsignal (end->status - 128));
    if (end->status)
        return say_why_it_failed (c, end->status, err);
    if (c->s->sweep)
        return flow_sweep_take (c, end, err);
    end->outputs = flow_take_outputs (c, err);
    end->values = end->outputs ? flow_take_values (c, err) : NULL;
    return end->values ? 0 : -1;
}
