/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report: one HTML file that needs no other. */
#include "launcher/report/page.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "launcher/report/assets.h"
#include "launcher/report/summary.h"
#include "launcher/sweep/states.h"
#include "runtime/base/error.h"

struct page {
    const struct report_data *d;
    char nonce[33]; /* scripts with it run, others do not */
};

static void put_title (FILE *f, const struct page *p)
{
    const struct report *r = &p->d->report;

    for (size_t k = 0; k < r->nsweeps && k < 3; k++) {
        fputs (k ? ", " : "", f);
        html_put (f, r->sweeps[k].name);
    }
    if (r->nsweeps > 3)
        fprintf (f, " and %zu more", r->nsweeps - 3);
}

static void put_state (FILE *f, const struct page *p)
{
    const struct report *r = &p->d->report;

    if (r->nsweeps == 1)
        fputs (sweep_state_name (r->sweeps[0].s->state), f);
    else
        fprintf (f, "%zu experiments", r->nsweeps);
}

static void put_about (FILE *f, const struct page *p)
{
    const struct report *r = &p->d->report;

    if (r->nsweeps == 1) {
        html_put (f, r->sweeps[0].s->exp->searcher_name);
        fputs (" · ", f);
    }
    html_count (f, r->n);
    fputs (r->n == 1 ? " trial" : " trials", f);
}

static void put_description (FILE *f, const struct page *p)
{
    const struct report *r = &p->d->report;

    if (r->nsweeps == 1)
        html_put (f, r->sweeps[0].s->exp->description);
}

static void put_nonce (FILE *f, const struct page *p)
{
    fputs (p->nonce, f);
}

static void put_licence (FILE *f, const struct page *p)
{
    (void)p;
    html_put (f, asset_licence);
}

static void put_data (FILE *f, const struct page *p)
{
    json_t *o = data_json (p->d);

    html_put_json (f, o);
    json_decref (o);
}

static const struct part {
    const char *name;
    void (*put) (FILE *f, const struct page *p); /* one of these: */
    void (*put_of) (FILE *f, const struct report_data *d);
    const char *const *text;
} parts[] = {
    { "title", .put = put_title },
    { "state", .put = put_state },
    { "about", .put = put_about },
    { "description", .put = put_description },
    { "summary", .put_of = summary_put },
    { "comparison", .put_of = comparison_put },
    { "table", .put_of = table_put },
    { "gpus", .put_of = gpus_put },
    { "media", .put_of = media_put },
    { "checkpoints", .put_of = checkpoints_put },
    { "provenance", .put_of = provenance_put },
    { "nonce", .put = put_nonce },
    { "style", .text = &asset_style },
    { "d3", .text = &asset_d3 },
    { "licence", .put = put_licence },
    { "data", .put = put_data },
    { "script", .text = &asset_script },
};

static const struct part *find_part (const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof (parts) / sizeof (*parts); i++)
        if (strlen (parts[i].name) == n && !strncmp (parts[i].name, name, n))
            return &parts[i];
    return NULL;
}

static void put_part (FILE *f, const struct page *p, const struct part *part)
{
    if (part->put)
        part->put (f, p);
    else if (part->put_of)
        part->put_of (f, p->d);
    else
        fputs (*part->text, f);
}

static int make_nonce (char nonce[33])
{
    unsigned char bytes[16];

    if (getrandom (bytes, sizeof (bytes), 0) != sizeof (bytes))
        return -1;
    for (size_t i = 0; i < sizeof (bytes); i++)
        snprintf (nonce + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* In one pass: what is put in is not searched for marks again. */
int page_put (FILE *f, const struct report_data *d, struct slurmdl_error *err)
{
    struct page page = { .d = d };
    const char *p = asset_template;

    if (!p) {
        errno = ENOTSUP;
        return errorf (
            err,
            "this dl was built without D3 (node-d3), which 'dl report' needs");
    }
    if (make_nonce (page.nonce) < 0)
        return errorf (err, "cannot get random bytes: %s", strerror (errno));
    while (*p) {
        const char *mark = strstr (p, "{{");
        const char *end = mark ? strstr (mark, "}}") : NULL;
        const struct part *part =
            end ? find_part (mark + 2, (size_t)(end - mark - 2)) : NULL;
        size_t n = part ? (size_t)(mark - p) : strlen (p);
        fwrite (p, 1, n, f);
        if (!part)
            break;
        put_part (f, &page, part);
        p = end + 2;
    }
    return 0;
}
