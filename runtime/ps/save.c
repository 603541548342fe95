/* SPDX-License-Identifier: Apache-2.0 */
/* A server saves its tables, while it goes on serving. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/thread.h"
#include "runtime/ps/save.h"

/* One save: first the tables are copied, by the thread that serves, then a
 * thread of its own writes the copies.
 */
struct ps_saving {
    const struct slurmdl_ps *ps;
    struct ps_about about;
    struct ps_saved saved;
    char path[PATH_MAX];
    struct ps_saved old[PS_SAVES];
    uint32_t nold;
    struct ps_copy **copies;
    pthread_t thread;
    bool writing;
    atomic_bool written;
    int rv, code;
    struct slurmdl_error why;
};

static const double copy_seconds = 0.001; /* of a turn */

static int write_about (struct ps_saving *v, struct slurmdl_writer *w)
{
    size_t n =
        sizeof (v->about) + v->about.ntables * sizeof (struct ps_about_table);
    struct slurmdl_tensor t = { .name = PS_ABOUT,
                                .type = SLURMDL_U8,
                                .ndims = 1,
                                .dims = { n },
                                .state = 1 };
    unsigned char *bytes = calloc (1, n);
    struct ps_about_table each;
    int rv;

    if (!bytes)
        return errorf (&v->why, "out of memory");
    memcpy (bytes, &v->about, sizeof (v->about));
    for (uint32_t i = 0; i < v->about.ntables; i++) {
        memset (&each, 0, sizeof (each));
        each.spec = v->copies[i]->spec;
        each.rows = v->copies[i]->rows;
        each.missing = v->copies[i]->missing;
        memcpy (bytes + sizeof (v->about) + i * sizeof (each),
                &each,
                sizeof (each));
    }
    rv = slurmdl_writer_add (w, &t, bytes, &v->why);
    free (bytes);
    return rv;
}

static int write_table (struct ps_saving *v,
                        const struct ps_copy *c,
                        struct slurmdl_writer *w)
{
    struct ps_array a[PS_ARRAYS];
    struct slurmdl_tensor t;
    int n = c->missing ? 0 : pssave_arrays (c, a);

    for (int i = 0; i < n; i++) {
        pssave_describe (&c->spec, &a[i], &t);
        if (a[i].rows && slurmdl_writer_add (w, &t, a[i].data, &v->why) < 0)
            return -1;
    }
    return 0;
}

static int write_file (struct ps_saving *v)
{
    struct slurmdl_writer *w =
        slurmdl_writer_open (v->path, v->saved.clock, &v->why);

    if (!w)
        return -1;
    if (write_about (v, w) < 0)
        goto fail;
    for (uint32_t i = 0; i < v->about.ntables; i++)
        if (write_table (v, v->copies[i], w) < 0)
            goto fail;
    return slurmdl_writer_commit (w, &v->why);
fail:
    slurmdl_writer_abort (w);
    return -1;
}

static void destroy_copies (struct ps_saving *v)
{
    for (uint32_t i = 0; v->copies && i < v->about.ntables; i++)
        ps_copy_destroy (v->copies[i]);
    free (v->copies);
    v->copies = NULL;
}

/* To give back much memory and to remove a large file takes time, too. */
static void *write_thread (void *arg)
{
    struct ps_saving *v = arg;

    for (uint32_t i = 0; i < v->nold; i++)
        psstore_remove (v->ps, &v->old[i]);
    v->rv = write_file (v);
    v->code = errno;
    destroy_copies (v);
    atomic_store (&v->written, true);
    return NULL;
}

static void destroy (struct ps_server *s)
{
    struct ps_saving *v = s->saving;

    for (size_t i = 0; i < s->ntables; i++)
        s->tables[i]->copy = NULL;
    destroy_copies (v);
    free (v);
    s->saving = NULL;
}

static int64_t pssave_clock (const struct ps_server *s)
{
    return s->saving ? s->saving->saved.clock : 0;
}

int pssave_begin (struct ps_server *s, struct slurmdl_error *err)
{
    const struct slurmdl_ps *ps = s->ps;
    struct ps_saving *v = calloc (1, sizeof (*v));

    if (!(s->saving = v))
        return errorf (err, "out of memory");
    v->ps = ps;
    v->nold = psstore_old (s, v->old);
    v->saved =
        (struct ps_saved){ s->cut, s->entry->claim, (int64_t)ps->servers };
    v->about = (struct ps_about){ .version = PS_VERSION,
                                  .ntables = (uint32_t)s->ntables,
                                  .servers = ps->servers,
                                  .server = ps->index,
                                  .clock = s->cut };
    psregistration_save_path (
        v->path, sizeof (v->path), ps->dir, ps->index, &v->saved);
    v->copies = calloc (s->ntables + 1, sizeof (struct ps_copy *));
    for (size_t i = 0; v->copies && i < s->ntables; i++)
        if (!(v->copies[i] = ps_copy_create (s->tables[i]))) {
            errno = ENOMEM;
            return errorf (err,
                           "no memory to save: a save needs as much as the "
                           "tables have");
        }
    return v->copies ? 0 : errorf (err, "out of memory");
}

/* Returns whether there is more to copy. */
static bool copy_some (struct ps_server *s, double seconds)
{
    double until = monotonic () + seconds;

    for (size_t i = 0; i < s->saving->about.ntables; i++)
        while (ps_copy_some (s->tables[i]))
            if (monotonic () > until)
                return true;
    return false;
}

static int start_thread (struct ps_saving *v, struct slurmdl_error *err)
{
    int rv = thread_start (&v->thread, write_thread, v);

    v->writing = rv == 0;
    return rv ? errorf (err, "no thread to save: %s", strerror (errno)) : 0;
}

static int end_write (struct ps_server *s, struct slurmdl_error *err)
{
    struct ps_saving *v = s->saving;
    int code;
    int rv;

    pthread_join (v->thread, NULL);
    v->writing = false;
    code = v->code;
    if ((rv = v->rv) < 0)
        errorf (err, "%.150s: cannot save: %s", s->ps->name, v->why.text);
    else if ((rv = psstore_saved (s, &v->saved, err)) < 0) {
        code = errno;
        unlink (v->path);
    }
    destroy (s);
    errno = rv < 0 ? code : errno;
    return rv;
}

int pssave_go_on (struct ps_server *s, struct slurmdl_error *err)
{
    struct ps_saving *v = s->saving;

    if (!v)
        return 0;
    if (v->writing)
        return atomic_load (&v->written) ? end_write (s, err) : 0;
    return copy_some (s, copy_seconds) ? 0 : start_thread (v, err);
}

int pssave_wait_ms (const struct ps_server *s, int otherwise)
{
    if (!s->saving)
        return otherwise;
    return s->saving->writing ? 10 : 0;
}

int pssave_finish (struct ps_server *s, struct slurmdl_error *err)
{
    if (!s->saving)
        return 0;
    if (!s->saving->writing) {
        copy_some (s, 1e9);
        if (start_thread (s->saving, err) < 0)
            return -1;
    }
    return end_write (s, err);
}

void pssave_abandon (struct ps_server *s)
{
    struct ps_saving *v = s->saving;

    if (!v)
        return;
    if (v->writing) {
        pthread_join (v->thread, NULL);
        unlink (v->path);
    }
    destroy (s);
}

/* A save at 'clock' has what was pushed before it, and nothing later. */
void pssave_cut (struct ps_server *s, int64_t clock)
{
    const struct ps_worker *w;

    if (clock <= 0 || (s->cut && s->cut <= clock) || pssave_clock (s) >= clock)
        return;
    if (s->entry->nsaved
        && s->entry->saved[s->entry->nsaved - 1].clock >= clock)
        return;
    for (long i = 0; i < s->ps->workers; i++) {
        w = &s->workers[i];
        if (w->clock > clock || (w->last_clock >= clock && w->last_n > 0))
            return;
    }
    s->cut = clock;
}
