/* SPDX-License-Identifier: Apache-2.0 */
/* The folders from which an attempt resumes. */
#include "launcher/trainer/trainer.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/metrics/metrics.h"

void trial_dir (const struct trial_attempt *a, char *path, size_t size)
{
    snprintf (path, size, "%.*s", (int)(strrchr (a->dir, '/') - a->dir), a->dir);
}

bool attempt_file_is_ours (const char *name)
{
    return *name == '.' || !strcmp (name, "log") || !strcmp (name, WORK_NAME)
           || !strcmp (name, "hparams.json") || !strcmp (name, "bad-nodes")
           || !strcmp (name, ENDS_NAME) || !strcmp (name, HEALING_NAME)
           || !strcmp (name, STACKS_NAME) || !strcmp (name, IDLE_NAME)
           || fnmatch ("metrics*.h5", name, 0) == 0;
}

static bool folder_has_ckpt (const char *dir)
{
    char path[PATH_MAX];

    return snprintf (path, sizeof (path), "%s/ckpt", dir) < (int)sizeof (path)
           && folder_has_files (path, NULL);
}

/* An empty file is left from an interrupted write. */
static bool folder_has_file (const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    return snprintf (path, sizeof (path), "%s/%s", dir, name) < (int)sizeof (path)
           && stat (path, &st) == 0 && (!S_ISREG (st.st_mode) || st.st_size > 0);
}

/* Whether the attempt's folder has files; those left in its working folder do not count. */
static bool has_own_files (const char *dir, const char *file)
{
    bool has = false;
    DIR *d;

    if (file)
        return folder_has_file (dir, file);
    if (!(d = opendir (dir)))
        return false;
    for (struct dirent *e; !has && (e = readdir (d));)
        has = !strcmp (e->d_name, "ckpt")
                  ? folder_has_ckpt (dir)
                  : !attempt_file_is_ours (e->d_name) && folder_has_file (dir, e->d_name);
    closedir (d);
    return has;
}

static bool folder_has_work (const char *dir)
{
    char path[PATH_MAX];

    return snprintf (path, sizeof (path), "%s/" WORK_NAME, dir) < (int)sizeof (path)
           && working_copy_has_files (path);
}

bool folder_has_files (const char *dir, const char *file)
{
    return has_own_files (dir, file) || (!file && folder_has_work (dir));
}

int each_trainer_file (const char *dir, void (*f) (const char *dir, const char *name))
{
    DIR *d = opendir (dir);
    int n = 0;

    for (struct dirent *e; d && (e = readdir (d));) {
        if ((strcmp (e->d_name, WORK_NAME) ? attempt_file_is_ours (e->d_name)
                                           : !folder_has_work (dir))
            || trial_name_is_ours (e->d_name)
            || (!strcmp (e->d_name, "ckpt") && !folder_has_ckpt (dir)))
            continue;
        f (dir, e->d_name);
        n++;
    }
    if (d)
        closedir (d);
    return n;
}

static bool is_attempt (const char *dir)
{
    const char *name = strrchr (dir, '/');

    return name && !strncmp (name, "/a.", 3);
}

int list_trainer_files (const char *dir, char ***list)
{
    bool attempt = is_attempt (dir);
    DIR *d = opendir (dir);

    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir (d));) {
        bool ours = strcmp (e->d_name, WORK_NAME) ? attempt_file_is_ours (e->d_name)
                                                  : !folder_has_work (dir);
        if (*e->d_name != '.' && (!attempt || !ours))
            strings_addf (list, "%s/%s", dir, e->d_name);
    }
    closedir (d);
    return 0;
}

/* ---- the attempt to resume from ---- */

static int note_any_row (const struct slurmdl_row *row, void *found)
{
    (void)row;
    *(bool *)found = true;
    return 1;
}

bool attempt_has_logged (const char *dir)
{
    bool found = false;

    slurmdl_metrics_read_dir (dir, note_any_row, &found, NULL);
    return found;
}

/* The first two steps that an attempt logged. */
struct logged_steps {
    int64_t step[2];
    int n;
};

static int note_logged_step (const struct slurmdl_row *row, void *arg)
{
    struct logged_steps *l = arg;

    if (l->n == 0 || row->step != l->step[0])
        l->step[l->n++] = row->step;
    return l->n == 2;
}

static struct logged_steps logged_steps (const char *dir)
{
    struct logged_steps l = { .n = 0 };

    slurmdl_metrics_read_dir (dir, note_logged_step, &l, NULL);
    return l;
}

/* What is known about an attempt's files. */
enum doubt {
    NO_DOUBT,
    DOUBTED, /* an attempt that resumed from them failed before its first metric */
    FAILED,  /* the attempt itself failed before its first metric */
};

/* The search for the attempt to resume from. */
struct handing_on {
    const struct trial_attempt *a;
    const char *file;
    bool work; /* look in working folders only */
    char *doubts;
};

static void attempt_folder_of (const struct handing_on *h, long k, char *path, size_t n)
{
    int len = (int)(strrchr (h->a->dir, '/') - h->a->dir);

    snprintf (path, n, "%.*s/a.%ld", len, h->a->dir, k);
}

/* Whether attempt k has what is wanted; writes the folder that has it. */
static bool attempt_has_it (const struct handing_on *h, long k, char *path, size_t n)
{
    size_t len;

    attempt_folder_of (h, k, path, n);
    if (!h->work && has_own_files (path, h->file))
        return true;
    if (!h->file && !folder_has_work (path))
        return false;
    len = strlen (path);
    snprintf (path + len, n - len, "/" WORK_NAME "%s",
              h->work ? "" : sweep_code_below (h->a->sweep));
    return !h->file || folder_has_file (path, h->file);
}

/* The newest attempt before 'number' with no more than this doubt, 0: none. */
static long newest_with_files (const struct handing_on *h, long number, enum doubt most)
{
    char path[PATH_MAX];

    for (long k = number - 1; k >= 1; k--) {
        if (h->doubts[k] <= (char)most && attempt_has_it (h, k, path, sizeof (path)))
            return k;
    }
    return 0;
}

/* Whether an attempt that resumed from attempt 'from' (0: none) got as far as training.  A program
 * that evaluates its model before loading the files logs the step with which 'from' began, too.
 */
static bool has_trained (const struct handing_on *h, long k, long from)
{
    struct logged_steps now, before;
    char path[PATH_MAX];

    attempt_folder_of (h, k, path, sizeof (path));
    now = logged_steps (path);
    if (now.n != 1 || from == 0)
        return now.n > 0;
    attempt_folder_of (h, from, path, sizeof (path));
    before = logged_steps (path);
    return before.n < 2 || now.step[0] != before.step[0];
}

/* A job need not log metrics, so their absence proves something only if another attempt logged
 * some.
 */
static bool logs_metrics (const struct handing_on *h)
{
    char path[PATH_MAX];
    bool logs = !h->a->sweep->exp->job->is_given;

    for (long k = 1; k < h->a->number && !logs; k++) {
        attempt_folder_of (h, k, path, sizeof (path));
        logs = logged_steps (path).n > 0;
    }
    return logs;
}

/* Replay the attempts that failed before their first metric, to find out which files to doubt. */
static void doubt_files (const struct handing_on *h)
{
    const struct sweep_trial *t = sweep_trial (h->a->sweep, h->a->trial);

    if (!t || !logs_metrics (h))
        return;
    for (size_t i = 0; i < t->nfailed && t->failed[i].number < h->a->number; i++) {
        long k = t->failed[i].number;
        long from = newest_with_files (h, k, NO_DOUBT);
        if (!t->failed[i].files_may_be_broken || has_trained (h, k, from))
            continue;
        h->doubts[k] = FAILED;
        if (from > 0)
            h->doubts[from] = DOUBTED;
        for (long j = 1; j < k && from == 0; j++)
            if (h->doubts[j] == DOUBTED)
                h->doubts[j] = NO_DOUBT;
    }
}

/* Returns the attempt, 0: none; '*newer': a newer one that is skipped, or 0. */
static long choose_source (struct handing_on *h, long *newer)
{
    long k;

    h->doubts = xcalloc ((size_t)h->a->number + 1, 1);
    doubt_files (h);
    k = newest_with_files (h, h->a->number, NO_DOUBT);
    *newer = newest_with_files (h, h->a->number, DOUBTED);
    *newer = *newer > k ? *newer : 0;
    free (h->doubts);
    return k;
}

static int find_source (struct handing_on h, char *path, size_t size)
{
    long newer;
    long k = choose_source (&h, &newer);

    return k > 0 && attempt_has_it (&h, k, path, size) ? 0 : -1;
}

int attempt_with_files (const struct trial_attempt *a, const char *file, char *path, size_t size)
{
    return find_source ((struct handing_on){ .a = a, .file = file }, path, size);
}

int attempt_with_work (const struct trial_attempt *a, char *path, size_t size)
{
    return find_source ((struct handing_on){ .a = a, .work = true }, path, size);
}

bool resume_note (const struct trial_attempt *a, char *line, size_t size)
{
    struct handing_on h = { .a = a };
    long newer;
    long k = choose_source (&h, &newer);
    char from[64] = "starts without files";

    if (k > 0)
        snprintf (from, sizeof (from), "continues from attempt %ld", k);
    if (newer)
        snprintf (line, size,
                  "dl: this attempt %s, and not from attempt %ld: an attempt "
                  "failed before its first metric",
                  from, newer);
    return newer;
}
