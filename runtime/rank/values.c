/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of a rank environment, in its own text. */
#include "runtime/rank/values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct value value_begin (struct rank_environment *e, const char *name)
{
    return (struct value){ e, name, e->used, false };
}

void value_put (struct value *v, const char *fmt, ...)
{
    struct rank_environment *e = v->e;
    size_t limit = v->start + RANK_VALUE_MAX;
    size_t room;
    va_list ap;
    int n;

    if (limit > sizeof (e->text))
        limit = sizeof (e->text);
    if (v->cut || e->used >= limit) {
        v->cut = true;
        return;
    }
    room = limit - e->used;
    va_start (ap, fmt);
    n = vsnprintf (e->text + e->used, room, fmt, ap);
    va_end (ap);
    if (n < 0 || (size_t)n >= room)
        v->cut = true;
    else
        e->used += (size_t)n;
}

void value_end (struct value *v)
{
    struct rank_environment *e = v->e;

    if (v->cut || e->used >= sizeof (e->text) || e->n == RANK_VARIABLES_MAX) {
        e->used = v->start;
        snprintf (e->why, sizeof (e->why),
                  "%s is not set: its list of hosts is longer than %d bytes", v->name,
                  RANK_VALUE_MAX);
        return;
    }
    e->text[e->used++] = '\0';
    e->vars[e->n++] = (struct rank_variable){ v->name, e->text + v->start };
}

/* An empty text is unknown, and not set. */
void env_text (struct rank_environment *e, const char *name, const char *t)
{
    struct value v = value_begin (e, name);

    if (!*t)
        return;
    value_put (&v, "%s", t);
    value_end (&v);
}

void env_number (struct rank_environment *e, const char *name, long n)
{
    struct value v = value_begin (e, name);

    value_put (&v, "%ld", n);
    value_end (&v);
}

void env_endpoint (struct rank_environment *e, const char *name, const char *host, int port)
{
    struct value v = value_begin (e, name);

    if (!*host)
        return;
    value_put (&v, strchr (host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    value_end (&v);
}

void env_why (struct rank_environment *e, const char *why)
{
    if (!*e->why)
        snprintf (e->why, sizeof (e->why), "%s", why);
}
