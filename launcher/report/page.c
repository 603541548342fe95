/* SPDX-License-Identifier: Apache-2.0 */
/* dl report: write the HTML page, including the parts that work without a script. */
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/search_settings.h"
#include "launcher/report/report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "launcher/report/assets.h"
#include "launcher/report/page_data.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "launcher/version.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* Name a trial "17" or, with several experiments, "digits-0001/17". */
static void trial_name (const struct report *r, long trial, char *buf, size_t size)
{
    const struct report_trial *t = &r->trials[trial];

    if (r->nsweeps > 1)
        snprintf (buf, size, "%s/%ld", r->sweeps[t->sweep].name, t->number);
    else
        snprintf (buf, size, "%ld", t->number);
}

/* ---- notes about what stands out ---- */

/* Trials that a note needs, and the part of a range that counts as its end. */
enum { NEED = 20, NEED_RANGE = 40 };
static const double at_end = 0.07;

/* Return the parameter with the largest share up to 'most', except 'but', or -1. */
static long next_share (const struct report_data *d, double most, long but)
{
    long found = -1;

    for (size_t k = 0; k < d->params.n; k++) {
        double share = explained_share (&d->explanation, k);
        if ((long)k != but && share <= most
            && (found < 0 || share > explained_share (&d->explanation, (size_t)found)))
            found = (long)k;
    }
    return found;
}

static void put_importance_item (FILE *f, const struct report_data *d)
{
    const struct explanation *x = &d->explanation;
    long first = next_share (d, INFINITY, -1), second;
    double share;

    if (first < 0 || !((share = explained_share (x, (size_t)first)) > 0.1))
        return;
    fputs ("<li><b>", f);
    html_put (f, d->params.list[first].name);
    fprintf (f, "</b> matters most: alone it explains %.0f %% of the variance", 100 * share);
    if (x->length)
        fprintf (f, " at length %lld", (long long)x->length);
    if ((second = next_share (d, share, first)) >= 0
        && explained_share (x, (size_t)second) > 0.02) {
        fputs ("; next is ", f);
        html_put (f, d->params.list[second].name);
        fprintf (f, " (%.0f %%)", 100 * explained_share (x, (size_t)second));
    }
    fputs (".</li>", f);
}

static double place_on_axis (const struct report_param *p, double v)
{
    bool log_scale = p->log && p->low > 0;
    double low = log_scale ? log (p->low) : p->low;
    double high = log_scale ? log (p->high) : p->high;

    return ((log_scale ? log (v) : v) - low) / (high - low);
}

static void put_range_item (FILE *f, const struct report_data *d, const struct report_param *p)
{
    long top = d->nordered / 40 > 5 ? d->nordered / 40 : 5, n = 0;
    double *at = xmalloc ((size_t)top * sizeof (*at));

    for (long i = 0; i < top && i < d->nordered; i++)
        if (!isnan (p->v[d->order[i]]))
            at[n++] = place_on_axis (p, p->v[d->order[i]]);
    if (n >= 5) {
        qsort (at, (size_t)n, sizeof (*at), compare_doubles);
        double middle = at[n / 2];
        if (middle < at_end || middle > 1 - at_end) {
            fprintf (f, "<li>The best %ld trials lie at the <b>%s end</b> of ", n,
                     middle > 0.5 ? "upper" : "lower");
            html_put (f, p->name);
            fputs (": a wider range may help.</li>", f);
        }
    }
    free (at);
}

static void put_range_items (FILE *f, const struct report_data *d)
{
    for (size_t k = 0; d->nordered >= NEED_RANGE && k < d->params.n; k++)
        if (!d->params.list[k].category && d->params.list[k].low < d->params.list[k].high)
            put_range_item (f, d, &d->params.list[k]);
}

static void put_when_item (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    const struct report_trial *best;
    const struct sweep *s;
    long later;

    if (r->best < 0)
        return;
    best = &r->trials[r->best];
    s = r->sweeps[best->sweep].s;
    if (s->ntrials < NEED || s->exp->search->config.repeats > 1)
        return;
    later = s->ntrials - best->number;
    if (!later) {
        fputs ("<li>The best trial was the last one started: more trials may help.</li>", f);
        return;
    }
    fputs ("<li>The best trial was number ", f);
    html_count (f, best->number);
    fputs ("; the ", f);
    html_count (f, later);
    fputs (" started after it did not beat it.</li>", f);
}

static void put_finding (FILE *f, const struct failure_finding *c)
{
    fputs ("<li>Failures concentrate at <b>", f);
    html_put (f, c->p->name);
    if (c->p->category) {
        fputs (" = ", f);
        html_put (f, c->p->table.list[(size_t)c->at]);
    } else {
        fputs (c->above ? " ≥ " : " &lt; ", f);
        html_number (f, c->at, 3);
    }
    fprintf (f, "</b>: %.0f %% of these trials failed, %.0f %% of the others.</li>", 100 * c->rate,
             100 * c->other);
}

static void put_failures_item (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    bool *failed = xcalloc ((size_t)r->n + 1, sizeof (*failed));
    struct failure_finding found;

    for (long i = 0; i < r->n; i++)
        failed[i] = report_phase (r, i) == PHASE_FAILED;
    if ((found = failure_explain (r, &d->params, failed)).chi > 0)
        put_finding (f, &found);
    free (failed);
}

static void put_gpus_item (FILE *f, const struct report_data *d)
{
    double idle = 0, all = 0;

    for (size_t i = 0; i < d->gpus.n; i++) {
        const struct gpu_attempt *g = &d->gpus.list[i];
        const struct report_attempt *a = &d->report.attempts[g->attempt];
        double seconds = (a->end - a->begin) * g->gpus;
        if (isnan (g->busy))
            continue;
        all += seconds;
        idle += seconds * (1 - g->busy / 100);
    }
    if (all > 0 && idle > 0.4 * all)
        fprintf (f, "<li>GPUs were idle for <b>%.0f %%</b> of the monitored time.</li>",
                 100 * idle / all);
}

void notes_put (FILE *f, const struct report_data *d)
{
    char *text;
    size_t size;
    FILE *list = xopen_memstream (&text, &size);

    put_importance_item (list, d);
    put_range_items (list, d);
    put_when_item (list, d);
    put_failures_item (list, d);
    put_gpus_item (list, d);
    xclose_memstream (list);
    if (size > 0)
        fprintf (f,
                 "<section class=\"card notes\" aria-labelledby=\"h-notes\"><h2 "
                 "id=\"h-notes\">What stands out</h2><ul>%s</ul></section>",
                 text);
    free (text);
}

/* ---- texts and images that the best trials logged ---- */

/* Limits: only the first READ_MOST bytes of a trial's records are read, images are
 * scaled down to SIDE_MOST pixels, and all images of a page together have PAGE_MOST
 * bytes.
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
    char *text; /* NULL for an image */
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

/* Scale down by taking the middle pixel of each block. */
static void shrink (struct media_item *m, const struct slurmdl_image *from)
{
    unsigned side = from->width > from->height ? from->width : from->height;
    unsigned by = (side + SIDE_MOST - 1) / SIDE_MOST;
    unsigned char *to;

    m->channels = from->channels;
    m->width = (from->width + by - 1) / by;
    m->height = (from->height + by - 1) / by;
    to = m->pixels = xmalloc ((size_t)m->width * m->height * m->channels);
    for (unsigned y = 0; y < m->height; y++)
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
        m->text = xstrndup (r->data, TEXT_MOST);
    else if (slurmdl_record_image (r, &image) == 0)
        shrink (m, &image);
    m->name = xstrdup (r->name);
    m->step = r->step;
    return m->text || m->pixels;
}

static int take_media_record (const struct slurmdl_record *r, void *arg)
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

/* Keep the newest record with each name.  If two have the same step, keep the one of
 * the later attempt.
 */
static void read_trial_media (struct media *all, const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];
    char dir[PATH_MAX];

    for (long k = 1; k <= t->of->over + 1; k++) {
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", r->sweeps[t->sweep].s->dir, t->number,
                  k);
        slurmdl_records_read_dir (dir, take_media_record, all, NULL);
    }
}

static void put_base64 (FILE *f, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

/* The page's script paints the image (start.js). */
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
    fprintf (f, "\" width=\"%u\" height=\"%u\" data-channels=\"%u\" data-pixels=\"", m->width,
             m->height, m->channels);
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

/* Write the texts and images that the best trials logged. */
static void media_put (FILE *f, const struct report_data *d)
{
    size_t left = PAGE_MOST;
    bool any = false;
    char name[300];

    for (long i = 0; i < d->nordered && i < TRIALS; i++) {
        struct media all = { .n = 0 };
        read_trial_media (&all, &d->report, d->order[i]);
        trial_name (&d->report, d->order[i], name, sizeof (name));
        if (all.n && !any)
            fputs ("<section class=\"card\" id=\"media\"><header><h2>Texts and images</h2><p "
                   "class=\"dim\">the newest of the best trials</p></header><div class=\"media\">",
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

/* ---- origin of the experiments ---- */

enum { CONF_MAX = 1 << 20 };

static void begin_fact (FILE *f, const char *name)
{
    fprintf (f, "<div><dt>%s</dt><dd>", name);
}

static void end_fact (FILE *f)
{
    fputs ("</dd></div>", f);
}

static void put_checkpoint_fact (FILE *f, const struct report *r, long i, const char *what)
{
    const struct report_trial *t = &r->trials[i];
    char name[300], path[PATH_MAX];

    if (t->files.step < 0)
        return;
    trial_name (r, i, name, sizeof (name));
    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/ckpt/%08lld.h5", r->sweeps[t->sweep].name,
              t->number, t->files.attempt, (long long)t->files.step);
    fprintf (f, "<p class=\"dim\">%s, trial ", what);
    html_put (f, name);
    fputs ("</p><div class=\"copy\"><code>", f);
    html_put_word (f, path);
    fputs (HTML_COPY, f);
}

static void checkpoints_put (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    long files = 0, trials = 0, newest = -1;
    double bytes = 0;

    for (long i = 0; i < r->n; i++) {
        const struct report_files *k = &r->trials[i].files;
        files += k->n;
        bytes += k->bytes;
        trials += k->n > 0;
        if (k->n > 0
            && (newest < 0 || !(r->trials[i].of->end_time < r->trials[newest].of->end_time)))
            newest = i;
    }
    if (!files)
        return;
    fputs ("<section class=\"card\" "
           "id=\"checkpoints\"><header><h2>Checkpoints</h2><p class=\"dim\">",
           f);
    html_count (f, files);
    fputs (files == 1 ? " file of " : " files of ", f);
    html_count (f, trials);
    fputs (trials == 1 ? " trial, " : " trials, ", f);
    html_bytes (f, bytes);
    fputs ("</p></header>", f);
    if (r->best >= 0)
        put_checkpoint_fact (f, r, r->best, "Newest of the best");
    if (newest >= 0 && newest != r->best)
        put_checkpoint_fact (f, r, newest, "Newest of all");
    fputs ("</section>", f);
}

static void gpus_put (FILE *f, const struct report_data *d)
{
    const struct gpu_use *u = &d->gpus;

    if (!u->nadvice)
        return;
    fputs ("<ul class=\"advice\">", f);
    for (size_t i = 0; i < u->nadvice; i++) {
        fputs ("<li><b>", f);
        html_count (f, u->advice[i].n);
        fputs (u->advice[i].n == 1 ? " attempt</b>: " : " attempts</b>: ", f);
        html_put (f, u->advice[i].text);
        fputs ("</li>", f);
    }
    fputs ("</ul>", f);
}

static void text_fact (FILE *f, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    begin_fact (f, name);
    html_put (f, text);
    end_fact (f);
}

static void number_fact (FILE *f, const char *name, long long n)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", n);
    text_fact (f, name, text);
}

static void time_fact (FILE *f, const char *name, double when)
{
    time_t t = (time_t)when;
    struct tm tm;
    char text[64] = "";

    if (when > 0 && gmtime_r (&t, &tm))
        strftime (text, sizeof (text), "%Y-%m-%d %H:%M UTC", &tm);
    text_fact (f, name, text);
}

static void command_fact (FILE *f, const struct experiment *e)
{
    if (e->entrypoint || !e->argv) {
        text_fact (f, "Entrypoint", e->entrypoint);
        return;
    }
    begin_fact (f, "Entrypoint");
    for (size_t i = 0; e->argv[i]; i++) {
        fputs (i ? " " : "", f);
        html_put_word (f, e->argv[i]);
    }
    end_fact (f);
}

static void put_conf (FILE *f, const struct sweep *s)
{
    char path[PATH_MAX];
    char *text;

    snprintf (path, sizeof (path), "%s/experiment.conf", s->dir);
    if (!(text = file_read (path, CONF_MAX, NULL, NULL)))
        return;
    fputs ("<details><summary>experiment.conf</summary><pre>", f);
    html_put (f, text);
    fputs ("</pre></details>", f);
    free (text);
}

static void put_origin (FILE *f, const struct report_sweep *of)
{
    const struct sweep *s = of->s;
    const struct experiment *e = s->exp;

    fputs ("<dl class=\"facts wide\">", f);
    text_fact (f, "Experiment", of->name);
    text_fact (f, "Description", e->description);
    time_fact (f, "Begun", s->created);
    time_fact (f, "Last event", s->changed);
    text_fact (f, "State", sweep_state_name (s->state));
    text_fact (f, "Searcher", e->search->searcher);
    text_fact (f, "Sampler", e->search->sampler);
    number_fact (f, "Seed", e->search->seed);
    command_fact (f, e);
    text_fact (f, "Forked from", e->fork->experiment);
    if (e->search->config.repeats > 1)
        number_fact (f, "Repeats of a point", e->search->config.repeats);
    for (size_t i = 0; i < s->nsubmits; i++)
        text_fact (f, "Slurm job", s->submits[i].job);
    number_fact (f, "Entries of the decision log", log_length (s->log));
    fputs ("</dl>", f);
    put_conf (f, s);
}

static void provenance_put (FILE *f, const struct report_data *d)
{
    fputs ("<dl class=\"facts wide\">", f);
    text_fact (f, "Written by", "dl " DL_VERSION);
    time_fact (f, "Written", (double)time (NULL));
    fputs ("</dl>", f);
    for (size_t k = 0; k < d->report.nsweeps; k++)
        put_origin (f, &d->report.sweeps[k]);
}

/* ---- summary and table ---- */

enum { ROWS = 50, CAUSES = 4, SEEDS = 5 };

/* ---- the best trial ---- */

static void put_flags (FILE *f, const struct report_data *d, long trial)
{
    char text[512];

    fputs ("<div class=\"copy\"><code>", f);
    for (size_t k = 0; k < d->params.n; k++) {
        if (!param_text (&d->params.list[k], trial, text, sizeof (text)))
            continue;
        fputs ("--", f);
        html_put_word (f, d->params.list[k].name);
        fputc (' ', f);
        html_put_word (f, text);
        fputc (' ', f);
    }
    fputs (HTML_COPY, f);
}

/* Write commands that continue from the trial: train it twice as long, if lengths are
 * in use, and train it with other seeds.
 */
static void put_commands (FILE *f, const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];
    const struct experiment *e = r->sweeps[t->sweep].s->exp;

    for (int seeds = 0; seeds <= 1; seeds++) {
        if (!seeds && e->search->config.max_length <= 1)
            continue;
        fputs ("<div class=\"copy\"><code>dl fork --", f);
        if (seeds)
            fprintf (f, "seeds %d ", SEEDS);
        else
            fprintf (f, "set searcher.max_length=%lld ",
                     2 * (long long)e->search->config.max_length);
        html_put_word (f, r->sweeps[t->sweep].name);
        fprintf (f, " %ld%s", t->number, HTML_COPY);
    }
}

/* Write "trial 4" or, with repeats, "mean of 3, deviation 0.01 · point 2, trials 4 to
 * 6".
 */
static void put_whose (FILE *f, const struct report *r)
{
    const struct report_trial *best = &r->trials[r->best];
    const struct sweep *s = r->sweeps[best->sweep].s;
    struct sweep_result of = report_result (r, r->best, 0);
    long repeats = s->exp->search->config.repeats, point;
    char name[300];

    if (repeats <= 1) {
        trial_name (r, r->best, name, sizeof (name));
        fputs ("trial ", f);
        html_put (f, name);
        return;
    }
    point = trial_point (s, best->number);
    html_format (f, "mean of %ld", of.n);
    if (of.n < repeats)
        html_format (f, " of %ld", repeats);
    if (of.n > 1) {
        fputs (", deviation ", f);
        html_number (f, of.deviation, 2);
    }
    fputs (" · ", f);
    if (r->nsweeps > 1) {
        html_put (f, r->sweeps[best->sweep].name);
        fputs (" ", f);
    }
    html_format (f, "point %ld, trials %ld to %ld", point, (point - 1) * repeats + 1,
                 point * repeats);
}

/* Write the median of the results that the best one was compared with. */
static void put_median (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    long repeats = r->nsweeps == 1 ? r->sweeps[0].s->exp->search->config.repeats : 1;
    long n = 0;

    while (n < d->nordered && report_result (r, d->order[n], 0).compared)
        n++;
    fputs (" · median of ", f);
    html_count (f, repeats > 1 ? n / repeats : n);
    fputs (repeats > 1 ? " point" : " trial", f);
    fputs ((repeats > 1 ? n / repeats : n) == 1 ? " " : "s ", f);
    html_number (f, report_value (r, d->order[n / 2], 0), 4);
}

static const char *seed_unused (const struct report *r)
{
    for (size_t k = 0; k < r->nsweeps; k++)
        if (sweep_seed_unused (r->sweeps[k].s))
            return sweep_seed_unused (r->sweeps[k].s);
    return NULL;
}

static void put_best (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    const struct sweep *s = r->sweeps[0].s;

    fputs ("<section class=\"card answer\" aria-labelledby=\"h-best\"><h2 id=\"h-best\">Best ", f);
    html_put (f, sweep_metric (s, 0));
    fprintf (f, " <span class=\"dim\">(%s is better)</span></h2><p class=\"value\">",
             s->exp->search->config.smaller_is_better ? "smaller" : "larger");
    if (r->best < 0) {
        fputs ("–</p><p>No trial has a finite value yet.</p></section>", f);
        return;
    }
    html_number (f, report_value (r, r->best, 0), 5);
    fputs ("</p><p class=\"dim\">", f);
    put_whose (f, r);
    if (s->exp->search->config.max_length > 1)
        html_format (f, " at length %lld", (long long)report_result (r, r->best, 0).length);
    for (size_t m = 1; m < sweep_metrics (s); m++) {
        html_format (f, " · %s ", sweep_metric (s, m));
        html_number (f, report_value (r, r->best, m), 4);
    }
    put_median (f, d);
    fputs ("</p>", f);
    if (seed_unused (r)) {
        fputs ("<p>", f);
        html_put (f, seed_unused (r));
        fputs (".</p>", f);
    }
    put_flags (f, d, r->best);
    put_commands (f, r, r->best);
    fputs ("</section>", f);
}

/* ---- cost ---- */

static void count_fact (FILE *f, const char *name, size_t n)
{
    begin_fact (f, name);
    html_count (f, (int64_t)n);
    end_fact (f);
}

static void seconds_fact (FILE *f, const char *name, double seconds)
{
    begin_fact (f, name);
    html_seconds (f, seconds);
    end_fact (f);
}

static void put_cost (FILE *f, const struct report *r)
{
    struct report_cost c = report_cost_of (r, r->nsweeps);

    fputs ("<section class=\"card\" aria-labelledby=\"h-cost\"><h2 "
           "id=\"h-cost\">Cost</h2><dl class=\"facts\">",
           f);
    seconds_fact (f, "Wall clock", c.wall);
    seconds_fact (f, "Worker time", c.busy);
    if (c.gpus > 0) {
        begin_fact (f, "GPU time");
        html_number (f, c.gpus / 3600, 3);
        fputs (" GPU h", f);
        end_fact (f);
    }
    count_fact (f, "Trials", (size_t)r->n);
    count_fact (f, "Attempts", c.attempts);
    count_fact (f, "Workers", r->slots.n);
    begin_fact (f, "Busy");
    if (c.alive > 0)
        fprintf (f, "%.0f %%", 100 * c.busy / c.alive);
    else
        fputs ("–", f);
    end_fact (f);
    begin_fact (f, "Spent without a result");
    html_seconds (f, c.wasted);
    if (c.busy > 0)
        fprintf (f, " (%.1f %%)", 100 * c.wasted / c.busy);
    end_fact (f);
    fputs ("</dl></section>", f);
}

/* ---- how trials ended ---- */

static void put_states (FILE *f, const struct report *r)
{
    long n[TRIAL_PHASES] = { 0 };

    for (long i = 0; i < r->n; i++)
        n[report_phase (r, i)]++;
    fputs ("<div class=\"ends\"><div class=\"strip\" aria-hidden=\"true\">", f);
    for (int k = 0; k < TRIAL_PHASES; k++)
        if (n[k])
            fprintf (f, "<i class=\"s%d\" style=\"flex:%ld 0 0\"></i>", k, n[k]);
    fputs ("</div>", f);
    for (int k = 0; k < TRIAL_PHASES; k++) {
        if (!n[k])
            continue;
        fprintf (f,
                 "<button type=\"button\" class=\"row\" data-state=\"%d\"><i "
                 "class=\"s%d\"></i><span>%s</span><b>",
                 k, k, trial_phases[k]);
        html_count (f, n[k]);
        fprintf (f, "</b><span class=\"dim\">%.1f %%</span></button>",
                 100.0 * (double)n[k] / (double)r->n);
    }
    fputs ("</div>", f);
}

static void put_causes (FILE *f, const struct report *r)
{
    struct failure_cause *list;
    long n = failure_causes (r, &list);

    if (n == 0) {
        free (list);
        return;
    }
    fputs ("<h3>Attempts that failed, by cause</h3><ol class=\"causes\">", f);
    for (long i = 0; i < n && i < CAUSES; i++) {
        const char *cause = r->causes.list[list[i].cause];
        fputs ("<li><span title=\"", f);
        html_put (f, cause);
        fputs ("\">", f);
        html_put (f, cause);
        fputs ("</span><b>", f);
        html_count (f, list[i].attempts);
        fputs ("</b></li>", f);
    }
    fputs ("</ol>", f);
    free (list);
}

/* Write the best value, the cost, how trials ended and what stands out. */
static void summary_put (FILE *f, const struct report_data *d)
{
    put_best (f, d);
    put_cost (f, &d->report);
    fputs ("<section class=\"card\" aria-labelledby=\"h-ends\"><h2 "
           "id=\"h-ends\">How trials ended</h2>",
           f);
    put_states (f, &d->report);
    put_causes (f, &d->report);
    fputs ("</section>", f);
    notes_put (f, d);
}

/* ---- several experiments ---- */

static void put_compared (FILE *f, const struct report_data *d, size_t k)
{
    const struct report *r = &d->report;
    const struct report_sweep *of = &r->sweeps[k];
    long number = sweep_best (of->s), failed = 0;
    long best = number ? of->first + number - 1 : -1;
    double seconds = 0;

    for (long i = of->first; i < of->first + of->s->ntrials; i++) {
        seconds += r->trials[i].of->seconds;
        failed += report_phase (r, i) == PHASE_FAILED;
    }
    fputs ("<tr><td class=\"t\"><b>", f);
    html_put (f, of->name);
    fputs ("</b></td><td class=\"t\">", f);
    html_put (f, of->s->exp->search->searcher);
    fprintf (f, "</td><td class=\"t\">%s</td><td>", sweep_state_name (of->s->state));
    html_number (f, best < 0 ? NAN : report_value (r, best, 0), 5);
    fputs ("</td><td>", f);
    if (best >= 0)
        fprintf (f, "%ld", r->trials[best].number);
    fputs ("</td><td>", f);
    html_count (f, of->s->ntrials);
    fputs ("</td><td>", f);
    html_count (f, failed);
    fputs ("</td><td>", f);
    html_seconds (f, seconds);
    fputs ("</td></tr>", f);
}

static void comparison_put (FILE *f, const struct report_data *d)
{
    if (d->report.nsweeps < 2)
        return;
    fputs ("<section class=\"card\" id=\"compare\"><header><h2>Experiments</h2></header><div "
           "class=\"plain\"><table><thead><tr><th class=\"t\" scope=\"col\">experiment</th><th "
           "class=\"t\" scope=\"col\">searcher</th><th class=\"t\" scope=\"col\">state</th><th "
           "scope=\"col\">best</th><th scope=\"col\">trial</th><th scope=\"col\">trials</th><th "
           "scope=\"col\">failed</th><th scope=\"col\">time of results</th></tr></thead><tbody>",
           f);
    for (size_t k = 0; k < d->report.nsweeps; k++)
        put_compared (f, d, k);
    fputs ("</tbody></table></div></section>", f);
}

/* ---- the table: a row for each point ---- */

static void put_table_head (FILE *f, const struct report_data *d)
{
    const struct sweep *s = d->report.sweeps[0].s;

    fputs ("<thead><tr><th scope=\"col\">trial</th><th class=\"t\" scope=\"col\">state</th>", f);
    for (size_t m = 0; m < sweep_metrics (s); m++) {
        fputs ("<th scope=\"col\">", f);
        html_put (f, sweep_metric (s, m));
        fputs ("</th>", f);
    }
    if (d->report.repeats)
        fputs ("<th scope=\"col\">deviation</th><th scope=\"col\">n</th>", f);
    fputs ("<th scope=\"col\">length</th><th scope=\"col\">time</th><th "
           "scope=\"col\">attempts</th>",
           f);
    for (size_t k = 0; k < d->params.n; k++) {
        fprintf (f, "<th scope=\"col\"%s>", d->params.list[k].category ? " class=\"t\"" : "");
        html_put (f, d->params.list[k].name);
        fputs ("</th>", f);
    }
    fputs ("</tr></thead>", f);
}

static void put_trial_row (FILE *f, const struct report_data *d, long i)
{
    const struct report *r = &d->report;
    const struct sweep_trial *t = r->trials[i].of;
    char text[512];
    long last;

    trial_name (r, i, text, sizeof (text));
    fputs ("<tr><td>", f);
    html_put (f, text);
    last = r->trials[i].number + r->sweeps[r->trials[i].sweep].s->exp->search->config.repeats - 1;
    if (last > r->trials[i].number)
        fprintf (f, "–%ld", last);
    fprintf (f, "</td><td class=\"t\">%s</td>", trial_phases[report_phase (r, i)]);
    for (size_t m = 0; m < sweep_metrics (r->sweeps[0].s); m++) {
        fputs ("<td>", f);
        html_number (f, report_value (r, i, m), 5);
        fputs ("</td>", f);
    }
    if (r->repeats) {
        fputs ("<td>", f);
        html_number (f, report_result (r, i, 0).deviation, 2);
        fprintf (f, "</td><td>%ld</td>", report_result (r, i, 0).n);
    }
    fprintf (f, "<td>%lld</td><td>", (long long)t->length);
    html_seconds (f, t->seconds);
    fprintf (f, "</td><td>%ld</td>", t->over);
    for (size_t k = 0; k < d->params.n; k++) {
        bool known = param_text (&d->params.list[k], i, text, sizeof (text));
        fputs (d->params.list[k].category ? "<td class=\"t\">" : "<td>", f);
        html_put (f, known ? text : "–");
        fputs ("</td>", f);
    }
    fputs ("</tr>\n", f);
}

/* Write the rows of the best trials, then those of trials without a value. */
static void table_put (FILE *f, const struct report_data *d)
{
    long n = 0;

    put_table_head (f, d);
    fputs ("<tbody>", f);
    for (long k = 0; n < ROWS && k < d->nordered; k++)
        if (d->report.trials[d->order[k]].point == d->order[k]) {
            put_trial_row (f, d, d->order[k]);
            n++;
        }
    for (long i = 0; i < d->report.n && n < ROWS; i++)
        if (!isfinite (report_value (&d->report, i, 0)) && d->report.trials[i].point == i) {
            put_trial_row (f, d, i);
            n++;
        }
    fputs ("</tbody>", f);
}

/* ---- the page ---- */

struct page {
    const struct report_data *d;
    char nonce[33]; /* the browser runs only scripts with this nonce */
};

static void put_page_title (FILE *f, const struct page *p)
{
    const struct report *r = &p->d->report;
    char more[AND_MORE_SIZE];

    for (size_t k = 0; k < r->nsweeps && k < 3; k++) {
        fputs (k ? ", " : "", f);
        html_put (f, r->sweeps[k].name);
    }
    fputs (and_more (more, (long)r->nsweeps - 3), f);
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
        html_put (f, r->sweeps[0].s->exp->search->searcher);
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

static void put_page_data (FILE *f, const struct page *p)
{
    json_t *o = data_json (p->d);

    html_put_json (f, o);
    json_decref (o);
}

static const struct part {
    const char *name;
    void (*put) (FILE *f, const struct page *p); /* one of put, put_of and text is set */
    void (*put_of) (FILE *f, const struct report_data *d);
    const char *const *text;
} parts[] = {
    { "title", .put = put_page_title },
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
    { "data", .put = put_page_data },
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

/* Fill in the template in a single pass, so that inserted text is never searched for
 * marks.
 */
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

/* seconds between two updates with --watch, and their limits */
static const double refresh_every = 15, refresh_least = 0.2, refresh_most = 86400;

struct report_job {
    struct sweep **list;
    struct rows *rows; /* rows read for the previous page, one for each experiment */
    size_t n;
    char path[PATH_MAX];
    bool live;
    double seconds;
    struct slurmdl_error damage; /* found while writing the last page */
};

static int open_reported_sweeps (struct report_job *j, const struct command_line *line)
{
    size_t n = line->nargs > 0 ? (size_t)line->nargs : 1;
    int rv = EXIT_OK;

    j->list = xcalloc (n, sizeof (struct sweep *));
    j->rows = xcalloc (n, sizeof (*j->rows));
    while (rv == EXIT_OK && j->n < n) {
        rv = open_experiment (line, line->nargs > 0 ? line->args[j->n] : NULL, &j->list[j->n]);
        j->n += rv == EXIT_OK;
    }
    return rv;
}

static void close_reported_sweeps (struct report_job *j)
{
    for (size_t k = 0; k < j->n; k++) {
        sweep_close (j->list[k]);
        rows_destroy (&j->rows[k]);
    }
    free (j->list);
    free (j->rows);
}

/* Without --output, write NAME.html in the current directory. */
static int find_path (struct report_job *j, const char *output)
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
    complain ("--output: %s is not a plain file", j->path);
    return EXIT_USAGE;
}

static bool in_progress (const struct report_job *j)
{
    for (size_t k = 0; k < j->n; k++)
        if (!sweep_has_ended (j->list[k]))
            return true;
    return false;
}

static int fill_page (struct report_job *j, FILE *f, struct slurmdl_error *err)
{
    struct report_data d;
    int rv = data_read (&d, j->list, j->n, j->rows, err);

    if (j->live && in_progress (j))
        d.report.live = j->seconds;
    if (rv == 0)
        rv = page_put (f, &d, err);
    j->damage = d.curves.damage;
    int e = errno;
    data_free (&d);
    errno = e;
    return rv;
}

static int write_page (struct report_job *j, struct slurmdl_error *err)
{
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);
    int rv = fill_page (j, f, err);
    int e = errno;

    xclose_memstream (f);
    if (rv == 0) {
        rv = publish_replace (j->path, text, size, err);
        e = errno;
    }
    free (text);
    errno = e;
    return rv;
}

static int sync_reported_sweeps (struct report_job *j, struct slurmdl_error *err)
{
    for (size_t k = 0; k < j->n; k++)
        if (sweep_sync (j->list[k], err) < 0)
            return -1;
    return 0;
}

/* Rewrite the page even without new events, because trials log metrics while they
 * train.
 */
static int watch_experiments (struct report_job *j, struct slurmdl_error *err)
{
    while (in_progress (j)) {
        poll (NULL, 0, (int)(j->seconds * 1000));
        if (sync_reported_sweeps (j, err) < 0 || write_page (j, err) < 0)
            return -1;
    }
    return 0;
}

int cmd_report (const struct command_line *line)
{
    const struct report_options *opt = line->options;
    struct report_job j = { .live = opt->watch };
    struct slurmdl_error err = { "" };
    int rv;

    j.seconds =
        opt->seconds > 0 ? fmin (fmax (opt->seconds, refresh_least), refresh_most) : refresh_every;
    if (!asset_template) {
        complain ("this dl was built without D3, which dl report needs: "
                  "install node-d3 and build again");
        return EXIT_FAILED;
    }
    if ((rv = open_reported_sweeps (&j, line)) == EXIT_OK
        && (rv = find_path (&j, opt->output)) == EXIT_OK) {
        if (write_page (&j, &err) < 0) {
            rv = fail (&err);
        } else {
            puts (opt->output ? opt->output : j.path);
            fflush (stdout);
            if (j.live && watch_experiments (&j, &err) < 0)
                rv = fail (&err);
            else if (*j.damage.text) {
                complain ("%s (the rest is on the page)", j.damage.text);
                rv = EXIT_DAMAGED;
            }
        }
    }
    close_reported_sweeps (&j);
    return rv;
}
