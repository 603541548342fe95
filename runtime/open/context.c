/* SPDX-License-Identifier: Apache-2.0 */
/* Open a run: find the trial, attempt and rank of this process. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/metrics/metrics.h"
#include "runtime/run/run.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"

enum { ATTEMPTS_MAX = 1000000 };

static int make_folders (const char *dir)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s", dir);
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            if (mkdir (path, 0777) < 0 && errno != EEXIST)
                return -1;
            *c = '/';
        }
    return mkdir (path, 0777) < 0 && errno != EEXIST ? -1 : 0;
}

static long newest_attempt (const char *dir)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    long newest = 0;

    if (!d)
        return 0;
    while ((e = readdir (d)))
        if (!strncmp (e->d_name, "a.", 2) && atol (e->d_name + 2) > newest)
            newest = atol (e->d_name + 2);
    closedir (d);
    return newest;
}

/* mkdir() succeeds in only one process, which thereby claims the attempt. */
static int take_attempt (struct slurmdl *run)
{
    char path[PATH_MAX];
    long k = newest_attempt (run->trial_dir);

    do {
        snprintf (path, sizeof (path), "%s/a.%ld", run->trial_dir, ++k);
        if (mkdir (path, 0777) == 0) {
            run->attempt = k;
            run->dir = strdup (path);
            return run->dir ? 0 : -1;
        }
    } while (errno == EEXIST && k < ATTEMPTS_MAX);
    return -1;
}

/* The program may change its working directory later. */
static char *absolute_path (const char *path)
{
    char *here = *path == '/' || !*path ? NULL : getcwd (NULL, 0);
    char *whole;

    if (!here)
        return strdup (path);
    if (asprintf (&whole, "%s/%s", here, path) < 0)
        whole = NULL;
    free (here);
    return whole;
}

/* A worker passes EXPERIMENT/trials/NUMBER.  Others may be able to write there. */
static int guard_folder (struct slurmdl *run)
{
    char root[PATH_MAX];
    char own[PATH_MAX];
    char *slash;

    snprintf (root, sizeof (root), "%s", run->trial_dir);
    for (int i = 0; i < 2; i++)
        if ((slash = strrchr (root, '/')))
            *slash = '\0';
    /* in a container, folders above it may be symbolic links */
    if (!*root || !realpath (root, own) || strcmp (root, own))
        return 0;
    run->inside = strdup (root);
    return run->inside ? inside_enter (root) : -1;
}

static int enter_folder (struct slurmdl *run, const char *dir)
{
    const char *attempt = getenv ("DL_ATTEMPT_DIR");
    const char *slash;

    if (attempt && (slash = strrchr (attempt, '/'))) {
        run->dir = strdup (attempt);
        run->trial_dir = strndup (attempt, (size_t)(slash - attempt));
        run->attempt = (long)environment_number ("DL_ATTEMPT", 1);
        return run->dir && run->trial_dir ? guard_folder (run) : -1;
    }
    run->trial_dir = absolute_path (dir ? dir : environment_text ("DL_RUN_DIR", "slurmdl"));
    if (!run->trial_dir || make_folders (run->trial_dir) < 0)
        return -1;
    if (run->rank == 0)
        return take_attempt (run);
    run->dir = strdup (run->trial_dir);
    return run->dir ? 0 : -1;
}

struct slurmdl *slurmdl_open (const char *dir, struct slurmdl_error *err)
{
    struct slurmdl *run = calloc (1, sizeof (*run));
    struct metrics_file_about about;

    error_clear (err);
    if (!run) {
        errorf (err, "out of memory");
        return NULL;
    }
    retain_open (&run->retention);
    if (!(run->experiment = strdup (environment_text ("DL_EXPERIMENT", "")))) {
        errorf (err, "out of memory");
        goto fail;
    }
    environment_rank (&run->rank, &run->size);
    run->trial = (long)environment_number ("DL_TRIAL", 0);
    run->length = environment_number ("DL_LENGTH", INT64_MAX);
    run->seed = (uint32_t)environment_number ("DL_SEED", 0);
    if (enter_folder (run, dir) < 0) {
        errorf (err, "%s: cannot create the folder of the run: %s",
                run->trial_dir ? run->trial_dir : "slurmdl", strerror (errno));
        goto fail;
    }
    about = metrics_about (run->experiment, run->trial, run->attempt);
    if (run->rank == 0
        && !(run->metrics = metrics_create (run->dir, -1, &about, &run->retention, err)))
        goto fail;
    if (strcmp (environment_text ("DL_SIGNALS", "1"), "0")) {
        run->signals = true;
        stop_open (run);
    }
    return run;
fail:
    slurmdl_close (run);
    return NULL;
}

int slurmdl_close (struct slurmdl *run)
{
    int saved = errno;
    int failed = 0;
    int rv;

    if (!run)
        return 0;
    if (saver_destroy (run->saver) < 0) {
        failed = -1;
        saved = errno;
    }
    agreement_destroy (run->agreement);
    session_destroy (run->session);
    if (run->signals)
        stop_close ();
    rv = slurmdl_metrics_destroy (run->metrics);
    if (rv < 0)
        saved = errno;
    retain_close (&run->retention);
    regions_clear (&run->regions);
    slurmdl_checkpoint_close (run->from);
    free (run->experiment);
    if (run->inside)
        inside_leave (run->inside);
    free (run->inside);
    free (run->trial_dir);
    free (run->dir);
    free (run);
    errno = saved;
    return failed ? -1 : rv;
}

const char *slurmdl_experiment (const struct slurmdl *run)
{
    return run->experiment;
}

long slurmdl_trial (const struct slurmdl *run)
{
    return run->trial;
}

long slurmdl_attempt (const struct slurmdl *run)
{
    return run->attempt;
}

const char *slurmdl_dir (const struct slurmdl *run)
{
    return run->dir;
}

uint32_t slurmdl_seed (const struct slurmdl *run)
{
    return run->seed;
}

long slurmdl_rank (const struct slurmdl *run)
{
    return run->rank;
}

long slurmdl_size (const struct slurmdl *run)
{
    return run->size;
}

int64_t slurmdl_length (const struct slurmdl *run)
{
    return run->length;
}

const char *slurmdl_hp (const struct slurmdl *run, const char *name)
{
    char variable[256];
    const char *value;

    (void)run;
    snprintf (variable, sizeof (variable), "DL_HP_%s", name);
    for (char *c = variable; *c; c++)
        if (!isalnum ((unsigned char)*c))
            *c = '_';
    if (!(value = getenv (variable)))
        errno = ENOENT;
    return value;
}

double slurmdl_float (const struct slurmdl *run, const char *name, double otherwise)
{
    const char *value = slurmdl_hp (run, name);
    char *end;
    double v;

    if (!value || !*value)
        return otherwise;
    v = strtod (value, &end);
    return *end ? otherwise : v;
}

int64_t slurmdl_int (const struct slurmdl *run, const char *name, int64_t otherwise)
{
    const char *value = slurmdl_hp (run, name);
    char *end;
    long long v;

    if (!value || !*value)
        return otherwise;
    errno = 0;
    v = strtoll (value, &end, 10);
    return *end || errno ? otherwise : v;
}

const char *slurmdl_string (const struct slurmdl *run, const char *name, const char *otherwise)
{
    const char *value = slurmdl_hp (run, name);

    return value ? value : otherwise;
}
