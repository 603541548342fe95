/* SPDX-License-Identifier: Apache-2.0 */
/* Read the metrics files of an attempt, even while they are written. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/metrics/table.h"
#include "runtime/slurmdl.h"

struct giving {
    slurmdl_row_f f;
    void *arg;
    double epoch;
};

static int pass_rows (const struct table *t, const struct row *rows, size_t n, uint64_t first,
                      void *arg)
{
    struct giving *g = arg;
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < n; i++) {
        const struct row *r = &rows[i];
        const char *name = t->names[r->name];
        if (name[0] == 'e' && !strcmp (name, "epoch"))
            g->epoch = r->value;
        if (t->nresumes && table_superseded (t, first + i, r))
            continue;
        rv = g->f (
            &(struct slurmdl_row){ r->step, r->time, r->value, name, g->epoch, t->attempt, 0 },
            g->arg);
    }
    return rv;
}

int slurmdl_metrics_read (const char *path, slurmdl_row_f f, void *arg, struct slurmdl_error *err)
{
    struct giving g = { f, arg, NAN };
    struct table t;
    int rv;

    error_clear (err);
    if ((rv = table_open (&t, path, err)) == 0)
        rv = table_read_rows (&t, pass_rows, &g, err);
    table_close (&t);
    return rv;
}

int slurmdl_records_read (const char *path, slurmdl_record_f f, void *arg,
                          struct slurmdl_error *err)
{
    struct table t;
    int rv;

    error_clear (err);
    if ((rv = table_open (&t, path, err)) == 0)
        rv = table_read_records (&t, f, arg, err);
    table_close (&t);
    return rv;
}

struct folder_reading {
    slurmdl_row_f row;
    slurmdl_record_f record; /* if 'row' is NULL */
    void *arg;
    struct slurmdl_error damage; /* about the first damaged file */
};

/* Read the other files even if one is damaged. */
static int read_attempt_file (const char *path, void *arg, struct slurmdl_error *err)
{
    struct folder_reading *r = arg;
    struct slurmdl_error why = { "" };
    int rv = r->row ? slurmdl_metrics_read (path, r->row, r->arg, &why)
                    : slurmdl_records_read (path, r->record, r->arg, &why);

    if (rv >= 0)
        return rv;
    if (errno != EBADMSG)
        return errorf (err, "%s", why.text);
    errorf (&r->damage, "%s", why.text);
    return 0;
}

static int read_folder (const char *dir, struct folder_reading *r, struct slurmdl_error *err)
{
    int rv;

    error_clear (err);
    rv = each_metrics_file (dir, read_attempt_file, r, err);
    if (rv != 0 || !*r->damage.text)
        return rv;
    errno = EBADMSG;
    return errorf (err, "%s", r->damage.text);
}

int slurmdl_metrics_read_dir (const char *dir, slurmdl_row_f f, void *arg,
                              struct slurmdl_error *err)
{
    return read_folder (dir, &(struct folder_reading){ .row = f, .arg = arg }, err);
}

int slurmdl_records_read_dir (const char *dir, slurmdl_record_f f, void *arg,
                              struct slurmdl_error *err)
{
    return read_folder (dir, &(struct folder_reading){ .record = f, .arg = arg }, err);
}
