/* SPDX-License-Identifier: Apache-2.0 */
/* dl model register: put a version into the registry. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/model/model.h"
#include "launcher/model/registry.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

enum { RECORD_MAX = 16 << 20 };

/* ---- which checkpoint ---- */

struct chosen {
    char *path;
    int64_t step;
    double metric; /* at this step; NaN: not known */
};

struct value_search {
    const char *name;
    int64_t step;
    double value;
};

static int find_value (const struct slurmdl_row *row, void *arg)
{
    struct value_search *v = arg;

    if (!row->superseded && row->step == v->step && !strcmp (row->name, v->name))
        v->value = row->value;
    return 0;
}

/* The value that the checkpoint was validated with, as retention knows it. */
static double metric_at (const struct sweep *s, const char *dir, int64_t step)
{
    struct value_search v = { sweep_metric (s, 0), step, NAN };

    slurmdl_trial_read (dir, find_value, &v, NULL);
    return v.value;
}

/* That of the best result if it is still there, else the newest. */
static int choose (const struct sweep *s, long trial, int64_t step, struct chosen *c,
                   struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    int64_t best = step >= 0 ? step : trial_result (s, trial, 0).length;
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, trial);
    c->path = slurmdl_checkpoint_find (dir, best, trial_milestone (t, best), &c->step);
    if (step < 0 && (!c->path || c->step != best)) {
        free (c->path);
        c->path = slurmdl_checkpoint_find (dir, INT64_MAX, trial_last (t).attempt, &c->step);
    }
    if (!c->path || (step >= 0 && c->step != step)) {
        errno = ENOENT;
        errorf (err, "%s: no checkpoint%s that verifies; dl ckpt ls lists them", dir,
                step >= 0 ? " of this step" : "");
        free (c->path);
        return -1;
    }
    c->metric = metric_at (s, dir, c->step);
    return 0;
}

/* ---- the entry ---- */

/* What the first entry of the decision log says of the code, if anything. */
static json_t *code_json (const struct sweep *s)
{
    static const char *const keys[] = { "code", "root", "provenance", "data" };
    json_t *code = json_object (), *first, *value;
    char path[PATH_MAX];
    char *text;

    snprintf (path, sizeof (path), "%s/log/000000/00000001", s->dir);
    if (!(text = file_read_now (path, RECORD_MAX, NULL, NULL, NULL)))
        return code;
    first = json_loads (text, JSON_DISABLE_EOF_CHECK, NULL);
    for (size_t i = 0; i < sizeof (keys) / sizeof (*keys); i++)
        if ((value = json_object_get (first, keys[i])))
            json_object_set (code, keys[i], value);
    json_decref (first);
    free (text);
    return code;
}

static json_t *origin_json (const struct sweep *s, long trial)
{
    return json_pack ("{s:s, s:s, s:s?, s:s, s:I, s:O?, s:o}", "name", sweep_folder_name (s),
                      "folder", s->dir, "id", s->id, "experiment.conf", s->digest, "trial",
                      (json_int_t)trial, "hyperparameters",
                      trial_hparams (s, sweep_trial (s, trial)), "record", code_json (s));
}

static json_t *version_json (const struct sweep *s, long trial, const struct chosen *c,
                             json_t *kept, const char *name)
{
    json_object_set_new (kept, "step", json_integer (c->step));
    json_object_set_new (kept, "path", json_string (c->path));
    return json_pack ("{s:s, s:O, s:{s:s, s:o, s:b}, s:o, s:f, s:s}", "model", name, "checkpoint",
                      kept, "metric", "name", sweep_metric (s, 0), "value",
                      number_to_json (c->metric), "smaller_is_better",
                      (int)s->exp->search.smaller_is_better, "experiment", origin_json (s, trial),
                      "time", (double)time (NULL), "by", user_name ());
}

/* A version of the same checkpoint that is there already; 0: none. */
static long find_same (const struct registry *r, const char *name, json_t *entry)
{
    const char *digest = entry_text (entry, "checkpoint", "sha256");
    struct model_entry old;
    long found = 0;

    for (long n = 1; !found; n++) {
        const char *other;
        if (registry_entry (r, name, "version", n, &old, NULL) != 1)
            break;
        other = entry_text (old.json, "checkpoint", "sha256");
        if (other && !strcmp (other, digest) && !registry_has (r, name, "removed", n))
            found = n;
        json_decref (old.json);
    }
    return found;
}

/* What is kept twice goes, unless a version has lost it. */
static void drop_copy (const struct registry *r, const char *name, long same, const json_t *entry)
{
    char kept[PATH_MAX], other[PATH_MAX];
    struct model_entry old;

    if (registry_entry (r, name, "version", same, &old, NULL) != 1)
        return;
    if (registry_checkpoint (r, entry, kept, NULL) == 0
        && registry_checkpoint (r, old.json, other, NULL) == 0 && strcmp (kept, other))
        inside_unlink (kept, 0);
    json_decref (old.json);
}

static int put_version (const struct registry *r, const char *name, json_t *entry,
                        struct slurmdl_error *err)
{
    long same = entry ? find_same (r, name, entry) : 0;
    long n = same;

    if (!entry)
        return errorf (err, "cannot make the entry: a name is no UTF-8");
    if (same)
        drop_copy (r, name, same, entry);
    else if ((n = registry_put (r, name, "version", entry, err)) < 0)
        return -1;
    printf ("%s/%ld%s\n", name, n, same ? " (it was there already)" : "");
    return 0;
}

/* Without a checkpoint no registry is made. */
static int register_trial (const struct sweep *s, long trial, const struct command_line *line,
                           struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct chosen c = { NULL };
    struct registry r;
    json_t *kept = NULL, *entry;
    int rv = -1;

    if (choose (s, trial, opt->step, &c, err) < 0)
        return -1;
    if (registry_open_to_write (&r, line, true, err) == 0)
        kept = registry_keep (&r, c.path, err);
    if (kept) {
        entry = version_json (s, trial, &c, kept, line->args[3]);
        rv = put_version (&r, line->args[3], entry, err);
        json_decref (entry);
    }
    json_decref (kept);
    int e = errno;
    free (c.path);
    errno = e;
    return rv;
}

static int find_trial (const struct sweep *s, const char *text, long *trial)
{
    *trial = sweep_best (s);
    if (strcmp (text, "best"))
        return parse_trial (s, text, trial);
    if (*trial)
        return EXIT_OK;
    complain ("%s: there is no best trial: no trial has a result", s->dir);
    return EXIT_NOT_FOUND;
}

int model_register (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct sweep *s;
    long trial;
    int rv;

    if (model_name_check (line->args[3], &err) < 0)
        return fail (&err);
    if ((rv = open_experiment (line, line->args[1], &s)))
        return rv;
    if ((rv = find_trial (s, line->args[2], &trial)) == EXIT_OK
        && register_trial (s, trial, line, &err) < 0)
        rv = fail (&err);
    sweep_close (s);
    return rv;
}
