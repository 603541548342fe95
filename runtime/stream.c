/* SPDX-License-Identifier: Apache-2.0 */
/* Write a checkpoint tensor by tensor. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/check.h"
#include "runtime/commit.h"
#include "runtime/draft.h"
#include "runtime/error.h"
#include "runtime/link.h"

struct slurmdl_writer {
    struct draft draft;
    char path[PATH_MAX];
    char tmp[PATH_MAX];
};

struct slurmdl_writer *
slurmdl_writer_open (const char *path, int64_t step, struct slurmdl_error *err)
{
    struct slurmdl_writer *w;

    if (err)
        *err->text = '\0';
    if (strlen (path) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        errorf (err, "%s: the path is too long", path);
        return NULL;
    }
    if (!(w = calloc (1, sizeof (*w)))) {
        errorf (err, "out of memory");
        return NULL;
    }
    memcpy (w->path, path, strlen (path));
    link_tmp_name (w->tmp, sizeof (w->tmp), path);
    if (draft_create (&w->draft, w->tmp, step, 0) == 0)
        return w;
    errorf (err, "%s: cannot write: %s", path, strerror (errno));
    slurmdl_writer_abort (w);
    return NULL;
}

int slurmdl_writer_add (struct slurmdl_writer *w,
                        const struct slurmdl_tensor *t,
                        const void *data,
                        struct slurmdl_error *err)
{
    struct manifest_row *row;
    struct piece p = { .type = t->type, .data = data };

    if (err)
        *err->text = '\0';
    if (!memchr (t->name, '\0', sizeof (t->name))
        || !good_dataset_name (t->name)
        || tensor_bytes (t->type, t->ndims, t->dims, &p.bytes) < 0) {
        errno = EINVAL;
        return errorf (
            err, "'%.127s': bad name, type or shape of a tensor", t->name);
    }
    row = draft_add (&w->draft, t->name, t->type, t->ndims, t->dims);
    if (row) {
        p.slab = slab_whole (t->ndims, t->dims);
        memcpy (p.dims, p.slab.dims, sizeof (p.dims));
        p.offset = row->offset;
        if (write_pieces (w->tmp, w->draft.fd, &p, 1, NULL) == 0) {
            row->crc = p.crc;
            return 0;
        }
    }
    return errorf (err,
                   "%s: cannot write '%s': %s",
                   w->path,
                   t->name,
                   row ? strerror (errno)
                       : "there is one of this name, or it is part of another");
}

int slurmdl_writer_commit (struct slurmdl_writer *w, struct slurmdl_error *err)
{
    int rv = -1;
    int e;

    if (err)
        *err->text = '\0';
    if (draft_lay_out (&w->draft) == 0 && draft_seal (&w->draft) == 0
        && fsync (w->draft.fd) == 0
        && check_file (w->tmp, w->draft.m.step, NULL) == 0
        && give_name (w->tmp, w->path) == 0)
        rv = 0;
    if (rv < 0)
        errorf (err, "%s: cannot write: %s", w->path, strerror (errno));
    e = errno;
    if (rv == 0)
        *w->tmp = '\0'; /* its name is used up, or the name leads to it */
    slurmdl_writer_abort (w);
    errno = e;
    return rv;
}

void slurmdl_writer_abort (struct slurmdl_writer *w)
{
    int e = errno;

    if (!w)
        return;
    draft_close (&w->draft);
    if (*w->tmp)
        unlink (w->tmp);
    free (w);
    errno = e;
}
