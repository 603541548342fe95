/* SPDX-License-Identifier: Apache-2.0 */
/* Merge the ranks' pieces into one checkpoint, and give it its name. */
#include "runtime/checkpoint/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/run/session.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

/* One piece of a rank, without its data. */
struct entry {
    char name[DATASET_NAME_SIZE];
    uint32_t type;
    uint32_t shard;
    uint64_t dims[DIMS_MAX];
    struct slab slab;
    uint64_t bytes;
};

struct plan {
    int64_t step;
    uint64_t n;
    struct entry list[];
};

struct part_of {
    long rank;
    struct plan *plan;
    void *layout; /* the reply to this rank */
    size_t first; /* index of its first entry */
};

struct merge_item {
    const struct entry *entry;
    long rank;
    size_t i; /* index in the rank's plan */
    int64_t row;
    int64_t shard; /* -1: the whole tensor */
};

struct merge {
    long ranks;
    struct part_of *parts;
    struct merge_item *items; /* sorted by name, then by rank */
    size_t n;
    struct draft draft;
};

static void merge_free (struct merge *g)
{
    for (long r = 0; g->parts && r < g->ranks; r++) {
        free (g->parts[r].plan);
        free (g->parts[r].layout);
    }
    free (g->parts);
    free (g->items);
}

/* Make the plan of a job, and set its size in bytes. */
static struct plan *make_save_plan (const struct save_job *job, size_t *size)
{
    struct plan *p;

    *size = sizeof (*p) + job->n * sizeof (*p->list);
    if (!(p = calloc (1, *size)))
        return NULL;
    p->step = job->step;
    p->n = job->n;
    for (size_t i = 0; i < job->n; i++) {
        const struct piece *from = &job->list[i];
        struct entry *e = &p->list[i];
        memcpy (e->name, from->name, sizeof (e->name));
        e->type = from->type;
        e->shard = from->shard;
        memcpy (e->dims, from->dims, sizeof (e->dims));
        e->slab = from->slab;
        e->bytes = from->bytes;
    }
    return p;
}

static int compare_names (const void *a, const void *b)
{
    const struct merge_item *x = a;
    const struct merge_item *y = b;
    int c = strcmp (x->entry->name, y->entry->name);

    if (c || x->rank != y->rank)
        return c ? c : x->rank < y->rank ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int list_items (struct merge *g)
{
    size_t k = 0;

    for (long r = 0; r < g->ranks; r++)
        g->n += g->parts[r].plan->n;
    if (!(g->items = calloc (g->n + 1, sizeof (*g->items))))
        return -1;
    for (long r = 0; r < g->ranks; r++)
        for (size_t i = 0; i < g->parts[r].plan->n; i++)
            g->items[k++] =
                (struct merge_item){ .entry = &g->parts[r].plan->list[i], .rank = r, .i = i };
    qsort (g->items, g->n, sizeof (*g->items), compare_names);
    return 0;
}

static int check_same (const struct merge_item *a, const struct merge_item *b,
                       struct slurmdl_error *err)
{
    const struct entry *x = a->entry;
    const struct entry *y = b->entry;

    if (x->shard && y->shard && x->type == y->type && x->slab.ndims == y->slab.ndims
        && !memcmp (x->dims, y->dims, sizeof (x->dims)))
        return 0;
    errno = EINVAL;
    return errorf (err,
                   "'%s': ranks %ld and %ld protect it with another type or "
                   "shape, or one of them not as a shard",
                   x->name, a->rank, b->rank);
}

static int add_shard (struct manifest *m, const struct merge_item *t)
{
    struct shard_row *s = &m->shards[m->nshards++];

    *s = (struct shard_row){ .tensor = (uint32_t)t->row, .rank = (uint32_t)t->rank };
    memcpy (s->offset, t->entry->slab.offset, sizeof (s->offset));
    memcpy (s->dims, t->entry->slab.dims, sizeof (s->dims));
    return 0;
}

/* Add the tensor that the items from 'i' on with the same name make up.  Returns
 * the index after them, or 0 on error.
 */
static size_t add_tensor (struct merge *g, size_t i, struct slurmdl_error *err)
{
    struct manifest *m = &g->draft.m;
    const struct merge_item *first = &g->items[i];
    const struct entry *e = first->entry;
    struct manifest_row *row = draft_add (&g->draft, e->name, e->type, e->slab.ndims, e->dims);

    if (!row) {
        errorf (err, "'%s': cannot save: %s", e->name,
                errno == EINVAL ? "the name is a group of another name" : strerror (errno));
        return 0;
    }
    row->crc = e->shard ? (uint32_t)m->nshards : 0;
    for (; i < g->n && !strcmp (g->items[i].entry->name, e->name); i++) {
        struct merge_item *t = &g->items[i];
        t->row = row - m->rows;
        t->shard = -1;
        if (t != first && check_same (first, t, err) < 0)
            return 0;
        if (!e->shard || t->entry->bytes == 0)
            continue;
        t->shard = (int64_t)m->nshards;
        add_shard (m, t);
        row->shards++;
    }
    /* an empty tensor needs no shard */
    if (e->shard && row->shards == 0 && row->bytes == 0)
        row->crc = 0;
    else if (e->shard && row->shards == 0)
        return errno = EINVAL, errorf (err, "'%s': no rank protects a slab of it", e->name), 0;
    return i;
}

/* Create the file 'tmp' for the plans in 'parts'.  Fails with EINVAL if they
 * contradict each other, or if the slabs of a tensor overlap or leave gaps.
 */
static int merge_lay_out (struct merge *g, const char *tmp, int64_t step, struct slurmdl_error *err)
{
    struct manifest *m = &g->draft.m;
    char name[DATASET_NAME_SIZE];

    if (list_items (g) < 0 || draft_create (&g->draft, tmp, step) < 0
        || !(m->shards = calloc (g->n + 1, sizeof (*m->shards))))
        return errorf (err, "%s: cannot create: %s", tmp, strerror (errno));
    for (size_t i = 0; i < g->n;)
        if ((i = add_tensor (g, i, err)) == 0)
            return -1;
    if (!manifest_covered (m, name)) {
        errno = EINVAL;
        return errorf (err, "'%s': the shards of the ranks overlap, or do not cover it", name);
    }
    if (draft_lay_out (&g->draft) < 0 || draft_reserve (&g->draft) < 0)
        return errorf (err, "%s: cannot lay out the file: %s", tmp, strerror (errno));
    return 0;
}

/* Enter the checksums of a rank's pieces into the manifest. */
static void merge_set_crc (struct merge *g, long rank, const uint32_t *crcs)
{
    struct manifest *m = &g->draft.m;

    for (size_t k = 0; k < g->n; k++) {
        const struct merge_item *t = &g->items[k];
        if (t->rank != rank)
            continue;
        if (t->shard >= 0)
            m->shards[t->shard].crc = crcs[t->i];
        else if (m->rows[t->row].shards == 0 && !t->entry->shard)
            m->rows[t->row].crc = crcs[t->i];
    }
}

/* Set the offsets and checksums of rank 0's own job. */
static void merge_own_offsets (const struct merge *g, struct save_job *job)
{
    for (size_t k = 0; k < g->n; k++)
        if (g->items[k].rank == 0)
            job->list[g->items[k].i].offset = g->draft.m.rows[g->items[k].row].offset;
}

static int merge_own_crcs (struct merge *g, const struct save_job *job)
{
    uint32_t *crcs = calloc (job->n + 1, sizeof (*crcs));

    if (!crcs)
        return -1;
    for (size_t i = 0; i < job->n; i++)
        crcs[i] = job->list[i].crc;
    merge_set_crc (g, 0, crcs);
    free (crcs);
    return 0;
}

int finish_name (const char *tmp, const char *path)
{
    enum link_result linked = link_if_absent (tmp, path);

    /* A step is saved again only after a restore from an older one.  The file of
     * that name is then this attempt's own and out of date.
     */
    return linked == LINK_TAKEN ? link_replace (tmp, path) : linked == LINKED ? 0 : -1;
}

/* Read back a small file completely, but only the tables of a large one. */
static int read_back (const char *tmp, const struct draft *d)
{
    size_t size = d->m.n * sizeof (*d->m.rows);
    struct stat st;
    void *rows;
    int64_t step;
    int rv = -1;

    if (d->length <= SMALL_FILE)
        return slurmdl_checkpoint_verify (tmp, &step, NULL);
    if (fstat (d->fd, &st) < 0 || !(rows = malloc (size + 1)))
        return -1;
    if ((uint64_t)st.st_size == d->length + sizeof (struct trailer)
        && io_read_at (d->fd, rows, size, (off_t)d->m.offset) == 0
        && !memcmp (rows, d->m.rows, size))
        rv = 0;
    free (rows);
    if (rv < 0)
        errno = EIO;
    return rv;
}

/* Seal the complete file, check it, and give it its name. */
static int finish_file (struct draft *d, const char *tmp, const char *path,
                        struct slurmdl_error *err)
{
    if (draft_seal (d) < 0 || fsync (d->fd) < 0 || read_back (tmp, d) < 0
        || finish_name (tmp, path) < 0)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    return 0;
}

int finish_paths (const char *dir, int64_t step, char *tmp, char *path, struct slurmdl_error *err)
{
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%s/ckpt", dir);
    if (snprintf (path, PATH_MAX, "%s/%08lld.h5", folder, (long long)step) > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    if (own_folder_make (folder, 0777, err) < 0)
        return -1;
    link_tmp_name (tmp, PATH_MAX, path);
    return 0;
}

/* Slower than any disk: sets how long to wait for other ranks while they write. */
enum { BYTES_A_SECOND = 20 << 20 };

/* ---- messages between ranks ---- */

/* The result of a stage: 'error' is an errno, or 0. */
struct word {
    int32_t error;
    uint32_t n;
    char text[sizeof (struct slurmdl_error)];
    char path[PATH_MAX];
};

/* Rank 0 sends each rank the offsets of its pieces; the rank returns their checksums. */
struct layout {
    struct word word;
    uint64_t all; /* bytes of the checkpoint */
    uint64_t offsets[];
};

struct done {
    struct word word;
    uint32_t crcs[];
};

static void set_word (struct word *w, int error, const struct slurmdl_error *err)
{
    w->error = error;
    if (err)
        memcpy (w->text, err->text, sizeof (w->text));
}

static int word_error (const struct word *w, struct slurmdl_error *err)
{
    if (w->error == 0)
        return 0;
    errno = w->error;
    return errorf (err, "%.1023s", w->text);
}

/* ---- rank 0 of several ---- */

static void stage_name (char *buf, unsigned save, const char *what, long rank)
{
    snprintf (buf, 64, "save%u.%s%ld", save, what, rank);
}

static int collect_plans (struct session *t, unsigned save, const struct save_job *job,
                          struct merge *g, struct slurmdl_error *err)
{
    char name[64];
    size_t n;

    if (!(g->parts[0].plan = make_save_plan (job, &n)))
        return errorf (err, "out of memory");
    for (long r = 1; r < g->ranks; r++) {
        struct plan *p;
        stage_name (name, save, "plan", 0);
        if (session_get (t, r, name, 0, (void **)&p, &n, err) < 0)
            return -1;
        g->parts[r].plan = p;
        if (n < sizeof (*p) || n != sizeof (*p) + p->n * sizeof (*p->list)) {
            errno = EBADMSG;
            return errorf (err, "rank %ld runs another release of slurm-dl", r);
        }
        if (p->step != job->step) {
            errno = EINVAL;
            return errorf (err, "rank %ld saves step %lld, rank 0 step %lld", r, (long long)p->step,
                           (long long)job->step);
        }
    }
    return 0;
}

static int send_layouts (struct session *t, unsigned save, struct merge *g, const char *tmp,
                         struct slurmdl_error *err)
{
    char name[64];

    for (long r = 1; r < g->ranks; r++)
        if (!(g->parts[r].layout =
                  calloc (1, sizeof (struct layout) + g->parts[r].plan->n * sizeof (uint64_t))))
            return errorf (err, "out of memory");
    for (size_t k = 0; k < g->n; k++)
        if (g->items[k].rank > 0)
            ((struct layout *)g->parts[g->items[k].rank].layout)->offsets[g->items[k].i] =
                g->draft.m.rows[g->items[k].row].offset;
    for (long r = 1; r < g->ranks; r++) {
        struct layout *l = g->parts[r].layout;
        snprintf (l->word.path, sizeof (l->word.path), "%s", tmp);
        l->all = g->draft.length;
        l->word.n = (uint32_t)g->parts[r].plan->n;
        stage_name (name, save, "layout", r);
        if (session_put (t, name, l, sizeof (*l) + l->word.n * sizeof (uint64_t)) < 0)
            return errorf (err, "cannot notify rank %ld: %s", r, strerror (errno));
    }
    return 0;
}

static int collect_crcs (struct session *t, unsigned save, struct merge *g,
                         struct slurmdl_error *err)
{
    double extra = (double)g->draft.length / BYTES_A_SECOND;
    char name[64];

    stage_name (name, save, "done", 0);
    for (long r = 1; r < g->ranks; r++) {
        struct done *d;
        size_t n;
        int rv = session_get (t, r, name, extra, (void **)&d, &n, err);
        if (rv == 0 && n >= sizeof (*d))
            rv = word_error (&d->word, err);
        if (rv == 0 && n != sizeof (*d) + g->parts[r].plan->n * sizeof (uint32_t))
            rv = errorf (err, "rank %ld runs another release of slurm-dl", r);
        if (rv == 0)
            merge_set_crc (g, r, d->crcs);
        free (d);
        if (rv < 0)
            return -1;
    }
    return 0;
}

/* A rank sends a plan only after it has finished the previous save. */
static void clean_up (struct session *t, unsigned save)
{
    static const char *const stages[] = { "plan", "done", "result" };
    char name[64];

    for (int i = 0; i < 3; i++) {
        stage_name (name, save, stages[i], 0);
        session_forget (t, name);
    }
}

static void clean_layouts (struct session *t, unsigned save, long ranks)
{
    char name[64];

    for (long r = 1; r < ranks; r++) {
        stage_name (name, save, "layout", r);
        session_forget (t, name);
    }
}

static int lead_stages (struct slurmdl *run, unsigned save, struct save_job *job, struct merge *g,
                        const char *tmp, const char *path, struct slurmdl_error *err)
{
    struct session *t = run->session;

    if (collect_plans (t, save, job, g, err) < 0)
        return -1;
    if (save > 0) {
        clean_up (t, save - 1);
        clean_layouts (t, save - 1, g->ranks);
    }
    if (merge_lay_out (g, tmp, job->step, err) < 0 || send_layouts (t, save, g, tmp, err) < 0)
        return -1;
    merge_own_offsets (g, job);
    if (write_pieces (tmp, g->draft.fd, job->list, job->n, NULL) < 0 || merge_own_crcs (g, job) < 0)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    if (collect_crcs (t, save, g, err) < 0)
        return -1;
    return finish_file (&g->draft, tmp, path, err);
}

/* Tell the ranks that wait for a layout that there will be none. */
static void refuse_layout (struct session *t, unsigned save, long ranks, const struct word *w)
{
    struct layout *l = calloc (1, sizeof (*l));
    char name[64];

    for (long r = 1; l && r < ranks; r++) {
        l->word = *w;
        stage_name (name, save, "layout", r);
        session_put (t, name, l, sizeof (*l));
    }
    free (l);
}

/* Rank 0's part of a save by several ranks. */
static int commit_lead (struct slurmdl *run, struct save_job *job, char *path,
                        struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };
    struct merge g = { .ranks = run->size, .draft.fd = -1 };
    unsigned save = session_count (run->session, SESSION_SAVE);
    struct word w = { 0 };
    char tmp[PATH_MAX] = "";
    char name[64];
    int rv;
    int e;

    g.parts = calloc ((size_t)g.ranks, sizeof (*g.parts));
    rv = g.parts ? finish_paths (run->dir, job->step, tmp, path, &own) : -1;
    if (rv == 0)
        rv = lead_stages (run, save, job, &g, tmp, path, &own);
    e = rv < 0 ? errno : 0;
    draft_close (&g.draft);
    merge_free (&g);
    if (rv < 0 && *tmp)
        unlink (tmp);
    set_word (&w, rv < 0 ? (e ? e : EIO) : 0, &own);
    if (rv < 0)
        refuse_layout (run->session, save, run->size, &w);
    stage_name (name, save, "result", 0);
    /* ranks that get no result assume that the save failed */
    if (session_put (run->session, name, &w, sizeof (w)) < 0 && rv == 0) {
        e = errno;
        rv = errorf (&own, "%s: is complete, but the ranks cannot be notified: %s", path,
                     strerror (e));
    }
    if (rv < 0)
        errorf (err, "%s", own.text);
    errno = e;
    return rv;
}

/* ---- another rank ---- */

static int write_mine (struct save_job *job, const struct layout *l, struct slurmdl_error *err)
{
    int fd = inside_open_any (l->word.path, O_RDWR, 0, NULL);
    int rv = -1;
    int e;

    for (size_t i = 0; i < job->n; i++)
        job->list[i].offset = l->offsets[i];
    if (fd >= 0 && write_pieces (l->word.path, fd, job->list, job->n, NULL) == 0
        && fdatasync (fd) == 0)
        rv = 0;
    e = errno;
    if (fd >= 0)
        close (fd);
    errno = e;
    return rv == 0 ? 0 : errorf (err, "%s: cannot save: %s", l->word.path, strerror (errno));
}

static int put_done (struct session *t, unsigned save, const struct save_job *job, int error,
                     const struct slurmdl_error *err)
{
    size_t size = sizeof (struct done) + job->n * sizeof (uint32_t);
    struct done *d = calloc (1, size);
    char name[64];
    int rv;

    if (!d)
        return -1;
    set_word (&d->word, error, err);
    for (size_t i = 0; i < job->n; i++)
        d->crcs[i] = job->list[i].crc;
    stage_name (name, save, "done", 0);
    rv = session_put (t, name, d, size);
    free (d);
    return rv;
}

/* Wait for the layout, or for the message that the save failed. */
static int get_layout (struct session *t, unsigned save, long rank, const struct save_job *job,
                       struct layout **l, struct slurmdl_error *err)
{
    char name[64];
    size_t n;

    stage_name (name, save, "layout", rank);
    if (session_get (t, 0, name, 0, (void **)l, &n, err) < 0)
        return -1;
    if (n >= sizeof (**l) && word_error (&(*l)->word, err) < 0)
        return -1;
    if (n == sizeof (**l) + job->n * sizeof (uint64_t))
        return 0;
    errno = EBADMSG;
    return errorf (err, "rank 0 runs another release of slurm-dl");
}

static int follow_stages (struct slurmdl *run, unsigned save, struct save_job *job, double *extra,
                          struct slurmdl_error *err)
{
    struct session *t = run->session;
    struct layout *l = NULL;
    size_t size;
    struct plan *p = make_save_plan (job, &size);
    char name[64];
    int rv;

    stage_name (name, save, "plan", 0);
    rv = p ? session_put (t, name, p, size) : -1;
    free (p);
    if (rv < 0)
        return errorf (err, "cannot notify rank 0: %s", strerror (errno));
    rv = get_layout (t, save, run->rank, job, &l, err);
    if (rv == 0) {
        *extra = (double)l->all / BYTES_A_SECOND;
        rv = write_mine (job, l, err);
    }
    free (l);
    return rv;
}

static int commit_follow (struct slurmdl *run, struct save_job *job, struct slurmdl_error *err)
{
    struct slurmdl_error own = { "" };
    unsigned save = session_count (run->session, SESSION_SAVE);
    double extra = 0;
    struct word *w;
    char name[64];
    size_t n;
    int rv = follow_stages (run, save, job, &extra, &own);
    int e = rv < 0 ? errno : 0;

    put_done (run->session, save, job, e, &own);
    if (rv < 0) {
        errno = e;
        return errorf (err, "%s", own.text);
    }
    stage_name (name, save, "result", 0);
    if (session_get (run->session, 0, name, extra, (void **)&w, &n, err) < 0)
        return -1;
    rv = n == sizeof (*w) ? word_error (w, err) : -1;
    e = errno;
    free (w);
    errno = e;
    return rv;
}

static int commit_alone (struct slurmdl *run, struct save_job *job, char *path,
                         struct slurmdl_error *err)
{
    struct part_of part = { 0 };
    struct merge g = { .ranks = 1, .parts = &part, .draft.fd = -1 };
    char tmp[PATH_MAX];
    size_t size;
    int rv = -1;

    if (finish_paths (run->dir, job->step, tmp, path, err) < 0)
        return -1;
    if (!(part.plan = make_save_plan (job, &size)))
        errorf (err, "out of memory");
    else if (merge_lay_out (&g, tmp, job->step, err) == 0) {
        merge_own_offsets (&g, job);
        if (write_pieces (tmp, g.draft.fd, job->list, job->n, &g.draft) < 0
            || merge_own_crcs (&g, job) < 0)
            errorf (err, "%s: cannot save: %s", path, strerror (errno));
        else
            rv = finish_file (&g.draft, tmp, path, err);
    }
    int e = errno;
    draft_close (&g.draft);
    free (part.plan);
    free (g.items);
    if (rv < 0)
        unlink (tmp);
    errno = e;
    return rv;
}

int commit (struct slurmdl *run, struct save_job *job, char *path, struct slurmdl_error *err)
{
    *path = '\0';
    if (!job->shared)
        return commit_alone (run, job, path, err);
    if (session_join (run, err) < 0)
        return -1;
    return run->rank == 0 ? commit_lead (run, job, path, err) : commit_follow (run, job, err);
}
