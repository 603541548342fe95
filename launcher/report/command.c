/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl report. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "launcher/report/assets.h"
#include "launcher/report/data.h"
#include "launcher/report/report.h"
#include "launcher/report/summary.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* ---- the page ---- */

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
static int page_put (FILE *f, const struct report_data *d, struct slurmdl_error *err)
{
    struct page page = { .d = d };
    const char *p = asset_template;

    if (!p) {
        errno = ENOTSUP;
        return errorf (err, "this dl was built without D3 (node-d3), which 'dl report' needs");
    }
    if (make_nonce (page.nonce) < 0)
        return errorf (err, "cannot get random bytes: %s", strerror (errno));
    while (*p) {
        const char *mark = strstr (p, "{{");
        const char *end = mark ? strstr (mark, "}}") : NULL;
        const struct part *part = end ? find_part (mark + 2, (size_t)(end - mark - 2)) : NULL;
        size_t n = part ? (size_t)(mark - p) : strlen (p);
        fwrite (p, 1, n, f);
        if (!part)
            break;
        put_part (f, &page, part);
        p = end + 2;
    }
    return 0;
}

/* ---- the command ---- */

/* s between two files of --watch, and its bounds */
static const double every = 15, least = 0.2, most = 86400;

struct job {
    struct sweep **list;
    struct rows *rows; /* that were read the last time, of each */
    size_t n;
    char path[PATH_MAX];
    bool live;
    double seconds;
};

static int open_all (struct job *j, const struct command_line *line)
{
    size_t n = line->nargs > 0 ? (size_t)line->nargs : 1;
    int rv = EXIT_OK;

    j->list = calloc (n, sizeof (struct sweep *));
    j->rows = calloc (n, sizeof (*j->rows));
    if (!j->list || !j->rows) {
        complain ("out of memory");
        return EXIT_IO;
    }
    while (rv == EXIT_OK && j->n < n) {
        rv = open_experiment (line, line->nargs > 0 ? line->args[j->n] : NULL, &j->list[j->n]);
        j->n += rv == EXIT_OK;
    }
    return rv;
}

static void close_all (struct job *j)
{
    for (size_t k = 0; k < j->n; k++) {
        sweep_close (j->list[k]);
        rows_destroy (&j->rows[k]);
    }
    free (j->list);
    free (j->rows);
}

/* "NAME.html" in the current folder, if the user gives none. */
static int find_path (struct job *j, const char *output)
{
    const char *dir = j->list[0]->dir, *name = strrchr (dir, '/');
    char found[PATH_MAX];
    struct stat st;

    name = name && name[1] ? name + 1 : dir;
    if (output)
        snprintf (j->path, sizeof (j->path), "%s",
                  user_may_follow (output) && realpath (output, found) ? found : output);
    else
        snprintf (j->path, sizeof (j->path), "%s.html", name);
    if (!user_may_follow (j->path) || stat (j->path, &st) < 0 || S_ISREG (st.st_mode))
        return EXIT_OK;
    complain ("--output: %s is no plain file", j->path);
    return EXIT_USAGE;
}

static bool in_progress (const struct job *j)
{
    for (size_t k = 0; k < j->n; k++)
        if (!sweep_has_ended (j->list[k]))
            return true;
    return false;
}

static int fill_page (struct job *j, FILE *f, struct slurmdl_error *err)
{
    struct report_data d;
    int rv = data_read (&d, j->list, j->n, j->rows, err);

    if (j->live && in_progress (j))
        d.report.live = j->seconds;
    if (rv == 0)
        rv = page_put (f, &d, err);
    int e = errno;
    data_free (&d);
    errno = e;
    return rv;
}

static int write_page (struct job *j, struct slurmdl_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);
    int rv = f ? fill_page (j, f, err) : errorf (err, "out of memory");

    if (f && fclose (f) != 0 && rv == 0)
        rv = errorf (err, "out of memory");
    if (rv == 0)
        rv = publish_replace (j->path, text, size, err);
    int e = errno;
    free (text);
    errno = e;
    return rv;
}

/* Returns 1 if anything is new, 0, -1. */
static int sync_all (struct job *j, struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t k = 0; k < j->n; k++) {
        int n = sweep_sync (j->list[k], err);
        if (n < 0)
            return -1;
        rv = rv || n > 0;
    }
    return rv;
}

/* Also where no event is new: trials log as they train. */
static int watch (struct job *j, struct slurmdl_error *err)
{
    while (in_progress (j)) {
        poll (NULL, 0, (int)(j->seconds * 1000));
        if (sync_all (j, err) < 0 || write_page (j, err) < 0)
            return -1;
    }
    return 0;
}

int cmd_report (const struct command_line *line)
{
    const struct report_options *opt = line->options;
    struct job j = { .live = opt->watch };
    struct slurmdl_error err = { "" };
    int rv;

    j.seconds = opt->seconds > 0 ? fmin (fmax (opt->seconds, least), most) : every;
    if (!asset_template) {
        complain ("this dl was built without D3, which dl report needs: "
                  "install node-d3 and build again");
        return EXIT_FAILED;
    }
    if ((rv = open_all (&j, line)) == EXIT_OK && (rv = find_path (&j, opt->output)) == EXIT_OK) {
        if (write_page (&j, &err) < 0) {
            rv = fail (&err);
        } else {
            puts (opt->output ? opt->output : j.path);
            fflush (stdout);
            if (j.live && watch (&j, &err) < 0)
                rv = fail (&err);
        }
    }
    close_all (&j);
    return rv;
}
