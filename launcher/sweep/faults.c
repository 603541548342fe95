/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that are the same, counted while no trial has given a result. */
#include "launcher/sweep/faults.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/state_edit.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

/* Failures that are all different are no shared fault. */
enum { FAULTS_MAX = 64 };

static bool ends_with (const char *start, const char *end, const char *word)
{
    size_t n = strlen (word);

    return (size_t)(end - start) >= n && !memcmp (end - n, word, n);
}

static bool is_status (const char *start, const char *number)
{
    return ends_with (start, number, "exit status ") || ends_with (start, number, "by signal ");
}

/* Up to the next blank or quote. */
static size_t word_length (const char *text)
{
    return strcspn (text, " \t'\"()[]<>,;");
}

/* What was seen in the log of an attempt that logged no metric differs. */
static size_t length_of (const char *why)
{
    static const char nothing[] = "ended without logging";

    return strncmp (why, nothing, sizeof (nothing) - 1) ? strlen (why) : strcspn (why, ";");
}

void fault_key (char key[FAULT_KEY], const char *why)
{
    const char *end = why + length_of (why);
    size_t n = 0;

    for (const char *c = why; c < end && n < FAULT_KEY - 1;) {
        size_t len = word_length (c);
        if (len > 1 && memchr (c, '/', len)) {
            key[n++] = '/';
            c += len;
        } else if (isdigit ((unsigned char)*c) && !is_status (why, c)) {
            key[n++] = '#';
            while (isalnum ((unsigned char)*c))
                c++;
        } else if (isalnum ((unsigned char)*c))
            while (isalnum ((unsigned char)*c) && n < FAULT_KEY - 1)
                key[n++] = *c++;
        else
            key[n++] = *c++;
    }
    key[n] = '\0';
}

static struct fault *find (const struct sweep *s, const char *key)
{
    for (size_t i = 0; i < s->nfaults; i++)
        if (!strcmp (s->faults[i].key, key))
            return &s->faults[i];
    return NULL;
}

static struct fault *add (struct sweep *s, const char *key)
{
    struct fault *list = array_grow (s->faults, s->nfaults, sizeof (*list));

    if (!list)
        return NULL;
    s->faults = list;
    list[s->nfaults] = (struct fault){ .key = strdup (key) };
    return list[s->nfaults].key ? &list[s->nfaults++] : NULL;
}

int fault_note (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    char key[FAULT_KEY];
    struct fault *f;

    if (s->nresults || e->free || !e->why)
        return 0;
    fault_key (key, e->why);
    if (e->progress) { /* what its trial gets over does not stop it */
        if ((f = find (s, key)) && f->trial == (long)e->trial)
            f->count = 0;
        return 0;
    }
    if (!(f = find (s, key)) && s->nfaults == FAULTS_MAX)
        return 0;
    if (!f && !(f = add (s, key)))
        return errorf (err, "out of memory");
    f->count++;
    f->trial = (long)e->trial;
    f->attempt = (long)e->attempt;
    f->seconds = e->seconds > 0 ? e->seconds : 0;
    if (!f->host)
        state_set_text (&f->host, e->host);
    else if (e->host && strcmp (f->host, e->host))
        f->spread = true;
    state_set_text (&f->why, e->why);
    state_set_text (&f->slot, e->by ? e->by : "");
    return 0;
}

const struct fault *fault_like (const struct sweep *s, const char *why)
{
    char key[FAULT_KEY];

    if (s->nresults || !why)
        return NULL;
    fault_key (key, why);
    return find (s, key);
}

const struct fault *fault_most (const struct sweep *s)
{
    const struct fault *most = NULL;

    for (size_t i = 0; i < s->nfaults && !s->nresults; i++)
        if (!most || s->faults[i].count > most->count)
            most = &s->faults[i];
    return most;
}

const struct fault *fault_shared (const struct sweep *s)
{
    const struct fault *most = fault_most (s);

    return most && most->count >= FAULT_LIMIT ? most : NULL;
}

void faults_forget (struct sweep *s)
{
    for (size_t i = 0; i < s->nfaults; i++) {
        free (s->faults[i].key);
        free (s->faults[i].host);
        free (s->faults[i].why);
        free (s->faults[i].slot);
    }
    free (s->faults);
    s->faults = NULL;
    s->nfaults = 0;
    state_set_text (&s->cause.why, NULL);
}

bool sweep_is_faulty (const struct sweep *s)
{
    return s->state == SWEEP_PAUSED && s->cause.why;
}
