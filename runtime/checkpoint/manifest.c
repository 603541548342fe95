/* SPDX-License-Identifier: Apache-2.0 */
/* Read and check the manifest of a checkpoint. */
#include "runtime/checkpoint/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/storage/crc32c.h"
#include "runtime/storage/io.h"
#include "runtime/storage/origin.h"
#include "runtime/storage/tensor.h"

/* ---- everything except data ---- */

static int by_offset (const void *a, const void *b)
{
    const struct part *x = a;
    const struct part *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static struct part *data_parts (const struct manifest *m, uint64_t length, size_t *n)
{
    struct part *list = calloc (m->n + 1, sizeof (*list));
    uint64_t at = 0;

    *n = 0;
    for (hsize_t i = 0; list && i < m->n; i++)
        if (m->rows[i].bytes)
            list[(*n)++] = (struct part){ m->rows[i].offset, m->rows[i].bytes };
    if (list)
        qsort (list, *n, sizeof (*list), by_offset);
    for (size_t i = 0; list && i < *n; i++) {
        if (list[i].at < at || list[i].at > length || list[i].bytes > length - list[i].at) {
            free (list);
            errno = EBADMSG;
            return NULL;
        }
        at = list[i].at + list[i].bytes;
    }
    return list;
}

struct part *manifest_rest (const struct manifest *m, uint64_t length, size_t *n)
{
    size_t ndata;
    struct part *data = data_parts (m, length, &ndata);
    struct part *rest = data ? calloc (ndata + 1, sizeof (*rest)) : NULL;
    uint64_t at = 0;

    *n = 0;
    for (size_t i = 0; rest && i <= ndata; i++) {
        uint64_t end = i < ndata ? data[i].at : length;
        if (end > at)
            rest[(*n)++] = (struct part){ at, end - at };
        if (i < ndata)
            at = data[i].at + data[i].bytes;
    }
    free (data);
    return rest;
}

/* ---- shards ---- */

struct manifest_row *manifest_find (const struct manifest *m, const char *name)
{
    return name_index_find (&m->names, m->rows, sizeof (*m->rows), name);
}

const struct shard_row *manifest_shard (const struct manifest *m, const struct manifest_row *row,
                                        uint32_t i, struct shard_row *whole)
{
    if (row->shards)
        return &m->shards[row->crc + i];
    *whole = (struct shard_row){ .tensor = (uint32_t)(row - m->rows), .crc = row->crc };
    memcpy (whole->dims, row->dims, sizeof (whole->dims));
    return whole;
}

struct slab shard_slab (const struct manifest_row *row, const struct shard_row *s)
{
    struct slab slab = { .ndims = (int)row->ndims };

    memcpy (slab.offset, s->offset, sizeof (slab.offset));
    memcpy (slab.dims, s->dims, sizeof (slab.dims));
    return slab;
}

static int compare_rows (const void *a, const void *b)
{
    const struct slab *x = a;
    const struct slab *y = b;

    return x->offset[0] < y->offset[0] ? -1 : x->offset[0] > y->offset[0];
}

static bool overlap (struct slab *list, uint32_t n)
{
    struct slab both;

    qsort (list, n, sizeof (*list), compare_rows);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n && list[k].offset[0] < list[i].offset[0] + list[i].dims[0];
             k++)
            if (slab_overlap (&list[i], &list[k], &both))
                return true;
    return false;
}

/* Slabs that do not overlap cover a tensor if they have the same number of elements. */
static bool tensor_is_covered (const struct manifest *m, const struct manifest_row *row)
{
    struct slab all = slab_whole ((int)row->ndims, row->dims);
    struct slab *list = calloc (row->shards + 1, sizeof (*list));
    uint64_t sum = 0;
    bool ok = list != NULL;

    for (uint32_t i = 0; ok && i < row->shards; i++) {
        list[i] = shard_slab (row, &m->shards[row->crc + i]);
        ok = slab_fits (&list[i], row->dims)
             && !__builtin_add_overflow (sum, slab_elements (&list[i]), &sum);
    }
    ok = ok && sum == slab_elements (&all) && !overlap (list, row->shards);
    free (list);
    return ok;
}

bool manifest_covered (const struct manifest *m, char *name)
{
    for (hsize_t i = 0; i < m->n; i++)
        if (m->rows[i].shards && !tensor_is_covered (m, &m->rows[i])) {
            memcpy (name, m->rows[i].name, DATASET_NAME_SIZE);
            return false;
        }
    return true;
}

/* ---- read ---- */

static int fail_damaged_manifest (void)
{
    errno = EBADMSG;
    return -1;
}

static int load_trailer (int fd, uint64_t size, struct trailer *t)
{
    size_t n = sizeof (*t);

    if (size < n)
        return fail_damaged_manifest ();
    if (io_read_at (fd, t, n, (off_t)(size - n)) < 0)
        return -1;
    if (memcmp (t->magic, "SLURMDL1", sizeof (t->magic))
        || t->crc != crc32c (0, t, n - sizeof (t->crc)))
        return fail_damaged_manifest ();
    return 0;
}

/* A trailer of any version, whatever its size, begins with its name and ends with
 * its CRC.
 */
static bool is_newer (int fd, uint64_t size)
{
    enum { LEAST = 16, MOST = 512 };
    char buf[MOST];
    size_t n = size < MOST ? (size_t)size : MOST;
    uint32_t crc;

    if (n < LEAST || io_read_at (fd, buf, n, (off_t)(size - n)) < 0)
        return false;
    memcpy (&crc, buf + n - sizeof (crc), sizeof (crc));
    for (const char *t = buf; t <= buf + n - LEAST; t++)
        if (!memcmp (t, "SLURMDL", 7) && t[7] > '1' && t[7] <= '9'
            && crc == crc32c (0, t, (size_t)(buf + n - t) - sizeof (crc)))
            return true;
    return false;
}

static bool table_fits (uint64_t at, uint64_t n, size_t row, uint64_t length)
{
    return at <= length && n <= (length - at) / row;
}

static int read_trailer (int fd, struct trailer *t)
{
    struct stat st;
    uint64_t size;

    if (fstat (fd, &st) < 0)
        return -1;
    size = origin_at (fd, (uint64_t)st.st_size);
    if (load_trailer (fd, size, t) < 0) {
        if (errno == EBADMSG && is_newer (fd, size))
            errno = EPROTONOSUPPORT;
        return -1;
    }
    return t->length == size - sizeof (*t)
                   && table_fits (t->manifest, t->rows, sizeof (struct manifest_row), t->length)
                   && table_fits (t->shards, t->nshards, sizeof (struct shard_row), t->length)
               ? 0
               : fail_damaged_manifest ();
}

static int crc_part (int fd, const struct part *p, uint32_t *crc)
{
    unsigned char buf[65536];
    uint64_t at = p->at;
    uint64_t end = p->at + p->bytes;

    while (at < end) {
        size_t n = end - at < sizeof (buf) ? (size_t)(end - at) : sizeof (buf);
        if (io_read_at (fd, buf, n, (off_t)at) < 0)
            return -1;
        *crc = crc32c (*crc, buf, n);
        at += n;
    }
    return 0;
}

/* Whether the part can be padding before the next tensor: zeros without a meaning. */
static bool is_padding (const struct part *p)
{
    return p->at > 0 && p->bytes < MANIFEST_ALIGNMENT
           && (p->at + p->bytes) % MANIFEST_ALIGNMENT == 0;
}

static uint32_t crc_zeros (uint32_t crc, size_t n)
{
    static const unsigned char zeros[MANIFEST_ALIGNMENT];

    return crc32c (crc, zeros, n);
}

/* CRC of everything except data.  With 'guess', assume that padding is zero instead
 * of reading it, because reading between tensors would defeat the disk's
 * read-ahead.
 */
static int rest_crc (int fd, const struct manifest *m, uint64_t length, bool guess, uint32_t *crc)
{
    size_t n;
    struct part *rest = manifest_rest (m, length, &n);
    int rv = rest ? 0 : -1;

    *crc = 0;
    for (size_t i = 0; rv == 0 && i < n; i++)
        if (guess && is_padding (&rest[i]))
            *crc = crc_zeros (*crc, rest[i].bytes);
        else
            rv = crc_part (fd, &rest[i], crc);
    free (rest);
    return rv;
}

/* The guess fails if HDF5 put metadata between tensors; then read everything. */
static int check_rest (int fd, struct manifest *m, const struct trailer *t)
{
    uint32_t crc;

    if (rest_crc (fd, m, t->length, true, &crc) < 0)
        return -1;
    m->guessed = crc == t->rest_crc;
    m->length = t->length;
    m->rest_crc = t->rest_crc;
    return m->guessed ? 0 : manifest_check_rest (fd, m);
}

int manifest_check_rest (int fd, const struct manifest *m)
{
    uint32_t crc;

    if (rest_crc (fd, m, m->length, false, &crc) < 0)
        return -1;
    return crc == m->rest_crc ? 0 : fail_damaged_manifest ();
}

/* A checksum is no signature: the file may be malicious. */
static bool row_is_sane (const struct manifest *m, const struct manifest_row *r)
{
    uint64_t bytes;

    if (!memchr (r->name, '\0', sizeof (r->name)) || r->ndims > DIMS_MAX
        || tensor_bytes (r->type, (int)r->ndims, r->dims, &bytes) < 0 || bytes != r->bytes)
        return false;
    if (r->shards && (r->crc > m->nshards || r->shards > m->nshards - r->crc || r->ndims == 0))
        return false;
    for (uint32_t i = 0; i < r->shards; i++)
        if (m->shards[r->crc + i].tensor != (uint32_t)(r - m->rows))
            return false;
    return true;
}

static int check_manifest_rows (const struct manifest *m)
{
    char name[DATASET_NAME_SIZE];

    for (hsize_t i = 0; i < m->n; i++)
        if (!row_is_sane (m, &m->rows[i]))
            return fail_damaged_manifest ();
    errno = 0;
    return manifest_covered (m, name) ? 0 : errno == ENOMEM ? -1 : fail_damaged_manifest ();
}

static int index_rows (struct manifest *m)
{
    int rv = 0;

    for (hsize_t i = 0; rv == 0 && i < m->n; i++)
        rv = name_index_add (&m->names, m->rows, sizeof (*m->rows), i);
    return rv;
}

static void *read_table (int fd, uint64_t at, uint64_t n, size_t row)
{
    void *rows = malloc (n * row + 1);

    if (rows && io_read_at (fd, rows, n * row, (off_t)at) == 0)
        return rows;
    free (rows);
    return NULL;
}

int manifest_read (int fd, struct manifest *m)
{
    struct trailer t;
    int e;

    *m = (struct manifest){ 0 };
    if (read_trailer (fd, &t) == 0) {
        m->step = t.step;
        m->n = t.rows;
        m->offset = t.manifest;
        m->nshards = t.nshards;
        m->shards_offset = t.shards;
        m->rows = read_table (fd, t.manifest, t.rows, sizeof (*m->rows));
        m->shards = read_table (fd, t.shards, t.nshards, sizeof (*m->shards));
        if (m->rows && m->shards && check_rest (fd, m, &t) == 0 && check_manifest_rows (m) == 0
            && index_rows (m) == 0)
            return 0;
    }
    e = errno;
    manifest_free (m);
    errno = e;
    return -1;
}

void manifest_free (struct manifest *m)
{
    free (m->rows);
    free (m->shards);
    name_index_free (&m->names);
    m->rows = NULL;
    m->shards = NULL;
    m->n = 0;
    m->nshards = 0;
}
