/* SPDX-License-Identifier: Apache-2.0 */
/* Read metrics files, also while they are written. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "runtime/h5.h"
#include "runtime/journal.h"

struct table {
    char (*names)[NAME_SIZE];
    struct row *rows;
    hsize_t nnames, nrows;
};

static int damaged (const char *path, struct slurmdl_error *err)
{
    errno = EBADMSG;
    return errorf (err, "%s: is no metrics file, or is damaged", path);
}

/* Read a whole one-dimensional dataset whose records have 'size' bytes. */
static void *
read_dataset (hid_t file, const char *name, size_t size, hsize_t *n)
{
    hid_t d = H5Dopen2 (file, name, H5P_DEFAULT);
    hid_t type = d >= 0 ? H5Dget_type (d) : -1;
    hid_t space = d >= 0 ? H5Dget_space (d) : -1;
    void *buf = NULL;

    if (d >= 0 && H5Tget_size (type) == size
        && H5Sget_simple_extent_ndims (space) == 1
        && H5Sget_simple_extent_dims (space, n, NULL) == 1
        && (buf = malloc (*n * size + 1))
        && H5Dread (d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buf) < 0) {
        free (buf);
        buf = NULL;
    }
    if (space >= 0)
        H5Sclose (space);
    if (type >= 0)
        H5Tclose (type);
    if (d >= 0)
        H5Dclose (d);
    return buf;
}

/* Rows first: the names that they use are then in the file. */
static int read_table (const char *path, struct table *t)
{
    hid_t access = h5_access ();
    hid_t file = H5Fopen (path, H5F_ACC_RDONLY, access);

    if (file >= 0) {
        t->rows =
            read_dataset (file, "metrics", sizeof (struct row), &t->nrows);
        t->names = read_dataset (file, "names", NAME_SIZE, &t->nnames);
        H5Fclose (file);
    }
    H5Pclose (access);
    return t->rows && t->names ? 0 : -1;
}

/* A row may be newer than the list of names that this handle saw. */
static int give_rows (const struct table *t, slurmdl_row_f f, void *arg)
{
    int rv = 0;

    for (hsize_t i = 1; rv == 0 && i < t->nrows; i++) {
        const struct row *r = &t->rows[i];
        struct slurmdl_row row = { r->step, r->time, r->value, NULL };
        if (r->crc != row_crc (r) || r->name >= t->nnames)
            break;
        row.name = t->names[r->name];
        rv = f (&row, arg);
    }
    return rv;
}

int slurmdl_metrics_read (const char *path,
                          slurmdl_row_f f,
                          void *arg,
                          struct slurmdl_error *err)
{
    struct table t = { 0 };
    struct h5_quiet q;
    int rv;

    h5_quiet_begin (&q);
    rv = read_table (path, &t);
    h5_quiet_end (&q);
    if (rv < 0)
        damaged (path, err);
    else
        rv = give_rows (&t, f, arg);
    int e = errno;
    free (t.names);
    free (t.rows);
    errno = e;
    return rv;
}

static int is_metrics (const struct dirent *e)
{
    size_t n = strlen (e->d_name);

    return !strncmp (e->d_name, "metrics.", 8) && n >= 10
           && !strcmp (e->d_name + n - 3, ".h5");
}

int slurmdl_metrics_read_dir (const char *dir,
                              slurmdl_row_f f,
                              void *arg,
                              struct slurmdl_error *err)
{
    struct dirent **list;
    int n = scandir (dir, &list, is_metrics, alphasort);
    char path[PATH_MAX];
    int rv = 0;

    if (n < 0)
        return errno == ENOENT ? 0
                               : errorf (err, "%s: %s", dir, strerror (errno));
    for (int i = 0; i < n; i++) {
        snprintf (path, sizeof (path), "%s/%s", dir, list[i]->d_name);
        if (rv == 0)
            rv = slurmdl_metrics_read (path, f, arg, err);
        free (list[i]);
    }
    free (list);
    return rv;
}
