/* SPDX-License-Identifier: Apache-2.0 */
/* What the frameworks share: to write variables, and lists of ranks. */
#pragma once

#include "runtime/rank/rankenv.h"

/* A value is written piece by piece; one that does not fit is left out, and
 * e->why says so.
 */
struct value {
    struct rank_environment *e;
    const char *name;
    size_t start;
    bool cut;
};

struct value value_begin (struct rank_environment *e, const char *name);
__attribute__ ((format (printf, 2, 3))) void value_put (struct value *v, const char *fmt, ...);
void value_end (struct value *v);

/* An empty text, and an endpoint of an empty host, is unknown, and not set. */
void env_text (struct rank_environment *e, const char *name, const char *t);
void env_number (struct rank_environment *e, const char *name, long n);
void env_endpoint (struct rank_environment *e, const char *name, const char *host, int port);

/* Keep the first reason. */
void env_why (struct rank_environment *e, const char *why);

/* Frameworks whose variables list the ranks. */
void fill_tf (const struct rank_facts *f, struct rank_environment *e);
void fill_ps (const struct rank_facts *f, struct rank_environment *e);
void fill_paddle (const struct rank_facts *f, struct rank_environment *e);
