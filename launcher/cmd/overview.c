/* SPDX-License-Identifier: Apache-2.0 */
/* Print the state, faults, failures and workers of an experiment. */
#include "launcher/cmd/commands.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/hparams.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/progress/progress.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/results_file.h"
#include "launcher/sweep/text.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

enum { TAIL = 4096, LINES = 8 };

static void print_indented_lines (char *text)
{
    for (char *line; (line = strsep (&text, "\n"));) {
        policy_text (line);
        printf ("  | %s\n", line);
    }
}

static void print_fault_log_end (const struct sweep *s)
{
    char path[PATH_MAX];
    char text[TAIL + 1];
    size_t n;

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/log", s->dir, s->cause.trial,
              s->cause.attempt);
    if ((n = file_tail (inside_open (path, O_RDONLY, 0, NULL), text, TAIL)) == 0)
        return;
    printf ("the end of the log of trial %ld, attempt %ld:\n", s->cause.trial, s->cause.attempt);
    print_indented_lines (text_last_lines (text, n, LINES));
}

/* Find the worker log that was written last; "" if there is none. */
static void newest_log (const struct sweep *s, char *path, size_t size)
{
    char dir[PATH_MAX];
    int fd;
    DIR *d;
    struct dirent *e;
    struct stat st;
    struct timespec newest = { 0 };

    *path = '\0';
    snprintf (dir, sizeof (dir), "%s/workers", s->dir);
    fd = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (!(d = fd < 0 ? NULL : fdopendir (fd)))
        return;
    while ((e = readdir (d))) {
        size_t n = strlen (e->d_name);
        /* the name will be printed on a terminal */
        if (n < 5 || strcmp (e->d_name + n - 4, ".log") || !word_fits (e->d_name)
            || fstatat (fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size == 0
            || st.st_mtim.tv_sec < newest.tv_sec)
            continue;
        newest = st.st_mtim;
        if (snprintf (path, size, "%s/%s", dir, e->d_name) >= (int)size)
            *path = '\0';
    }
    closedir (d);
}

/* Print the last lines of the worker log that was written last. */
static void print_newest_log_end (const struct sweep *s)
{
    char path[PATH_MAX];
    char text[TAIL + 1];
    size_t n;

    newest_log (s, path, sizeof (path));
    if (!*path || (n = file_tail (inside_open (path, O_RDONLY, 0, NULL), text, TAIL)) == 0)
        return;
    printf ("the end of %s:\n", path);
    print_indented_lines (text_last_lines (text, n, LINES));
}

/* If a limit was too low, print the command that raises it.  Returns whether it did. */
static bool print_remedy (const struct sweep *s, enum condition_reason cause, const char *command)
{
    const struct experiment *e = s->exp;

    if (cause == REASON_TIME_LIMIT)
        printf ("run 'dl %s --set resources.time=TIME %s' to continue with a longer time limit "
                "than %s, of which the last %lld s (worker.grace) are for saving\n",
                command, s->word, e->resources->time ? e->resources->time : "the partition's",
                (long long)e->worker->grace);
    else if (cause == REASON_OUT_OF_MEMORY)
        printf ("run 'dl %s --set resources.%s=SIZE %s' to continue with more than %s%s\n", command,
                e->resources->max_memory ? "max_memory" : "memory", s->word,
                e->resources->max_memory ? e->resources->max_memory
                : e->resources->memory   ? e->resources->memory
                                         : "the partition gives",
                e->resources->max_memory ? ""
                                         : "; with resources.max_memory=SIZE as well a trial that "
                                           "runs out of memory is retried with more, up to that");
    else
        return false;
    return true;
}

void print_fault (const struct sweep *s)
{
    if (!sweep_is_faulty (s))
        return;
    printf ("paused after %d attempts failed in the same way before any result: %s\n", FAULT_LIMIT,
            s->cause.why);
    print_fault_log_end (s);
    if (print_remedy (s, s->cause.cause, "resume"))
        return;
    printf ("when the program is fixed, run 'dl resume %s' to continue and try %d more times; for "
            "another experiment file, 'dl kill %s' and 'dl run'\n",
            s->word, FAULT_LIMIT, s->word);
}

void print_limits (const struct sweep *s)
{
    const char *key = s->expired ? "max_hours" : "max_gpu_hours";

    if (!s->expired && !(s->searcher && searcher_is_spent (s->searcher)))
        return;
    printf ("searcher.%s (%g) is %s: no more segments start", key,
            s->expired ? s->exp->search->max_hours : s->exp->search->max_gpu_hours,
            s->expired ? "over" : "used up");
    if (sweep_has_ended (s))
        printf ("; run 'dl continue --set searcher.%s=HOURS %s' to continue with more", key,
                s->word);
    puts ("");
}

void print_shared_files (const struct sweep *s)
{
    struct shared_file f;

    if (!shared_files_find (s, &f))
        return;
    printf ("shared: trials %ld and %ld wrote the same file, %s, in the folder "
            "that all trials share",
            f.trials[0], f.trials[1], f.path);
    if (f.others)
        printf (" (and %ld other%s)", f.others, f.others == 1 ? "" : "s");
    puts (s->exp->code->work == WORK_SHARED
              ? ": they overwrite each other's file; without working_folder = \"shared\" each "
                "attempt has a folder of its own"
          : s->code
              ? ": they overwrite each other's file; dl links it instead of copying it for each "
                "attempt (.dlignore, its size, or \"data\" in its name): write into {attempt_dir}"
              : ": they overwrite each other's file; write into {attempt_dir}, or freeze the code "
                "(code.freeze, code.path), so that each attempt has a folder of its own");
}

/* With more different causes than this, none is common. */
enum { CAUSES_MAX = 64 };

struct cause_count {
    char key[FAULT_KEY];
    const char *why;
    enum condition_reason cause;
    long count;
};

/* Return the most common cause of failed trials. */
static struct cause_count commonest (const struct sweep *s)
{
    struct cause_count *list = xcalloc (CAUSES_MAX + 1, sizeof (*list));
    struct cause_count most = { .count = 0 };
    long n = 0;

    for (long i = 0; i < s->ntrials && n < CAUSES_MAX; i++) {
        const struct sweep_trial *t = &s->trials[i];
        long k = 0;
        if (t->state != TRIAL_FAILED)
            continue;
        fault_key (list[n].key, t->cause, t->why);
        while (strcmp (list[k].key, list[n].key))
            k++;
        list[k].why = t->why;
        list[k].cause = t->cause;
        if (++list[k].count > most.count)
            most = list[k];
        n += k == n;
    }
    free (list);
    return most;
}

/* Return the first trial whose program trained beyond its length or ended before it,
 * and count such trials.
 */
static const struct sweep_trial *ended_elsewhere (const struct sweep *s, bool beyond, long *n)
{
    const struct sweep_trial *first = NULL;

    *n = 0;
    for (long i = s->ntrials; i > 0; i--)
        if (s->trials[i - 1].ended
            && (s->trials[i - 1].ended > s->trials[i - 1].length) == beyond) {
            first = &s->trials[i - 1];
            ++*n;
        }
    return first;
}

/* A crash may be hidden: a pipe has the exit status of its last command. */
static void print_ended (const struct sweep *s)
{
    const struct sweep_trial *first;
    long n;

    if ((first = ended_elsewhere (s, true, &n)))
        printf ("trial %ld logged steps up to %lld, but its segment ends at %lld%s: its program "
                "does not use {length} (DL_LENGTH), or counts steps in another unit\n",
                trial_number (s, first), (long long)first->ended, (long long)first->length,
                n > 1 ? ", and others like it" : "");
    else if ((first = ended_elsewhere (s, false, &n)))
        printf ("trial %ld ended at %lld of %lld with status 0%s: if that was "
                "a crash, 'dl logs' shows it, and the entrypoint hides it (a "
                "pipe ends with the status of its last command)\n",
                trial_number (s, first), (long long)first->ended, (long long)first->length,
                n > 1 ? ", and others like it" : "");
}

/* ---- attempts that had a file but started from scratch ---- */

enum { AGAIN_TRIALS = 8, FILE_NAME = 256 };

/* Find the file name that follows {resume_dir}/, if it contains no wildcards or other
 * groups.
 */
static bool file_behind_resume_dir (const char *text, char file[FILE_NAME])
{
    static const char place[] = "{" RESUME_DIR "}/";
    const char *at = text ? strstr (text, place) : NULL;
    size_t n = at ? strcspn (at += strlen (place), " \t\n'\"]);|&") : 0;

    if (n == 0 || n >= FILE_NAME)
        return false;
    snprintf (file, FILE_NAME, "%.*s", (int)n, at);
    return !strpbrk (file, "{}*?$[");
}

static bool resume_file (const struct experiment *e, char file[FILE_NAME])
{
    bool has = file_behind_resume_dir (e->entrypoint, file);

    for (char **a = e->argv; !has && a && *a; a++)
        has = file_behind_resume_dir (*a, file);
    return has;
}

/* The first steps of the metric.  Steps that dl counts itself start over in each
 * attempt, so they prove nothing.
 */
struct first_steps {
    const char *name;
    int64_t step[2];
    int n;
};

static int note_last_step (const struct slurmdl_row *row, void *arg)
{
    struct first_steps *f = arg;

    if (!strcmp (row->name, f->name) && (f->n == 0 || row->step != f->step[0]))
        f->step[f->n++] = row->step;
    return f->n == 2;
}

static struct first_steps first_steps (const struct sweep *s, long trial, long attempt)
{
    struct first_steps f = { .name = sweep_metric (s, 0) };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    slurmdl_metrics_read_dir (dir, note_last_step, &f, NULL);
    return f;
}

/* Whether the attempt logged the same first two steps as attempt '*from', whose file it
 * was given.  Compares two, because a program may evaluate its model once before it
 * continues.
 */
static bool began_again (const struct sweep *s, long trial, long attempt, const char *file,
                         long *from)
{
    struct trial_attempt a = { .sweep = s, .trial = trial, .number = attempt };
    struct first_steps before, now;
    char path[PATH_MAX];

    snprintf (a.dir, sizeof (a.dir), "%s/trials/%04ld/a.%ld", s->dir, trial, attempt);
    if (attempt_with_files (&a, file, path, sizeof (path)) < 0)
        return false;
    *from = strtol (path + (strrchr (a.dir, '/') - a.dir) + strlen ("/a."), NULL, 10);
    before = first_steps (s, trial, *from);
    now = first_steps (s, trial, attempt);
    return before.n > 0 && now.n >= before.n && before.step[0] == now.step[0]
           && (before.n < 2 || before.step[1] == now.step[1]);
}

static void print_begun_again (const struct sweep *s)
{
    char file[FILE_NAME];
    bool steps = false;
    long from;

    for (char **p = s->exp->metric->patterns; p && *p; p++)
        steps |= strstr (*p, "{step}") != NULL;
    if (!steps || !resume_file (s->exp, file))
        return;
    for (long n = 1, looked = 0; n <= s->ntrials && looked < AGAIN_TRIALS; n++) {
        const struct sweep_trial *t = sweep_trial (s, n);
        looked += t->over > 1;
        for (long k = 2; k <= t->over && k <= AGAIN_TRIALS; k++)
            if (began_again (s, n, k, file, &from)) {
                printf ("trial %ld: attempt %ld was given %s of attempt %ld, but logged the same "
                        "first steps: its program did not continue from it, or counts its steps "
                        "from the beginning of each attempt\n",
                        n, k, file, from);
                return;
            }
    }
}

void print_failed (const struct sweep *s)
{
    struct cause_count most;
    long failed = sweep_failed_trials (s);

    print_ended (s);
    print_begun_again (s);
    if (failed == 0 || sweep_is_faulty (s))
        return;
    most = commonest (s);
    printf ("failed: %ld of %ld trial%s", failed, s->ntrials, s->ntrials == 1 ? "" : "s");
    if (s->state == SWEEP_PARTIAL)
        printf (", more than max_failed (%ld)", sweep_max_failed (s));
    if (most.why && most.count < failed)
        printf ("; %ld of them: %s", most.count, most.why);
    else if (most.why)
        printf (": %s", most.why);
    puts ("");
    print_remedy (s, most.cause, "retry");
}

const char *state_text (const struct sweep *s)
{
    return sweep_is_faulty (s) ? "paused (fault)" : sweep_state_name (s->state);
}

void print_results (const struct sweep *s)
{
    struct slurmdl_error err = { "" };
    long damaged;

    if (results_renew (s, &err) < 0)
        complain ("%s", err.text);
    if ((damaged = results_damaged (s)) > 0)
        printf ("metrics of %ld trial%s are damaged: 'dl export --format=h5' "
                "names the first file, 'dl show %s TRIAL' those of a trial\n",
                damaged, damaged == 1 ? "" : "s", s->word);
}

/* ---- workers, and what dl show prints before the trials ---- */

/* ": trial 3 to 27, at 7: loss 0.97, 3.0s ago, 2.1 a second", without "to 27" if it is not known */
static void print_trial_progress (const struct sweep *s, long trial)
{
    struct metric_progress p;
    char ago[32];

    printf (": trial %ld", trial);
    if (experiment_knows_length (s->exp))
        printf (" to %lld", (long long)sweep_trial (s, trial)->target);
    if (trial_progress (s, trial, &p) < 0)
        return;
    duration_text (ago, sizeof (ago), progress_age (&p));
    printf (", at %lld: %s %.6g, %s ago", (long long)p.step, sweep_metric (s, 0), p.value, ago);
    if (isfinite (progress_rate (&p)))
        printf (", %.3g a second", progress_rate (&p));
}

static void print_worker (const struct sweep *s, const struct peer_info *w)
{
    double silence = worker_silence (s, w);
    long trial;

    printf ("worker %s on %s", w->slot, w->host);
    if ((trial = worker_trial (s, w->nonce)))
        print_trial_progress (s, trial);
    if (silence > 2 * (double)s->exp->worker->heartbeat)
        printf (" (no heartbeat for %.0f s)", silence);
    putchar ('\n');
}

static const struct submit *last_job (const struct sweep *s)
{
    return s->nsubmits ? &s->submits[s->nsubmits - 1] : NULL;
}

/* The workers may still come back: Slurm may have requeued them, and this does not ask
 * it.
 */
static void print_resume (const struct sweep *s)
{
    if (last_job (s))
        printf ("'squeue --jobs=%s' shows whether Slurm has requeued them; 'dl resume %s' starts "
                "others\n",
                last_job (s)->job, s->word);
    else
        printf ("'dl resume %s' starts workers\n", s->word);
}

/* No worker is active, and the last job may wait forever.  This does not ask Slurm. */
static void print_waiting (const struct sweep *s, const struct submit *a)
{
    double ago = difftime (time (NULL), (time_t)a->time);
    const char *type = unseen_file_system (s->dir);
    char why[PATH_MAX + 512];
    char when[32];
    char text[32];

    last_words_text (s, a->job, why, sizeof (why));
    if (*why) {
        printf ("no worker of job %s has started: %s; when that is fixed, 'dl resume %s' starts "
                "others\n",
                a->job, why, s->word);
        return;
    }
    time_text (when, sizeof (when), a->time);
    duration_text (text, sizeof (text), ago > 0 ? ago : 0);
    printf ("no worker of job %s has started: submitted %s, %s ago; see 'squeue --jobs=%s'%s%s%s\n",
            a->job, when, text, a->job,
            type ? " (its nodes must see this folder, which is on " : "", type ? type : "",
            type ? ", this machine's own)" : "");
}

double sweep_idle (const struct sweep *s)
{
    struct worker_view v = { .list = NULL };
    double idle = NAN;

    if (s->state == SWEEP_RUNNING) {
        v = workers_look (s);
        idle = workers_idle (s, &v);
    }
    free (v.list);
    return idle;
}

/* Print what follows "running" if no worker is active. */
static void print_no_workers (const struct sweep *s, const struct worker_view *v)
{
    char text[128];

    workers_idle_text (s, v, text, sizeof (text));
    if (*text)
        printf (", but %s", text);
}

static void print_workers (const struct sweep *s, const struct worker_view *v)
{
    for (long i = 0; i < v->n; i++)
        if (worker_is_alive (s, &v->list[i]))
            print_worker (s, &v->list[i]);
    if (v->alive == 0 && workers_awaited (s, v))
        print_waiting (s, workers_awaited (s, v));
    else if (!isnan (workers_idle (s, v))) {
        print_newest_log_end (s);
        print_resume (s);
    }
}

static void print_labels (const struct sweep *s)
{
    if (!s->labels || !*s->labels)
        return;
    printf ("labels:");
    for (char **l = s->labels; *l; l++)
        printf (" %s", *l);
    putchar ('\n');
}

static void print_source (const struct sweep *s)
{
    const struct experiment *e = s->exp;

    if (e->fork->experiment && e->fork->trial && !e->fork->length)
        printf ("forked from %s, the configuration of trial %ld\n", e->fork->experiment,
                e->fork->trial);
    else if (e->fork->experiment && e->fork->trial)
        printf ("forked from %s, trial %ld at length %lld\n", e->fork->experiment, e->fork->trial,
                (long long)e->fork->length);
    else if (e->fork->experiment)
        printf ("forked from %s\n", e->fork->experiment);
}

static void print_memory (const struct sweep *s)
{
    char text[32];

    if (s->memory == 0)
        return;
    slurm_bytes_text (text, sizeof (text), s->memory);
    printf ("memory: %s for each trial, since some ran out of it%s\n", text,
            s->memory_limit ? "; Slurm has no more" : "");
}

static void print_last_action (const struct sweep *s)
{
    char when[32];

    if (!s->last_action.what)
        return;
    time_text (when, sizeof (when), s->last_action.time);
    printf ("last: %s%s by %s, %s\n", s->last_action.what, s->last_action.undone ? " (undone)" : "",
            s->last_action.by && *s->last_action.by ? s->last_action.by : "somebody", when);
}

/* This reflects the last heartbeats of the workers and does not ask Slurm. */
static void print_jobs (const struct sweep *s, const struct worker_view *v)
{
    for (size_t i = 0; i < s->nsubmits; i++) {
        const struct submit *a = &s->submits[i];
        long alive = 0;
        for (long k = 0; k < v->n; k++)
            alive += worker_is_of (&v->list[k], a) && worker_is_alive (s, &v->list[k]);
        printf ("job %s", a->job);
        if (a->first > 0)
            printf (": workers %ld-%ld", a->first, a->last);
        if (workers_begun (v, a) && alive == 0)
            printf (", all have ended");
        else if (alive > 0)
            printf (", %ld at work", alive);
        putchar ('\n');
    }
}

void print_overview (const struct sweep *s)
{
    struct worker_view v = workers_look (s);

    printf ("%s: %s%s", s->dir, state_text (s), s->archived ? " (archived)" : "");
    print_no_workers (s, &v);
    printf (", searcher %s, %.0f %% done\n", s->exp->search->searcher,
            floor (100 * searcher_progress (s->searcher)));
    print_direction (s);
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_results (s);
    print_limits (s);
    print_shared_files (s);
    print_source (s);
    print_labels (s);
    print_last_action (s);
    print_memory (s);
    print_excluded (s);
    if (s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir))
        puts (DISK_RESERVE_SPENT);
    if (!sweep_has_ended (s))
        print_jobs (s, &v);
    print_workers (s, &v);
    free (v.list);
}
