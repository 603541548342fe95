/* SPDX-License-Identifier: Apache-2.0 */
/* dl failures: print failures by cause, each with the end of a log, and by parameter
 * value.
 */
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/log_policy.h"
#include "launcher/report/report.h"
#include "launcher/sweep/experiment_json.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { TAIL = 16384, LINES = 3, TRIALS = 12 };

struct failures {
    struct report report;
    struct report_params params;
    struct failure_cause *list;
    long n;
    long lines; /* number of log lines to print */
};

/* ---- the end of a log ---- */

/* Read the end of the attempt's log.  Returns its size, or 0 if there is no log. */
static size_t read_log (const struct report *r, const struct report_attempt *a, char text[TAIL + 1])
{
    const struct report_trial *t = &r->trials[a->trial];
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/log", r->sweeps[t->sweep].s->dir,
              t->number, a->number);
    return file_tail (inside_open (path, O_RDONLY, 0, NULL), text, TAIL);
}

static void print_attempt_log_end (const struct failures *f, const struct report_attempt *a)
{
    char text[TAIL + 1];
    size_t n = read_log (&f->report, a, text);
    char *rest = n > 0 ? text_last_lines (text, n, f->lines) : NULL;

    if (!rest || !*rest)
        return;
    for (char *line; (line = strsep (&rest, "\n"));) {
        policy_text (line);
        printf ("    | %s\n", line);
    }
}

/* ---- causes ---- */

/* Return the numbers of the trials with an attempt that failed for this cause.  The
 * caller frees the list.
 */
static long *trials_of_cause (const struct failures *f, size_t cause, long *n)
{
    const struct report *r = &f->report;
    bool *has = xcalloc ((size_t)r->n + 1, sizeof (*has));
    long *list = xcalloc ((size_t)r->n + 1, sizeof (*list));

    *n = 0;
    for (size_t i = 0; i < r->nattempts; i++)
        if (r->attempts[i].cause == cause)
            has[r->attempts[i].trial] = true;
    for (long i = 0; i < r->n; i++)
        if (has[i])
            list[(*n)++] = r->trials[i].number;
    free (has);
    return list;
}

static void print_cause (const struct failures *f, const struct failure_cause *c)
{
    const struct report *r = &f->report;
    const struct report_attempt *a = &r->attempts[c->last];
    long n;
    long *trials = trials_of_cause (f, c->cause, &n);
    char took[32], more[AND_MORE_SIZE];

    printf ("%5ld  %s\n", c->attempts, r->causes.list[c->cause]);
    printf ("       trial%s", n == 1 ? "" : "s");
    for (long i = 0; i < n && i < TRIALS; i++)
        printf ("%s %ld", i ? "," : "", trials[i]);
    duration_text (took, sizeof (took), a->end - a->begin);
    printf ("%s; the last one: trial %ld, attempt %ld, after %s\n", and_more (more, n - TRIALS),
            r->trials[a->trial].number, a->number, took);
    print_attempt_log_end (f, a);
    free (trials);
}

/* ---- parameter values ---- */

static void mark_failed (const struct report *r, long cause, bool *failed)
{
    for (long i = 0; i < r->n; i++)
        failed[i] = cause < 0 && report_phase (r, i) == PHASE_FAILED;
    for (size_t i = 0; cause >= 0 && i < r->nattempts; i++)
        if (r->attempts[i].cause == (size_t)cause)
            failed[r->attempts[i].trial] = true;
}

/* "lr >= 0.05: 70 % of these trials failed, 3 % of the others" */
static bool cause_text (const struct failures *f, long cause, char *buf, size_t size)
{
    bool *failed = xcalloc ((size_t)f->report.n + 1, sizeof (*failed));
    struct failure_finding found;
    char at[32];

    mark_failed (&f->report, cause, failed);
    found = failure_explain (&f->report, &f->params, failed);
    free (failed);
    if (!(found.chi > 0))
        return false;
    snprintf (at, sizeof (at), "%.3g", found.at);
    snprintf (buf, size, "%s %s %s: %.0f %% of these trials failed, %.0f %% of the others",
              found.p->name,
              found.p->category ? "="
              : found.above     ? ">="
                                : "<",
              found.p->category ? found.p->table.list[(size_t)found.at] : at, 100 * found.rate,
              100 * found.other);
    return true;
}

static void print_failures (const struct failures *f)
{
    const struct report *r = &f->report;
    long failed = 0, attempts = 0;
    char text[512];

    for (long i = 0; i < r->n; i++)
        failed += report_phase (r, i) == PHASE_FAILED;
    for (long i = 0; i < f->n; i++)
        attempts += f->list[i].attempts;
    if (!attempts) {
        printf ("%s: no attempt of its %ld trials failed\n", r->sweeps[0].name, r->n);
        return;
    }
    printf ("%s: %ld of %ld trials failed; %ld attempt%s failed or %s lost\n", r->sweeps[0].name,
            failed, r->n, attempts, attempts == 1 ? "" : "s", attempts == 1 ? "was" : "were");
    for (long i = 0; i < f->n; i++) {
        print_cause (f, &f->list[i]);
        if (cause_text (f, (long)f->list[i].cause, text, sizeof (text)))
            printf ("       %s\n", text);
    }
    if (f->n > 1 && cause_text (f, -1, text, sizeof (text)))
        printf ("all failures: %s\n", text);
}

/* ---- JSON ---- */

static json_t *cause_json (const struct failures *f, const struct failure_cause *c)
{
    const struct report_attempt *a = &f->report.attempts[c->last];
    json_t *numbers = json_array (), *o;
    char text[TAIL + 1];
    char where[512];
    long n;
    long *trials = trials_of_cause (f, c->cause, &n);
    size_t size = read_log (&f->report, a, text);

    for (long i = 0; i < n; i++)
        json_array_append_new (numbers, json_integer (trials[i]));
    free (trials);
    o = json_pack ("{s:o, s:I, s:o, s:I, s:I, s:o}", "cause",
                   text_json (f->report.causes.list[c->cause]), "attempts", (json_int_t)c->attempts,
                   "trials", numbers, "last_trial", (json_int_t)f->report.trials[a->trial].number,
                   "last_attempt", (json_int_t)a->number, "log",
                   text_json (size ? text_last_lines (text, size, f->lines) : ""));
    if (cause_text (f, (long)c->cause, where, sizeof (where)))
        json_object_set_new (o, "where", text_json (where));
    return o;
}

static void print_failures_json (const struct failures *f)
{
    json_t *list = json_array ();

    for (long i = 0; i < f->n; i++)
        json_array_append_new (list, cause_json (f, &f->list[i]));
    json_put (list, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (list);
}

/* ---- the command ---- */

static int gather_failures (struct failures *f, struct sweep *s, struct slurmdl_error *err)
{
    if (report_fill (&f->report, &s, 1, err) < 0)
        return -1;
    params_fill (&f->params, &f->report);
    f->n = failure_causes (&f->report, &f->list);
    return 0;
}

int cmd_failures (const struct command_line *line)
{
    const struct failures_options *opt = line->options;
    struct failures f = { .lines = opt->lines < 0 ? LINES : opt->lines };
    struct slurmdl_error err = { "" };
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    if (gather_failures (&f, s, &err) < 0)
        rv = fail (&err);
    else if (opt->json)
        print_failures_json (&f);
    else
        print_failures (&f);
    free (f.list);
    params_free (&f.params);
    report_free (&f.report);
    sweep_close (s);
    return rv;
}
