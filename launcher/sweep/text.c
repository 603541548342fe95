/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, times and trials as text. */
#include "launcher/sweep/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/space.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"

void duration_text (char *buf, size_t size, double seconds)
{
    long s = (long)seconds;

    if (s >= 3600)
        snprintf (buf, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf (buf, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf (buf, size, "%.1fs", seconds);
}

void time_text (char *buf, size_t size, double when)
{
    time_t t = fabs (when) < 1e15 ? (time_t)when : -1; /* NaN: -1 */
    struct tm tm;

    if (t == -1 || !localtime_r (&t, &tm) || !strftime (buf, size, "%Y-%m-%d %H:%M", &tm))
        *buf = '\0';
}

/* Keep it short: hparams.json, --json and --csv have all digits. */
char *cell_text (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h)
{
    json_t *v = trial_hparam (s, t, h);
    char *text;

    if (!json_is_real (v))
        text = hparam_text (v);
    else
        text = xasprintf ("%.4g", json_real_value (v));
    json_decref (v);
    return text;
}

char *trial_text (const struct sweep *s, const struct sweep_trial *t)
{
    char *out = NULL;
    size_t size;
    FILE *f = xopen_memstream (&out, &size);
    const char *gap = "";

    for (size_t i = 0; i < s->exp->space->nhparams; i++) {
        const struct hparam *h = &s->exp->space->hparams[i];
        char *value = h->dim >= 0 ? cell_text (s, t, h) : NULL;
        if (value) {
            fprintf (f, "%s%s=%s", gap, h->path, value);
            gap = " ";
        }
        free (value);
    }
    xclose_memstream (f);
    return out;
}

char *text_last_lines (char *text, size_t n, long lines)
{
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (lines == 0)
        return text + n;
    for (; n > 0; n--)
        if (text[n - 1] == '\n' && --lines == 0)
            break;
    return text + n;
}

void conditions_print (const struct conditions *c, FILE *f)
{
    enum life_condition order[LIFE_CONDITIONS];
    int n = conditions_order (c, order);

    for (int i = 0; i < n; i++) {
        const struct condition_entry *e = &c->list[order[i]];
        char when[32];
        time_text (when, sizeof (when), e->time);
        fprintf (f, "  %-11s %s %s  %s%s%s\n", condition_names[order[i]],
                 e->is_true ? "since" : "until", when, condition_reason_word (e->reason) ?: "",
                 e->message ? ": " : "", e->message ? e->message : "");
    }
}
