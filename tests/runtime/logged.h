/* SPDX-License-Identifier: Apache-2.0 */
/* Open runs in the test's directory, and print the records they logged as text. */
#pragma once

#include "runtime/slurmdl.h"
#include "tests/folder.h"
#include "tests/unit.h"

static inline struct slurmdl *open_run (void)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = slurmdl_open (dir, &err);

    if (!run)
        fail_msg ("%s", err.text);
    return run;
}

static inline const char *attempt_dir (long k)
{
    char name[16];

    snprintf (name, sizeof (name), "a.%ld", k);
    return in_dir (name);
}

struct text {
    char text[2000];
    size_t n;
};

static inline void add (struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    t->n += (size_t)vsnprintf (t->text + t->n, sizeof (t->text) - t->n, fmt, ap);
    va_end (ap);
}

static inline int add_record (const struct slurmdl_record *r, void *arg)
{
    add (arg, "%d %s@%lld %.*s; ", (int)r->kind, r->name, (long long)r->step,
         r->kind == SLURMDL_TEXT || r->kind == SLURMDL_EVENT ? (int)r->size : 0,
         (const char *)r->data);
    return 0;
}
