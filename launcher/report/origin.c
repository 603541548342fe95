/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints, advice and the origin of experiments, as HTML. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/report/summary.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/small_file.h"
#include "launcher/version.h"

enum { CONF_MAX = 1 << 20 };

static void fact (FILE *f, const char *name)
{
    fprintf (f, "<div><dt>%s</dt><dd>", name);
}

static void fact_end (FILE *f)
{
    fputs ("</dd></div>", f);
}

static void put_checkpoint (FILE *f, const struct report *r, long i, const char *what)
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

void checkpoints_put (FILE *f, const struct report_data *d)
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
        put_checkpoint (f, r, r->best, "Newest of the best");
    if (newest >= 0 && newest != r->best)
        put_checkpoint (f, r, newest, "Newest of all");
    fputs ("</section>", f);
}

void gpus_put (FILE *f, const struct report_data *d)
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
    fact (f, name);
    html_put (f, text);
    fact_end (f);
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
    fact (f, "Entrypoint");
    for (size_t i = 0; e->argv[i]; i++) {
        fputs (i ? " " : "", f);
        html_put_word (f, e->argv[i]);
    }
    fact_end (f);
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
    text_fact (f, "Searcher", e->searcher_name);
    text_fact (f, "Sampler", e->sampler);
    number_fact (f, "Seed", e->seed);
    command_fact (f, e);
    text_fact (f, "Forked from", e->source);
    if (e->search.repeats > 1)
        number_fact (f, "Repeats of a point", e->search.repeats);
    for (size_t i = 0; i < s->nsubmits; i++)
        text_fact (f, "Slurm job", s->submits[i].job);
    number_fact (f, "Entries of the decision log", log_length (s->log));
    fputs ("</dl>", f);
    put_conf (f, s);
}

void provenance_put (FILE *f, const struct report_data *d)
{
    fputs ("<dl class=\"facts wide\">", f);
    text_fact (f, "Written by", "dl " DL_VERSION);
    time_fact (f, "Written", (double)time (NULL));
    fputs ("</dl>", f);
    for (size_t k = 0; k < d->report.nsweeps; k++)
        put_origin (f, &d->report.sweeps[k]);
}
