/* SPDX-License-Identifier: Apache-2.0 */
/* What a check reports from its process: findings and facts. */
#pragma once

#include <jansson.h>

#include "launcher/nodecheck/diagnosis.h"
#include "launcher/nodecheck/level.h"

struct check_place {
    enum check_level level;
    long local_rank, local_size;
    const unsigned char *key; /* of the ranks of the step; NULL: none */
    const json_t *next;       /* the next node: {"host", "address", "port"} */
    int out; /* descriptor that takes the output of the check */
};

/* A finding, as printf(3) would print it, for the collector. */
void check_finding (const struct check_place *p,
                    enum severity severity,
                    const char *fmt,
                    ...) __attribute__ ((format (printf, 3, 4)));
/* A fact: a version, a rate, a GPU.  Steals 'value'. */
void check_fact (const struct check_place *p,
                 const char *group,
                 const char *name,
                 json_t *value);
/* What the check looks at from now on; it is named if the check hangs. */
void check_stage (const struct check_place *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* A finding as it is sent; 'why' is cleaned. */
json_t *finding_json (enum severity severity, const char *why);
