/* SPDX-License-Identifier: Apache-2.0 */
/* dl model promote, note, rm: entries about a version. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/model/model.h"
#include "launcher/model/registry.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sys/say.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* The registry, the version that line->args[1] means, and an entry about it. */
struct model_mark {
    struct registry r;
    struct model_reference ref;
    json_t *entry;
};

static int mark_open (struct model_mark *m, const struct command_line *line,
                      struct slurmdl_error *err)
{
    *m = (struct model_mark){ .entry = NULL };
    if (registry_open_to_write (&m->r, line, false, err) < 0
        || registry_resolve (&m->r, line->args[1], &m->ref, err) < 0)
        return -1;
    m->entry =
        json_pack ("{s:s, s:I, s:f, s:s}", "model", m->ref.name, "version",
                   (json_int_t)m->ref.version, "time", (double)time (NULL), "by", user_name ());
    return m->entry ? 0 : errorf (err, "out of memory");
}

/* Put one more entry, which has 'text' under the name of its kind. */
static int mark_put (const struct command_line *line, const char *kind, const char *text,
                     struct model_mark *m, struct slurmdl_error *err)
{
    int rv = mark_open (m, line, err);
    json_t *value = rv < 0 ? NULL : json_string (text);

    if (rv == 0 && !value) {
        errno = EINVAL;
        rv = errorf (err, "the %s is not UTF-8", kind);
    }
    if (rv == 0) {
        json_object_set_new (m->entry, kind, value);
        rv = registry_put (&m->r, m->ref.name, kind, m->entry, err) < 0 ? -1 : 0;
    }
    json_decref (m->entry);
    return rv;
}

int model_promote (const struct command_line *line)
{
    const char *stage = line->args[2];
    struct slurmdl_error err = { "" };
    struct model_mark m;

    if (model_name_check (stage, &err) < 0 || mark_put (line, "stage", stage, &m, &err) < 0)
        return fail (&err);
    printf ("%s/%ld is %s@%s\n", m.ref.name, m.ref.version, m.ref.name, stage);
    return EXIT_OK;
}

int model_note (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct model_mark m;

    if (mark_put (line, "note", line->args[2], &m, &err) < 0)
        return fail (&err);
    printf ("%s/%ld: %s\n", m.ref.name, m.ref.version,
            *line->args[2] ? "noted" : "no note any more");
    return EXIT_OK;
}

/* ---- rm ---- */

/* What has a stage may be in use. */
static int may_remove (const struct model_mark *m, long version, struct slurmdl_error *err)
{
    char *stages = registry_stages (&m->r, m->ref.name, version, err);
    int rv = stages ? 0 : -1;

    if (stages && *stages) {
        errno = EINVAL;
        rv = errorf (err,
                     "%s/%ld is %s: promote another version, or --force "
                     "removes it",
                     m->ref.name, version, stages);
    }
    int e = errno;
    free (stages);
    errno = e;
    return rv;
}

/* All versions are those up to the newest one. */
static int rm (const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    bool all = !strpbrk (line->args[1], "/@");
    struct model_mark m;
    int rv = mark_open (&m, line, err);
    long last = m.ref.version, first = all ? 1 : last;

    for (long n = first; rv == 0 && !opt->force && n <= last; n++)
        if (!registry_has (&m.r, m.ref.name, "removed", n))
            rv = may_remove (&m, n, err);
    for (long n = last; rv == 0 && n >= first; n--) {
        if (registry_has (&m.r, m.ref.name, "removed", n))
            continue;
        json_object_set_new (m.entry, "version", json_integer (n));
        if ((rv = registry_remove (&m.r, m.ref.name, n, m.entry, err)) == 0)
            printf ("%s/%ld is removed\n", m.ref.name, n);
    }
    json_decref (m.entry);
    return rv;
}

int model_rm (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return rm (line, &err) == 0 ? EXIT_OK : fail (&err);
}
