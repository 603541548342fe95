/* SPDX-License-Identifier: Apache-2.0 */
/* Find out why a worker died, and how far its attempt got. */
#include "launcher/worker/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/slurm/slurm.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/oom.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"
#include "runtime/metrics/metrics.h"
#include "runtime/storage/inside.h"

/* srun exits with 128 + SIGKILL if its task was killed, and with 1 if slurmstepd noticed that the
 * OOM killer did it.  A worker itself never exits with 1.
 */
static bool may_be_memory (long status)
{
    return status == 128 + 9 || status == 1;
}

/* Whether the previous step ran out of memory. */
static bool was_memory (const char *root)
{
    long job = (long)environment_number ("SLURM_JOB_ID", -1);
    long step = (long)environment_number ("SLURM_STEP_ID", -1);
    char state[32] = "";

    if (job >= 0 && step > 0 && *step_id ())
        slurm_step_state (job, step - 1, state);
    return *state ? !strcmp (state, "OUT_OF_MEMORY") : oom_kills_of_job (root) > 0;
}

void worker_exit_read (const char *root, struct worker_exit *l)
{
    long status = (long)environment_number ("DL_LAST_STATUS", -1);

    *l = (struct worker_exit){ .requeued = false };
    if (status >= 0) {
        if (may_be_memory (status) && was_memory (root)) {
            l->cause = REASON_OUT_OF_MEMORY;
            snprintf (l->why, sizeof (l->why), "out of memory");
        }
    } else if (environment_number ("SLURM_RESTART_COUNT", -1) > 0) {
        l->requeued = true;
        snprintf (l->why, sizeof (l->why), "preempted or requeued by Slurm");
    }
    unsetenv ("DL_LAST_STATUS");
}

/* clang-format off */
static const struct {
    const char *state;
    const char *why;
    enum condition_reason cause;
} end_states[] = {
    { "OUT_OF_MEMORY", "Slurm killed its worker because memory ran out", REASON_OUT_OF_MEMORY },
    { "NODE_FAIL",     "its worker's node failed" },
    { "BOOT_FAIL",     "its worker's node failed" },
    { "PREEMPTED",     "Slurm preempted its job" },
    { "TIMEOUT",       "Slurm killed its worker at the time limit", REASON_TIME_LIMIT },
    { "DEADLINE",      "Slurm killed its worker at the deadline" },
    { "CANCELLED",     "its worker's job was cancelled" },
    { NULL, NULL },
};
/* clang-format on */

/* "12_3" for the slots "12_3" and "12_3.1", "12" for that of a job without an array; -1: neither.
 */
static int job_of_slot (char *task, size_t size, const char *slot)
{
    size_t job = strspn (slot, "0123456789");
    size_t n = slot[job] == '_' ? strspn (slot + job + 1, "0123456789") : 0;

    if (job > 0 && !slot[job] && job < size) {
        memcpy (task, slot, job + 1);
        return 0;
    }
    if (job == 0 || n == 0 || job + n + 2 > size || !strchr (".", slot[job + 1 + n]))
        return -1;
    snprintf (task, size, "%.*s", (int)(job + 1 + n), slot);
    return 0;
}

bool worker_exit_can_ask (const char *slot)
{
    char task[48];

    return job_of_slot (task, sizeof (task), slot) == 0;
}

bool worker_exit_is_over (const char *slot)
{
    enum slurm_answer answer;
    struct slurm_jobs jobs;
    char task[48];
    bool over;

    if (job_of_slot (task, sizeof (task), slot) < 0)
        return false;
    answer = slurm_jobs_ask (&(struct slurm_queue){ .jobs = task, .seconds = 10 }, &jobs, NULL);
    over = answer == SLURM_NO_SUCH_JOB || (answer == SLURM_ANSWERED && jobs.n == 0);
    slurm_jobs_free (&jobs);
    return over;
}

void worker_exit_ask (const char *slot, struct worker_exit *l)
{
    char task[48], state[32];

    if (job_of_slot (task, sizeof (task), slot) < 0)
        return;
    slurm_job_state (task, state);
    for (int i = 0; end_states[i].state; i++)
        if (!strcmp (state, end_states[i].state)) {
            l->cause = end_states[i].cause;
            snprintf (l->why, sizeof (l->why), "%s: %s", state, end_states[i].why);
        }
}

/* ---- how far its attempt got ---- */

static void attempt_path (char path[PATH_MAX], const struct sweep *s, long trial, long attempt)
{
    snprintf (path, PATH_MAX, "%.3900s/trials/%04ld/a.%ld", s->dir, trial, attempt);
}

static int keep_largest (const struct slurmdl_row *row, void *step)
{
    if (row->step > *(int64_t *)step)
        *(int64_t *)step = row->step;
    return 0;
}

/* The largest step of any metric; INT64_MIN: none. */
static int64_t largest_step (const struct sweep *s, long trial, long attempt)
{
    int64_t step = INT64_MIN;
    char dir[PATH_MAX];

    attempt_path (dir, s, trial, attempt);
    slurmdl_metrics_read_dir (dir, keep_largest, &step, NULL);
    return step;
}

/* Compare only this much of larger files: different weights differ early. */
enum { COMPARED = 4 << 20 };

static bool same_content (int a, int b)
{
    char x[16384], y[sizeof (x)];
    off_t at = 0;

    while (at < COMPARED) {
        ssize_t n = pread (a, x, sizeof (x), at);
        ssize_t m = pread (b, y, sizeof (y), at);
        if (n != m || n < 0 || memcmp (x, y, (size_t)n))
            return false;
        if (n == 0)
            break;
        at += n;
    }
    return true;
}

/* Whether 'dir' has a file that 'before' lacks or that differs there. */
static bool file_is_new (const char *dir, const char *before, const char *name)
{
    char a[PATH_MAX], b[PATH_MAX];
    struct stat x, y;
    int fa, fb;
    bool new = false;

    if (snprintf (a, sizeof (a), "%s/%s", dir, name) >= (int)sizeof (a)
        || snprintf (b, sizeof (b), "%s/%s", before, name) >= (int)sizeof (b)
        || (fa = inside_open_any (a, O_RDONLY, 0, &x)) < 0)
        return false;
    fb = inside_open_any (b, O_RDONLY, 0, &y);
    if (S_ISREG (x.st_mode) && x.st_size > 0)
        new = fb < 0 || x.st_size != y.st_size || !same_content (fa, fb);
    close (fa);
    if (fb >= 0)
        close (fb);
    return new;
}

static bool has_new_file (const char *dir, const char *before)
{
    char a[PATH_MAX], b[PATH_MAX];
    DIR *d = opendir (dir);
    bool new = false;

    for (struct dirent *e; d && !new && (e = readdir (d));) {
        if (!strcmp (e->d_name, "ckpt")
            && snprintf (a, sizeof (a), "%s/ckpt", dir) < (int)sizeof (a)
            && snprintf (b, sizeof (b), "%s/ckpt", before) < (int)sizeof (b))
            new = has_new_file (a, b);
        else if (!attempt_file_is_ours (e->d_name) && strncmp (e->d_name, "metrics.", 8))
            new = file_is_new (dir, before, e->d_name);
    }
    if (d)
        closedir (d);
    return new;
}

/* The same for files in the working folders. */
static bool has_new_work (const struct trial_attempt *a)
{
    const char *below = sweep_code_below (a->sweep);
    char now[PATH_MAX], before[PATH_MAX];
    size_t n;

    if (attempt_with_work (a, before, sizeof (before)) < 0)
        return false;
    n = strlen (before);
    return snprintf (before + n, sizeof (before) - n, "%s", below) < (int)(sizeof (before) - n)
           && snprintf (now, sizeof (now), "%s/" WORK_NAME "%s", a->dir, below) < (int)sizeof (now)
           && has_new_file (now, before);
}

enum attempt_progress attempt_progress (const struct sweep *s, long trial, long attempt)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    struct trial_attempt a = { .sweep = s, .trial = trial, .number = attempt };
    int64_t had = t->length > 0 ? t->length : INT64_MIN;
    char before[PATH_MAX];

    if (attempt <= trial_last (t).attempt + 1)
        return PROGRESS_NONE;
    for (long k = trial_last (t).attempt + 1; k < attempt; k++) {
        int64_t step = largest_step (s, trial, k);
        had = step > had ? step : had;
    }
    if (largest_step (s, trial, attempt) > had)
        return PROGRESS_STEPS;
    attempt_path (a.dir, s, trial, attempt);
    return (attempt_with_files (&a, NULL, before, sizeof (before)) == 0
            && has_new_file (a.dir, before))
                   || has_new_work (&a)
               ? PROGRESS_FILES
               : PROGRESS_NONE;
}

/* ---- how long it ran ---- */

/* Seconds since the epoch by the file system's clock; NAN: there is no such file. */
static double mtime_of (const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (snprintf (path, sizeof (path), "%s/%s", dir, name) >= (int)sizeof (path)
        || lstat (path, &st) < 0)
        return NAN;
    return (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
}

double attempt_seconds (const struct sweep *s, long trial, long attempt, const char *nonce)
{
    char dir[PATH_MAX], worker[64];
    double began, ended;

    attempt_path (dir, s, trial, attempt);
    began = mtime_of (dir, "hparams.json");
    ended = fmax (mtime_of (dir, "log"), mtime_of (dir, "metrics.h5"));
    snprintf (worker, sizeof (worker), "workers/%.32s", nonce);
    ended = fmax (ended, mtime_of (s->dir, worker));
    return ended > began ? ended - began : 0;
}
