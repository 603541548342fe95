/* SPDX-License-Identifier: Apache-2.0 */
/* Find the ranks that a named tensor waits for. */
#include "runtime/comm/engine/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ANSWER_SECONDS = 1;

enum { HERE = 1, NOT_HERE = 2 };

struct question {
    struct question *next;
    char *name;
    double age, until;
    uint64_t others;
    long answers;
    unsigned char *said; /* answer of each rank; 0: none yet */
};

struct stall {
    long size;
    host_f host;
    const void *arg;
    struct question *open;
};

struct stall *stall_create (long size, host_f host, const void *arg)
{
    struct stall *s = calloc (1, sizeof (*s));

    if (s) {
        s->size = size;
        s->host = host;
        s->arg = arg;
    }
    return s;
}

static void question_free (struct question *q)
{
    free (q->name);
    free (q->said);
    free (q);
}

void stall_destroy (struct stall *s)
{
    struct question *next;

    for (struct question *q = s ? s->open : NULL; q; q = next) {
        next = q->next;
        question_free (q);
    }
    free (s);
}

static struct question *find_question (struct stall *s, const char *name)
{
    struct question *q = s->open;

    while (q && strcmp (q->name, name))
        q = q->next;
    return q;
}

static struct question *ask_question (struct stall *s, const char *name)
{
    struct question **end = &s->open;
    struct question *q = calloc (1, sizeof (*q));

    if (!q)
        return NULL;
    q->name = strdup (name);
    q->said = calloc ((size_t)s->size, 1);
    if (!q->name || !q->said) {
        question_free (q);
        return NULL;
    }
    while (*end)
        end = &(*end)->next;
    return *end = q;
}

void stall_report (struct stall *s, const char *name, double age, uint64_t others, double now,
                   struct packet *down)
{
    struct question *q = find_question (s, name);

    if (!q) {
        if (!(q = ask_question (s, name)))
            return;
        q->until = now + ANSWER_SECONDS;
        packet_number (down, DOWN_WHO);
        packet_text (down, name);
    }
    if (age > q->age)
        q->age = age;
    if (others > q->others)
        q->others = others;
}

void stall_answer (struct stall *s, long rank, const char *name, bool here)
{
    struct question *q = find_question (s, name);

    if (!q || q->said[rank])
        return;
    q->said[rank] = here ? HERE : NOT_HERE;
    q->answers++;
}

/* Wait for the answers to all open questions, because they are reported together. */
double stall_wait_seconds (const struct stall *s, double now)
{
    double wait = s->open ? 0 : -1;

    for (const struct question *q = s->open; q; q = q->next)
        if (q->answers < s->size && q->until - now > wait)
            wait = q->until - now;
    return wait;
}

static long count_answers (const struct stall *s, const struct question *q, unsigned char said)
{
    long n = 0;

    for (long r = 0; r < s->size; r++)
        n += q->said[r] == said;
    return n;
}

/* Print "rank 1 (node01), rank 2 (node01) and 12 more ranks".  If some ranks have
 * said no, give only the number of silent ones, because the former may be holding
 * them up as well.
 */
static size_t print_silent_ranks (const struct stall *s, const struct question *q, char *text,
                                  size_t size)
{
    long no = count_answers (s, q, NOT_HERE), silent = count_answers (s, q, 0), named = 0;
    unsigned char which = no ? NOT_HERE : 0;
    long missing = no ? no : silent;
    size_t n = 0;

    for (long r = 0; r < s->size && n < size; r++) {
        if (q->said[r] != which)
            continue;
        if (named == 4 && missing > 5) {
            n += (size_t)snprintf (text + n, size - n, " and %ld more ranks", missing - named);
            break;
        }
        n += (size_t)snprintf (text + n, size - n, "%srank %ld (%.30s)", named++ ? ", " : "", r,
                               s->host (s->arg, r));
    }
    if (no && silent && n < size)
        n += (size_t)snprintf (text + n, size - n, " (%ld do not answer)", silent);
    return n;
}

size_t stall_waits (const char *name, double age, uint64_t others, char *text, size_t size)
{
    int n;

    if (others)
        n = snprintf (text, size, "\"%.60s\" and %llu more have waited %.0f s for ", name,
                      (unsigned long long)others, age);
    else
        n = snprintf (text, size, "\"%.60s\" has waited %.0f s for ", name, age);
    return (size_t)n < size ? (size_t)n : size - 1;
}

static size_t put_question (const struct stall *s, const struct question *q, char *text,
                            size_t size)
{
    size_t n = stall_waits (q->name, q->age, q->others, text, size);

    return n + print_silent_ranks (s, q, text + n, size - n);
}

/* A tensor that everybody has submitted meanwhile is no longer stalled. */
static bool is_stalled (const struct stall *s, const struct question *q)
{
    for (long r = 0; r < s->size; r++)
        if (q->said[r] != HERE)
            return true;
    return false;
}

bool stall_text (struct stall *s, double now, char *text, size_t size, double *age)
{
    size_t n = 0;

    if (!s->open || stall_wait_seconds (s, now) > 0)
        return false;
    *age = 0;
    while (s->open) {
        struct question *q = s->open;
        s->open = q->next;
        if (is_stalled (s, q) && n < size) {
            if (n)
                n += (size_t)snprintf (text + n, size - n, "; ");
            if (n < size)
                n += put_question (s, q, text + n, size - n);
            if (q->age > *age)
                *age = q->age;
        }
        question_free (q);
    }
    return n > 0;
}
