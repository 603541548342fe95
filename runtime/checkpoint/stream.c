/* SPDX-License-Identifier: Apache-2.0 */
/* Write a checkpoint tensor by tensor. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/fetch.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"
#include "runtime/storage/origin.h"
#include "runtime/storage/tensor.h"

enum { LITTLE = 64 << 10, LITTLE_ROOM = 1 << 20 };

struct slurmdl_writer {
    struct draft draft;
    uint32_t owner; /* owner of the data; 0: the current user */
    /* small adjacent tensors that are not written yet */
    unsigned char *little;
    size_t nlittle;
    uint64_t at; /* their place in the file */
    char path[PATH_MAX];
    char tmp[PATH_MAX];
};

struct slurmdl_writer *slurmdl_writer_open (const char *path, int64_t step,
                                            struct slurmdl_error *err)
{
    struct slurmdl_writer *w;

    error_clear (err);
    if (strlen (path) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        errorf (err, "%s: the path is too long", path);
        return NULL;
    }
    if (link_may_replace (path, err) < 0)
        return NULL;
    if (!(w = calloc (1, sizeof (*w)))) {
        errorf (err, "out of memory");
        return NULL;
    }
    memcpy (w->path, path, strlen (path));
    link_tmp_name (w->tmp, sizeof (w->tmp), path);
    if (draft_create (&w->draft, w->tmp, step) == 0)
        return w;
    errorf (err, "%s: cannot write: %s", path, strerror (errno));
    slurmdl_writer_abort (w);
    return NULL;
}

/* Enter the checksums of what was written, for one slab or several. */
static int put_sums (struct manifest *m, struct manifest_row *row, const struct save_job *job)
{
    struct shard_row *s;

    if (job->n == 1 && !job->list[0].shard) {
        row->crc = job->list[0].crc;
        return 0;
    }
    if (!(s = realloc (m->shards, (m->nshards + job->n) * sizeof (*s))))
        return -1;
    m->shards = s;
    row->crc = (uint32_t)m->nshards;
    row->shards = (uint32_t)job->n;
    s += m->nshards;
    m->nshards += job->n;
    for (size_t i = 0; i < job->n; i++) {
        const struct piece *p = &job->list[i];
        s[i] = (struct shard_row){ .tensor = (uint32_t)(row - m->rows), .crc = p->crc };
        memcpy (s[i].offset, p->slab.offset, sizeof (s[i].offset));
        memcpy (s[i].dims, p->slab.dims, sizeof (s[i].dims));
    }
    return 0;
}

static int write_little (struct slurmdl_writer *w)
{
    size_t n = w->nlittle;

    w->nlittle = 0;
    return n ? io_write_at (w->draft.fd, w->little, n, (off_t)w->at) : 0;
}

static int keep_little (struct slurmdl_writer *w, struct manifest_row *row, const struct region *r)
{
    if (!w->little && !(w->little = malloc (LITTLE_ROOM)))
        return -1;
    if ((w->at + w->nlittle != row->offset || w->nlittle + r->bytes > LITTLE_ROOM)
        && write_little (w) < 0)
        return -1;
    if (w->nlittle == 0)
        w->at = row->offset;
    memcpy (w->little + w->nlittle, r->data, r->bytes);
    w->nlittle += r->bytes;
    row->crc = crc32c (0, r->data, r->bytes);
    return 0;
}

static int write_tensor (struct slurmdl_writer *w, struct manifest_row *row, const struct region *r)
{
    struct save_job job = { 0 };
    int rv = job_add (&job, r);
    int e;

    if (rv == 0 && r->bytes && r->bytes <= LITTLE && !job.list[0].device) {
        job_free (&job);
        return keep_little (w, row, r);
    }
    for (size_t i = 0; i < job.n; i++)
        job.list[i].offset = row->offset;
    if (rv == 0)
        rv = write_pieces (w->tmp, w->draft.fd, job.list, job.n, NULL);
    if (rv == 0)
        rv = put_sums (&w->draft.m, row, &job);
    e = errno;
    job_free (&job);
    errno = e;
    return rv;
}

int slurmdl_writer_add (struct slurmdl_writer *w, const struct slurmdl_tensor *t, const void *data,
                        struct slurmdl_error *err)
{
    struct manifest_row *row;
    struct region r = { .type = t->type, .data = (void *)data };

    error_clear (err);
    if (!memchr (t->name, '\0', sizeof (t->name)) || !tensor_name_ok (t->name)
        || tensor_bytes (t->type, t->ndims, t->dims, &r.bytes) < 0) {
        errno = EINVAL;
        return errorf (err, "'%.127s': bad name, type or shape of a tensor", t->name);
    }
    row = draft_add (&w->draft, t->name, t->type, t->ndims, t->dims);
    if (row) {
        r.slab = slab_whole (t->ndims, t->dims);
        memcpy (r.dims, r.slab.dims, sizeof (r.dims));
        if (write_tensor (w, row, &r) == 0)
            return 0;
    }
    return errorf (err, "%s: cannot write '%s': %s", w->path, t->name,
                   row || errno != EINVAL ? strerror (errno)
                                          : "the name exists, or is a group of another name");
}

void slurmdl_writer_set_owner (struct slurmdl_writer *w, uint32_t owner)
{
    w->owner = owner;
}

int slurmdl_writer_commit (struct slurmdl_writer *w, struct slurmdl_error *err)
{
    int rv = -1;
    int e;

    error_clear (err);
    if (write_little (w) == 0 && draft_lay_out (&w->draft) == 0 && draft_seal (&w->draft) == 0
        && (!w->owner || origin_put (w->draft.fd, w->owner) == 0) && fsync (w->draft.fd) == 0
        && check_file (w->tmp, w->draft.m.step, NULL) == 0 && finish_name (w->tmp, w->path) == 0)
        rv = 0;
    if (rv < 0)
        errorf (err, "%s: cannot write: %s", w->path, strerror (errno));
    e = errno;
    if (rv == 0)
        *w->tmp = '\0'; /* the name is gone, or is the target of the link */
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
    free (w->little);
    if (*w->tmp)
        unlink (w->tmp);
    free (w);
    errno = e;
}
