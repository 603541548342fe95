/* SPDX-License-Identifier: Apache-2.0 */
/* The newest texts and images of the best trials. */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/report/summary.h"
#include "runtime/slurmdl.h"

/* Of a trial's records those after READ_MOST bytes are not looked at; an image
 * is made smaller to SIDE_MOST pixels; all images of a page have PAGE_MOST.
 */
enum {
    TRIALS = 6,
    NAMES = 8,
    TEXT_MOST = 2000,
    SIDE_MOST = 192,
    PAGE_MOST = 700 * 1024,
    READ_MOST = 64 * 1024 * 1024,
};

struct media_item {
    char *name;
    int64_t step;
    char *text; /* NULL: an image */
    unsigned width, height, channels;
    unsigned char *pixels;
};

struct media {
    struct media_item list[NAMES];
    size_t n;
    size_t seen; /* bytes */
};

static void item_clear (struct media_item *m)
{
    free (m->name);
    free (m->text);
    free (m->pixels);
    *m = (struct media_item){ 0 };
}

static struct media_item *item_of (struct media *all, const char *name, bool text)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp (all->list[i].name, name) && !all->list[i].text == !text)
            return &all->list[i];
    return NULL;
}

/* The pixel in the middle of those that become one. */
static void shrink (struct media_item *m, const struct slurmdl_image *from)
{
    unsigned side = from->width > from->height ? from->width : from->height;
    unsigned by = (side + SIDE_MOST - 1) / SIDE_MOST;
    unsigned char *to;

    m->channels = from->channels;
    m->width = (from->width + by - 1) / by;
    m->height = (from->height + by - 1) / by;
    to = m->pixels = malloc ((size_t)m->width * m->height * m->channels);
    for (unsigned y = 0; to && y < m->height; y++)
        for (unsigned x = 0; x < m->width; x++) {
            unsigned row = y * by + by / 2, column = x * by + by / 2;
            row = row < from->height ? row : from->height - 1;
            column = column < from->width ? column : from->width - 1;
            memcpy (to, from->pixels + ((size_t)row * from->width + column) * from->channels,
                    from->channels);
            to += from->channels;
        }
}

static bool fill_item (struct media_item *m, const struct slurmdl_record *r)
{
    struct slurmdl_image image;

    if (r->kind == SLURMDL_TEXT)
        m->text = strndup (r->data, TEXT_MOST);
    else if (slurmdl_record_image (r, &image) == 0)
        shrink (m, &image);
    m->name = strdup (r->name);
    m->step = r->step;
    return m->name && (m->text || m->pixels);
}

static int take_record (const struct slurmdl_record *r, void *arg)
{
    struct media *all = arg;
    struct media_item new = { 0 };
    struct media_item *old = item_of (all, r->name, r->kind == SLURMDL_TEXT);

    all->seen += r->size;
    if (all->seen > READ_MOST)
        return 1;
    if ((r->kind != SLURMDL_TEXT && r->kind != SLURMDL_IMAGE) || (old && old->step > r->step)
        || (!old && all->n == NAMES))
        return 0;
    if (!fill_item (&new, r)) {
        item_clear (&new);
        return 0;
    }
    if (old)
        item_clear (old);
    else
        old = &all->list[all->n++];
    *old = new;
    return 0;
}

/* Of each name the newest; a later attempt's counts where two are equal. */
static void read_trial (struct media *all, const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];
    char dir[PATH_MAX];

    for (long k = 1; k <= t->of->over + 1; k++) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", r->sweeps[t->sweep].s->dir, t->number,
                  k);
        slurmdl_records_read_dir (dir, take_record, all, NULL);
    }
}

static void put_base64 (FILE *f, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                 "tuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            v |= p[i + 2];
        putc (digits[v >> 18], f);
        putc (digits[v >> 12 & 63], f);
        putc (i + 1 < n ? digits[v >> 6 & 63] : '=', f);
        putc (i + 2 < n ? digits[v & 63] : '=', f);
    }
}

/* The page's script paints it (start.js). */
static void put_image (FILE *f, const struct media_item *m, size_t *left)
{
    size_t size = (size_t)m->width * m->height * m->channels;

    if (size * 4 / 3 > *left) {
        fputs ("<p class=\"dim\">(the page has no room for this image)</p>", f);
        return;
    }
    *left -= size * 4 / 3;
    fputs ("<canvas role=\"img\" aria-label=\"", f);
    html_put (f, m->name);
    fprintf (f,
             "\" width=\"%u\" height=\"%u\" data-channels=\"%u\" "
             "data-pixels=\"",
             m->width, m->height, m->channels);
    put_base64 (f, m->pixels, size);
    fputs ("\"></canvas>", f);
}

static void put_item (FILE *f, const char *trial, const struct media_item *m, size_t *left)
{
    fputs ("<figure>", f);
    if (m->text) {
        fputs ("<pre>", f);
        html_put (f, m->text);
        fputs ("</pre>", f);
    } else
        put_image (f, m, left);
    fputs ("<figcaption class=\"dim\">trial ", f);
    html_put (f, trial);
    fputs (": ", f);
    html_put (f, m->name);
    fprintf (f, ", step %lld</figcaption></figure>", (long long)m->step);
}

void media_put (FILE *f, const struct report_data *d)
{
    size_t left = PAGE_MOST;
    bool any = false;
    char name[300];

    for (long i = 0; i < d->nordered && i < TRIALS; i++) {
        struct media all = { .n = 0 };
        read_trial (&all, &d->report, d->order[i]);
        trial_name (&d->report, d->order[i], name, sizeof (name));
        if (all.n && !any)
            fputs ("<section class=\"card\" id=\"media\"><header><h2>Texts and "
                   "images</h2><p class=\"dim\">the newest of the best "
                   "trials</p></header><div class=\"media\">",
                   f);
        any |= all.n > 0;
        for (size_t k = 0; k < all.n; k++) {
            put_item (f, name, &all.list[k], &left);
            item_clear (&all.list[k]);
        }
    }
    if (any)
        fputs ("</div></section>", f);
}
