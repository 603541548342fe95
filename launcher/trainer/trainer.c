/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command of an attempt in its folder, and read the metrics that it prints. */
#include "launcher/trainer/trainer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/software_settings.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/trainer/printed.h"
#include "runtime/base/error.h"
#include "runtime/metrics/metrics.h"
#include "runtime/storage/inside.h"

/* ---- the folder of an attempt ---- */

static int cannot_in_folder (const struct trial_attempt *a, const char *what,
                             struct slurmdl_error *err)
{
    return errorf (err, "%s%s: %s", a->dir, what, inside_error (errno));
}

/* Open the trial's folder.  It may not exist yet, because nobody had to claim the attempt, or no
 * longer, because somebody removed it.
 */
static int open_trial_folder (const struct trial_attempt *a)
{
    const char *name;
    char path[4200];
    int trials;
    int fd = -1;
    int e;

    snprintf (path, sizeof (path), "%.*s", (int)(strrchr (a->dir, '/') - a->dir), a->dir);
    if ((trials = inside_parent (path, &name)) < 0)
        return -1;
    if (a->number > 1)
        fd = inside_open_at (trials, name, O_PATH | O_DIRECTORY, 0, NULL);
    if (fd < 0 && (a->number == 1 || errno == ENOENT)
        && (mkdirat (trials, name, 0777) == 0 || errno == EEXIST))
        fd = inside_open_at (trials, name, O_PATH | O_DIRECTORY, 0, NULL);
    e = errno;
    close (trials);
    errno = e;
    return fd;
}

/* Create the attempt's folder, or open the one that this user created before. */
static int open_attempt_folder (const struct trial_attempt *a, struct stat *st, bool *made)
{
    const char *name = strrchr (a->dir, '/') + 1;
    int trial = open_trial_folder (a);
    int fd = -1;
    int e;

    *made = trial >= 0 && mkdirat (trial, name, 0777) == 0;
    if (*made || (trial >= 0 && errno == EEXIST))
        fd = inside_open_at (trial, name, O_RDONLY | O_DIRECTORY, 0, st);
    e = errno;
    if (trial >= 0)
        close (trial);
    errno = e;
    return fd;
}

/* An earlier try of the same attempt may have ended on a full disk: remove the file that it left,
 * or a link, but not the link's target.
 */
static int create_attempt_file (int folder, const char *name, int flags)
{
    int fd = inside_open_at (folder, name, O_CREAT | O_EXCL | flags, 0644, NULL);

    if (fd >= 0 || errno != EEXIST || unlinkat (folder, name, 0) < 0)
        return fd;
    return inside_open_at (folder, name, O_CREAT | O_EXCL | flags, 0644, NULL);
}

static int write_all_text (int fd, const char *text)
{
    size_t n = strlen (text);
    int rv = write (fd, text, n) == (ssize_t)n ? 0 : -1;

    return close (fd) < 0 ? -1 : rv;
}

/* No temporary file is needed: nobody reads it before the trainer runs, and nobody else ever writes
 * it.
 */
static int write_hparams (const struct trial_attempt *a, int folder, struct slurmdl_error *err)
{
    const json_t *hparams = trial_hparams (a->sweep, sweep_trial (a->sweep, a->trial));
    char *text = json_string_of (hparams, JSON_INDENT (2) | JSON_SORT_KEYS);
    int fd = text ? create_attempt_file (folder, "hparams.json", O_WRONLY) : -1;
    int rv = fd < 0 ? -1 : write_all_text (fd, text);

    free (text);
    return rv < 0 ? cannot_in_folder (a, "/hparams.json: cannot write", err) : 0;
}

/* Whoever may write to the folder above may have replaced this one.  Its owner must be the owner of
 * a file created in it; the user ID itself proves nothing, because a file system may map it.
 */
static int create_attempt_log (const struct trial_attempt *a, int folder, const struct stat *of,
                               struct slurmdl_error *err)
{
    int fd = create_attempt_file (folder, "log", O_RDWR | O_APPEND);
    struct stat st;

    if (fd < 0)
        return cannot_in_folder (a, "/log: cannot create", err);
    if (fstat (fd, &st) < 0)
        return inside_close (fd, cannot_in_folder (a, "/log: cannot create", err));
    if (st.st_uid == of->st_uid)
        return fd;
    unlinkat (folder, "log", 0);
    close (fd);
    errno = EBADMSG;
    return errorf (err, "%s: user %ld created this folder; refusing to train in it", a->dir,
                   (long)of->st_uid);
}

/* Make the attempt's folder with hparams.json and an empty log, open as '*log' (-1 if there is
 * none).
 * '*made': nothing else is in it.  Returns the folder, open as well, or -1.
 */
static int make_attempt_folder (const struct trial_attempt *a, int *log, bool *made,
                                struct slurmdl_error *err)
{
    struct stat st;
    int folder = open_attempt_folder (a, &st, made);

    *log = -1;
    if (folder < 0)
        return cannot_in_folder (a, ": cannot create the folder", err);
    *log = create_attempt_log (a, folder, &st, err);
    if (*log < 0 || (!a->own && write_hparams (a, folder, err) < 0))
        return inside_close (folder, -1);
    return folder;
}

struct trainer {
    pid_t pid;    /* 0: reaped */
    pid_t group;  /* its process group; 0: killed */
    bool is_step; /* it is an srun */
    double ended; /* when srun was asked to end its step, 0: not */
    int status;
    int64_t peak; /* bytes of the largest of its processes that were reaped */
    int log;      /* its standard output and error */
    int folder;   /* the attempt's, open */
    int watch;    /* inotify, for new lines in the log; -1: none, the log is polled */
    int watched;
    struct line_reader *lines; /* of the log, or of metrics.file */
    struct printed *printed;   /* what earlier attempts printed; NULL: none */
    struct slurmdl_metrics *metrics;
    struct metrics_file_about about;
    unsigned flush;   /* the flush that has begun */
    bool logged;      /* any metric */
    bool lost;        /* a metric could not be logged */
    int unread;       /* errno of reading the log, or metrics.file; 0: none */
    struct stat made; /* its folder */
    struct {
        const char *name; /* of the first metric */
        bool found;
        int64_t step;
        double value;
    } newest;
    int64_t step; /* of the last report through `dl log` */
    char dir[4096];
    char file[8192];      /* metrics.file, "": none */
    char work_file[8192]; /* in the working folder, "": it has none */
    off_t read;           /* offset in it, or in the log */
};

/* ---- the command ---- */

/* Why a child could not run the command. */
struct stillbirth {
    const char *path; /* NULL: exec succeeded */
    int error;
};

static void report_exec_error (volatile struct stillbirth *why, const char *path, int status)
{
    why->path = path;
    why->error = errno;
    _exit (status);
}

/* Runs after vfork() in the worker's memory, while the worker waits: system calls only. */
static void exec_trainer (const struct trial_attempt *a, int out, char **argv, char **envp,
                          volatile struct stillbirth *why)
{
    const char *dir = *a->work ? a->work : a->sweep->exp->dir;
    int null = open ("/dev/null", O_RDONLY);
    sigset_t none;

    setpgid (0, 0);
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (dup2 (null, 0) < 0 || dup2 (out, 1) < 0 || dup2 (out, 2) < 0)
        report_exec_error (why, "/dev/null", 126);
    if (null > 2)
        close (null);
    if (chdir (dir) < 0)
        report_exec_error (why, dir, 126);
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    execvpe (argv[0], argv, envp);
    errno = exec_error (argv[0], errno);
    report_exec_error (why, argv[0], errno == ENOENT ? 127 : 126);
}

static void discard_spare_metrics (struct trainer_spare *spare)
{
    if (spare->metrics)
        metrics_discard (spare->metrics);
    spare->metrics = NULL;
}

void trainer_forget_spare (struct trainer_spare *spare)
{
    discard_spare_metrics (spare);
    if (spare->watch > 0)
        close (spare->watch);
    spare->watch = 0;
}

static struct slurmdl_metrics *take_spare_metrics (const struct trainer *t,
                                                   struct trainer_spare *spare)
{
    struct slurmdl_metrics *m = spare->metrics;

    if (metrics_move (m, t->dir, t->folder, &t->about) < 0) {
        discard_spare_metrics (spare);
        return NULL;
    }
    spare->metrics = NULL;
    return m;
}

static void note_resume (const struct trainer *t, const struct trial_attempt *a)
{
    char line[256];

    if (a->number > 2 && resume_note (a, line, sizeof (line)))
        dprintf (t->log, "%s\n", line);
}

/* Rename the spare metrics file before the command can create one itself. */
static int prepare_folder (struct trainer *t, const struct trial_attempt *a,
                           struct trainer_spare *spare, struct slurmdl_error *err)
{
    char folder[4096];
    bool made;

    t->folder = make_attempt_folder (a, &t->log, &made, err);
    if (t->folder < 0 || fstat (t->folder, &t->made) < 0)
        return -1;
    trial_dir (a, folder, sizeof (folder));
    if ((a->sweep->exp->fork->length && fork_source_hand_on (a->sweep->dir, folder, err) < 0)
        || work_folder_make (a, err) < 0)
        return -1;
    if (made && spare && spare->metrics && a->sweep->exp->metric->patterns)
        t->metrics = take_spare_metrics (t, spare);
    return 0;
}

/* A worker has one inotify descriptor for all attempts, because closing one takes long. */
static void watch_log (struct trainer *t, struct trainer_spare *spare)
{
    char path[64];

    if (!lines_wanted (t->lines) || *t->file || !spare || spare->watch < 0)
        return;
    if (spare->watch == 0)
        spare->watch = inotify_init1 (IN_CLOEXEC | IN_NONBLOCK);
    snprintf (path, sizeof (path), "/proc/self/fd/%d", t->log);
    if (spare->watch > 0)
        t->watched = inotify_add_watch (spare->watch, path, IN_MODIFY);
    if (t->watched > 0)
        t->watch = spare->watch;
}

/* vfork(), because copying the worker's page tables, and then the pages that it writes, would take
 * longer than everything else here.
 */
static pid_t vfork_trainer (const struct trial_attempt *a, int out, char **argv, char **envp)
{
    volatile struct stillbirth why = { NULL, 0 };
    pid_t pid = vfork ();

    if (pid == 0)
        exec_trainer (a, out, argv, envp, &why);
    if (pid > 0 && why.path)
        dprintf (out, "dl: %s: cannot run: %s\n", why.path, strerror (why.error));
    return pid;
}

/* Find the program in the trial's PATH, which may differ from the worker's. */
static void find_trainer_program (const struct software *s, char **argv)
{
    char *path =
        s->activated && argv ? program_path (software_variable (s, "PATH"), argv[0]) : NULL;

    if (path) {
        free (argv[0]);
        argv[0] = path;
    }
}

static int spawn_trainer (struct trainer *t, const struct trial_attempt *a,
                          struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char **argv = attempt_command (a, &why);
    char **envp = attempt_environment (a);

    find_trainer_program (a->sweep->exp->software, argv);
    if (!argv || !envp || (t->pid = vfork_trainer (a, t->log, argv, envp)) < 0)
        goto fail;
    t->group = t->pid;
    t->is_step = experiment_has_ranks (a->sweep->exp);
    strings_free (argv);
    strings_free (envp);
    return 0;
fail:
    t->pid = 0;
    strings_free (argv);
    strings_free (envp);
    return errorf (err, "cannot start the program: %s", *why.text ? why.text : strerror (errno));
}

/* While the command starts, fsync the name of the metrics file and create the next attempt's spare
 * one, so that one fsync is left for the end.
 */
static void prepare_metrics (struct trainer *t, struct trainer_spare *spare)
{
    if (!lines_wanted (t->lines))
        return;
    if (!t->metrics)
        t->metrics = metrics_create (t->dir, t->folder, &t->about, NULL, NULL);
    if (spare && *spare->name && !spare->metrics)
        spare->metrics = metrics_spare (spare->dir, spare->name, &t->about);
    trainer_flush_begin (t);
}

/* Remove the metrics file of an attempt that logged nothing. */
static void discard_metrics (struct trainer *t)
{
    if (t->metrics && !t->logged) {
        metrics_discard (t->metrics);
        t->metrics = NULL;
    }
}

static int log_match (const char *name, int64_t step, double value, void *arg)
{
    return trainer_log (arg, name, step, value);
}

struct trainer *trainer_start (const struct trial_attempt *a, struct trainer_spare *spare,
                               struct slurmdl_error *err)
{
    struct trainer *t = xcalloc (1, sizeof (*t));

    t->log = t->watch = t->folder = -1;
    t->newest.name = sweep_metric (a->sweep, 0);
    t->about = metrics_about (a->sweep->exp->name, a->trial, a->number);
    snprintf (t->dir, sizeof (t->dir), "%s", a->dir);
    if (a->sweep->exp->metric->file)
        snprintf (t->file, sizeof (t->file), "%s/%s", a->dir, a->sweep->exp->metric->file);
    if (*t->file && *a->work)
        snprintf (t->work_file, sizeof (t->work_file), "%s/%s", a->work,
                  a->sweep->exp->metric->file);
    t->printed = printed_create (a);
    t->lines = lines_create (a->sweep->exp->metric->patterns, log_match, t);
    if (prepare_folder (t, a, spare, err) < 0) {
        trainer_destroy (t);
        return NULL;
    }
    note_resume (t, a);
    watch_log (t, spare);
    if (spawn_trainer (t, a, err) < 0) {
        trainer_destroy (t);
        return NULL;
    }
    prepare_metrics (t, spare);
    return t;
}

void trainer_destroy (struct trainer *t)
{
    int e = errno;

    if (!t)
        return;
    trainer_signal (t, SIGKILL);
    if (t->is_step && t->pid > 0)
        step_end (t->pid, &t->ended);
    else if (t->pid > 0)
        waitpid (t->pid, NULL, 0);
    if (t->watch >= 0)
        inotify_rm_watch (t->watch, t->watched);
    if (t->log >= 0)
        close (t->log);
    if (t->folder >= 0)
        close (t->folder);
    lines_destroy (t->lines);
    printed_destroy (t->printed);
    discard_metrics (t);
    slurmdl_metrics_destroy (t->metrics);
    free (t);
    errno = e;
}

static bool died_of_stop_request (int status)
{
    return WIFSIGNALED (status) && (WTERMSIG (status) == SIGTERM || WTERMSIG (status) == SIGUSR2);
}

bool trainer_ended (struct trainer *t, int *status)
{
    struct rusage usage;

    if (t->pid > 0 && wait4 (t->pid, &t->status, WNOHANG, &usage) == t->pid) {
        t->pid = 0;
        t->peak = (int64_t)usage.ru_maxrss * 1024;
        /* processes that it left in the background would outlive the attempt; but if a shell died
         * of the signal, its command is still running
         */
        if (!died_of_stop_request (t->status))
            trainer_signal (t, SIGKILL);
    }
    *status = t->status;
    return t->pid == 0;
}

int64_t trainer_peak (const struct trainer *t)
{
    return t->peak;
}

bool trainer_lingers (const struct trainer *t)
{
    return t->group > 0 && !t->is_step && kill (-t->group, 0) == 0;
}

void trainer_note (struct trainer *t, const char *text)
{
    dprintf (t->log, "dl: %s\n", text);
}

void trainer_leave (struct trainer *t)
{
    if (t->is_step && t->pid > 0)
        kill (t->pid, SIGKILL);
}

void trainer_signal (struct trainer *t, int signal)
{
    if (t->is_step && t->pid > 0)
        step_signal (t->pid, signal, &t->ended);
    else if (!t->is_step && t->group > 0)
        kill (-t->group, signal);
    if (signal == SIGKILL && t->pid == 0)
        t->group = 0;
}

/* ---- metrics ---- */

int64_t trainer_step (struct trainer *t, int64_t step)
{
    t->step = step < 0 ? t->step + 1 : step;
    return t->step;
}

static int log_metric (const char *name, int64_t step, double value, void *arg)
{
    struct trainer *t = arg;
    int rv;

    if (!t->metrics)
        t->metrics = metrics_create (t->dir, t->folder, &t->about, NULL, NULL);
    rv = t->metrics ? slurmdl_metrics_log (t->metrics, name, step, value) : -1;
    t->lost |= rv < 0;
    t->logged = true;
    if (rv == 0 && !strcmp (name, t->newest.name)) {
        t->newest.found = true;
        t->newest.step = step;
        t->newest.value = value;
    }
    return rv;
}

int trainer_log (struct trainer *t, const char *name, int64_t step, double value)
{
    printed_before (t->printed, name, step, log_metric, t);
    return log_metric (name, step, value, t);
}

bool trainer_had_nothing_to_do (struct trainer *t)
{
    return printed_finish (t->printed, t->newest.name, log_metric, t);
}

bool trainer_lost_metrics (const struct trainer *t)
{
    return t->lost || t->unread;
}

int trainer_unread (const struct trainer *t)
{
    return t->unread;
}

uid_t trainer_owner (const struct trainer *t)
{
    return t->made.st_uid;
}

bool trainer_is_homeless (const struct trainer *t)
{
    struct stat st;

    return lstat (t->dir, &st) < 0 ? errno == ENOENT
                                   : st.st_ino != t->made.st_ino || st.st_dev != t->made.st_dev;
}

int trainer_flush (struct trainer *t, struct slurmdl_error *err)
{
    discard_metrics (t);
    return t->metrics ? slurmdl_metrics_flush (t->metrics, err) : 0;
}

void trainer_flush_begin (struct trainer *t)
{
    if (t->metrics)
        t->flush = metrics_flush_begin (t->metrics);
}

int trainer_flush_end (struct trainer *t, struct slurmdl_error *err)
{
    return t->metrics ? metrics_flush_end (t->metrics, t->flush, err) : 0;
}

/* The file may be getting its name just now. */
static bool is_own_metrics_file (struct trainer *t, const char *name)
{
    return metrics_has_name (t->metrics, name)
           || (trainer_flush_end (t, NULL) == 0 && metrics_has_name (t->metrics, name));
}

/* Whether the folder has metrics that the trainer logged itself, or an earlier try. */
static bool has_metrics_of_others (struct trainer *t)
{
    DIR *dir = fdopendir (t->folder);
    struct dirent *e;
    bool found = !dir;

    while (!found && (e = readdir (dir)))
        found = !strncmp (e->d_name, "metrics.", 8) && !is_own_metrics_file (t, e->d_name);
    if (dir) {
        closedir (dir);
        t->folder = -1;
    }
    return found;
}

bool trainer_newest (struct trainer *t, int64_t *step, double *value)
{
    *step = t->newest.step;
    *value = t->newest.value;
    return t->newest.found && !trainer_lost_metrics (t) && t->folder >= 0
           && !has_metrics_of_others (t);
}

void trainer_read (struct trainer *t, bool last)
{
    char news[4096];
    int fd = t->log;

    while (t->watch >= 0 && read (t->watch, news, sizeof (news)) > 0)
        ;
    if (!lines_wanted (t->lines))
        return;
    if (*t->file && (fd = inside_open_any (t->file, O_RDONLY, 0, NULL)) < 0
        && (!*t->work_file || (fd = inside_open_any (t->work_file, O_RDONLY, 0, NULL)) < 0)) {
        t->unread = last && errno != ENOENT ? errno : 0;
        return;
    }
    /* a later call reads on, unless this is the last */
    if (lines_read (t->lines, fd, &t->read) < 0 && last)
        t->unread = errno;
    if (fd != t->log)
        close (fd);
    if (last)
        lines_end (t->lines);
}

int trainer_fd (const struct trainer *t)
{
    return t->watch;
}
