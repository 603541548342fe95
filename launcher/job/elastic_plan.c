/* SPDX-License-Identifier: Apache-2.0 */
/* dl elastic: the nodes, limits and folder of a run. */
#include "launcher/job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/comm/elastic/elastic.h"
#include "runtime/rank/layout.h"
#include "runtime/storage/whole_file.h"

enum { UNITS_MAX = 65536, RUN_SIZE = 128 };

static int add_unit (void *arg, const char *host)
{
    struct elastic *e = arg;
    struct elastic_unit *unit;

    if (e->n == UNITS_MAX) {
        errno = E2BIG;
        return 1;
    }
    XGROW (e->units, (size_t)e->n);
    unit = &e->units[e->n++];
    memset (unit, 0, sizeof (*unit));
    snprintf (unit->node, sizeof (unit->node), "%.255s", host);
    return 0;
}

static int find_units (struct elastic *e, struct slurmdl_error *err)
{
    const char *nodes = getenv ("SLURM_JOB_NODELIST");
    long n = e->opt->max > 0 ? e->opt->max : e->opt->nodes;

    if (e->local) {
        for (long i = 0; i < n + e->opt->spares; i++)
            if (add_unit (e, "") != 0)
                return errorf (err, "too many nodes");
        return 0;
    }
    errno = EINVAL;
    if (!nodes || !*nodes)
        return errorf (err, "not in a job: start it in a batch script or in "
                            "salloc, or use --local for this machine");
    switch (layout_each_host (nodes, add_unit, e)) {
    case 0:
        return 0;
    case 1:
        return errorf (err, "too many nodes");
    }
    return errorf (err, "SLURM_JOB_NODELIST: '%s' is not a list of nodes", nodes);
}

static void fill_numbers (struct elastic *e)
{
    const struct elastic_options *opt = e->opt;

    e->ranks = opt->ranks_per_node > 0 ? opt->ranks_per_node : 1;
    e->spares = opt->spares;
    e->max = opt->max > 0 ? opt->max : e->n;
    e->min = opt->min > 0 ? opt->min : 1;
    e->wanted = opt->nodes > 0 ? opt->nodes : e->n - e->spares;
    if (!opt->nodes && e->wanted > e->max)
        e->wanted = e->max;
}

static int check_numbers (const struct elastic *e, struct slurmdl_error *err)
{
    errno = EINVAL;
    if (e->local && e->ranks != 1)
        return errorf (err, "--local starts one rank for each node");
    if (e->max > e->n)
        return errorf (err, "--max=%ld: there are %ld nodes", e->max, e->n);
    if (e->wanted < e->min || e->wanted > e->max)
        return errorf (
            err,
            "%ld nodes to start with (%ld minus %ld spare) are not between --min=%ld and --max=%ld",
            e->wanted, e->n, e->spares, e->min, e->max);
    if (e->wanted + e->spares > e->n)
        return errorf (err, "%ld nodes and %ld spare ones are more than %ld", e->wanted, e->spares,
                       e->n);
    return 0;
}

/* Like dl run, warn if a group can replace the folder, and fail if everybody can. */
static int check_names (const char *base, struct slurmdl_error *err)
{
    enum name_writers others = user_names_check (base, err);

    if (others == NAMES_OF_EVERYBODY)
        return -1;
    if (others == NAMES_OF_GROUP)
        complain ("%s", err->text);
    error_clear (err);
    return 0;
}

static int open_folder (struct elastic *e, struct slurmdl_error *err)
{
    struct stat st;

    if (own_folder_open (&e->folder, e->dir, 0700, err) < 0)
        return -1;
    if (fstat (e->folder.fd, &st) == 0 && !(st.st_mode & 077))
        return 0;
    own_folder_close (&e->folder);
    errno = EPERM;
    return errorf (err, "%s: someone has replaced it", e->dir);
}

static int make_folder (struct elastic *e, struct slurmdl_error *err)
{
    const char *job = e->local ? NULL : getenv ("SLURM_JOB_ID");
    const char *restart = getenv ("SLURM_RESTART_COUNT");
    char base[PATH_MAX];
    int n;

    if (!realpath (e->line->dir, base))
        return errorf (err, "%s: %s", e->line->dir, strerror (errno));
    if (check_names (base, err) < 0)
        return -1;
    if (job && restart && strcmp (restart, "0"))
        n = snprintf (e->dir, sizeof (e->dir), "%s/elastic.%s.%s", base, job, restart);
    else if (job)
        n = snprintf (e->dir, sizeof (e->dir), "%s/elastic.%s", base, job);
    else
        n = snprintf (e->dir, sizeof (e->dir), "%s/elastic.%ld", base, (long)getpid ());
    errno = ENAMETOOLONG;
    if (n >= (int)sizeof (e->dir) || mkdir (e->dir, 0700) < 0)
        return errorf (err, "%s: cannot create: %s", e->dir, strerror (errno));
    return open_folder (e, err);
}

static const char *path_in (char *path, const char *dir, const char *name)
{
    snprintf (path, PATH_MAX, "%s/%s", dir, name);
    return path;
}

/* Write the files that dl scale reads. */
static int write_run (const struct elastic *e, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct process_id self;
    FILE *f;

    process_id_describe (&self);
    if (message_put (path_in (path, e->folder.path, "by"), &self, sizeof (self)) < 0)
        return errorf (err, "%s: cannot write: %s", e->dir, strerror (errno));
    path_in (path, e->folder.path, "run");
    if ((f = fopen (path, "wxe"))) {
        fprintf (f, "ranks %ld min %ld max %ld\n", e->ranks, e->min, e->max);
        if (fclose (f) == 0 && membership_put_target (e->folder.path, e->wanted * e->ranks) == 0)
            return 0;
    }
    return errorf (err, "%s: cannot write: %s", e->dir, strerror (errno));
}

int elastic_plan (struct elastic *e, struct slurmdl_error *err)
{
    int error;

    if (find_units (e, err) < 0)
        return -1;
    fill_numbers (e);
    if (check_numbers (e, err) < 0 || make_folder (e, err) < 0)
        return -1;
    if (write_run (e, err) == 0)
        return 0;
    error = errno;
    elastic_remove (e);
    errno = error;
    return -1;
}

/* Read the file 'run'.  Returns false if 'dir' is not a run of this user. */
static bool read_run (const char *dir, long *ranks, long *min, long *max)
{
    char path[PATH_MAX];
    char *text =
        user_folder_check (dir) < 0 ? NULL : file_text (path_in (path, dir, "run"), RUN_SIZE);
    bool rv = text && sscanf (text, "ranks %ld min %ld max %ld", ranks, min, max) == 3;

    free (text);
    return rv;
}

void elastic_end (const struct elastic *e)
{
    char path[PATH_MAX];

    message_put (path_in (path, e->folder.path, "over"), "", 0);
}

void elastic_remove (struct elastic *e)
{
    own_folder_remove (&e->folder, e->dir);
}

/* Whether the run recorded its end, or its process on this host no longer exists. */
static bool has_ended (const char *dir)
{
    char path[PATH_MAX];
    struct process_id by, self;
    void *data;
    size_t n;
    bool rv = access (path_in (path, dir, "over"), F_OK) == 0;

    if (rv || message_get (path_in (path, dir, "by"), &data, &n) < 0)
        return rv;
    process_id_describe (&self);
    if (n == sizeof (by)) {
        memcpy (&by, data, n);
        rv = process_id_has_ended (&by, &self);
    }
    free (data);
    return rv;
}

bool elastic_is_run (const char *dir)
{
    long a, b, c;

    return read_run (dir, &a, &b, &c);
}

enum elastic_scaling elastic_scale (const char *dir, long units, struct slurmdl_error *err)
{
    long ranks, min, max;
    bool ok = read_run (dir, &ranks, &min, &max);
    bool over = ok && has_ended (dir);

    errno = EINVAL;
    if (!ok)
        errorf (err, "%s: not a run of dl elastic", dir);
    else if (over)
        errorf (err, "%s has ended: there is nothing to scale", dir);
    else if (units < min || units > max)
        errorf (err, "%s: must have from %ld to %ld nodes", dir, min, max);
    else if (membership_target (dir) == units * ranks)
        return SCALE_SAME;
    else if (membership_put_target (dir, units * ranks) == 0)
        return SCALE_ASKED;
    else
        errorf (err, "%s: cannot write: %s", dir, strerror (errno));
    return SCALE_ERROR;
}
