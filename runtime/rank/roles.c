/* SPDX-License-Identifier: Apache-2.0 */
/* Parse roles, and assign ranks to them. */
#include "runtime/rank/roles.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/nearest_word.h"

enum { DIGITS = 6, NAME = 16 };

const char *const role_names[] = {
    [ROLE_CHIEF] = "chief",         [ROLE_MASTER] = "master",
    [ROLE_WORKER] = "worker",       [ROLE_PS] = "ps",
    [ROLE_SERVER] = "server",       [ROLE_SCHEDULER] = "scheduler",
    [ROLE_EVALUATOR] = "evaluator", [ROLES] = NULL,
};

__attribute__ ((format (printf, 3, 4))) static int refuse_role (char *why, size_t size,
                                                                const char *fmt, ...)
{
    va_list ap;

    if (why) {
        va_start (ap, fmt);
        vsnprintf (why, size, fmt, ap);
        va_end (ap);
    }
    errno = EINVAL;
    return -1;
}

static int find_role (const char *name)
{
    for (int i = 0; i < ROLES; i++)
        if (!strcmp (role_names[i], name))
            return i;
    return -1;
}

static bool is_single (enum role role)
{
    return role != ROLE_WORKER && role != ROLE_PS && role != ROLE_SERVER;
}

/* Read "3", or "*" as -1; 0 if it is neither.  Advances *text past it. */
static long read_count (const char **text)
{
    size_t n = strspn (*text, "0123456789");
    long count = n && n <= DIGITS ? strtol (*text, NULL, 10) : 0;

    if (**text == '*') {
        n = 1;
        count = -1;
    }
    *text += n;
    return count;
}

static int add_role (struct rank_roles *r, const char **text, char *why, size_t size)
{
    size_t n = strspn (*text, "abcdefghijklmnopqrstuvwxyz");
    char name[NAME] = "";
    const char *meant;
    long count;
    int role;

    if (n < sizeof (name))
        memcpy (name, *text, n);
    role = find_role (name);
    meant = nearest_word (name, role_names);
    if (role < 0)
        return refuse_role (why, size, "no role '%s'%s%s%s", name,
                            DID_YOU_MEAN (meant, "", "", ""));
    *text += n;
    if (*(*text)++ != ':' || (count = read_count (text)) == 0)
        return refuse_role (why, size, "'%s' needs a number of ranks or '*' after ':'", name);
    if (is_single ((enum role)role) && count != 1)
        return refuse_role (why, size, "there is one %s", name);
    for (int i = 0; i < r->n; i++)
        if ((int)r->row[i].role == role)
            return refuse_role (why, size, "'%s' is given twice", name);
        else if (count < 0 && r->row[i].count < 0)
            return refuse_role (why, size, "there is more than one '*'");
    r->row[r->n].role = (enum role)role;
    r->row[r->n++].count = count;
    return 0;
}

int roles_parse (const char *text, struct rank_roles *r, char *why, size_t size)
{
    r->n = 0;
    for (;;) {
        if (add_role (r, &text, why, size) < 0)
            return -1;
        if (!*text)
            return 0;
        if (*text++ != ',')
            return refuse_role (why, size, "a ',' is missing between two roles");
    }
}

int roles_resolve (struct rank_roles *r, long ranks, char *why, size_t size)
{
    long sum = 0;
    int star = -1;

    for (int i = 0; i < r->n; i++)
        if (r->row[i].count < 0)
            star = i;
        else
            sum += r->row[i].count;
    if (star >= 0 && sum < ranks) {
        r->row[star].count = ranks - sum;
        return 0;
    }
    if (star < 0 && sum == ranks)
        return 0;
    return refuse_role (why, size, "the roles need %s%ld task%s; the step has %ld",
                        star >= 0 ? "at least " : "", sum + (star >= 0),
                        sum + (star >= 0) == 1 ? "" : "s", ranks);
}

enum role roles_of (const struct rank_roles *r, long rank, long *index)
{
    int i = 0;

    while (i + 1 < r->n && rank >= r->row[i].count)
        rank -= r->row[i++].count;
    *index = rank;
    return r->row[i].role;
}

long roles_count (const struct rank_roles *r, enum role role, long *first)
{
    long rank = 0;

    for (int i = 0; i < r->n; rank += r->row[i++].count)
        if (r->row[i].role == role) {
            if (first)
                *first = rank;
            return r->row[i].count;
        }
    return 0;
}
