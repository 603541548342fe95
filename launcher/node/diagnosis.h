/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnose the nodes of a step from the reports of its ranks and print the result. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/rank/layout.h"

/* Severity of a finding.  The step must not start at SEVERITY_STOP or above. */
enum severity {
    SEVERITY_NOTE, /* for information */
    SEVERITY_WARN, /* the step may run */
    SEVERITY_STOP, /* the step cannot work; no node is at fault */
    SEVERITY_BAD,  /* this node is bad */
    /* this node is bad, unless all nodes report the same: then the job is the cause */
    SEVERITY_SHARED,
};
extern const char *const severity_names[];

/* Exit status of a rank whose program must not start.  spank/check_collector.c uses the
 * same numbers.
 */
enum gather_status {
    GATHER_GO = 0,
    GATHER_AGAIN = 75,     /* nothing is wrong with its own node */
    GATHER_THIS_NODE = 79, /* its node is bad */
};

enum { NAME_TEXT = 64, WHY_TEXT = 200 };

/* A finding, with the nodes that have it. */
struct finding {
    enum severity severity;
    char why[WHY_TEXT];
    long count; /* number of nodes */
    long *nodes;
};

struct node_row {
    char name[NAME_TEXT];
    long ranks, answered, gpus;
    bool bad;
    char cores[NAME_TEXT], nic[NAME_TEXT], address[NAME_TEXT], gpu[NAME_TEXT];
};

struct diagnosis {
    long size;        /* expected number of ranks */
    long answered;    /* ranks that answered */
    long unreachable; /* ranks that did not, and whose nodes are unknown */
    long *node_of;    /* by rank; -1: unknown */
    struct node_row *nodes;
    long nnodes;
    struct finding *findings; /* worst first */
    long nfindings;
    bool stop;
};

/* Diagnose the reports of 'size' ranks; a rank that did not answer has NULL.  'layout'
 * tells on which nodes the silent ranks are, or is NULL.  The reports are untrusted:
 * members may be missing or have the wrong type.
 */
struct diagnosis *diagnosis_create (json_t *const *ranks, long size,
                                    const struct rank_layout *layout);
void diagnosis_destroy (struct diagnosis *d);

/* The exit status of a rank. */
enum gather_status diagnosis_status (const struct diagnosis *d, long rank);

/* Format a finding: "n1, n2 and 7 more: WHY". */
void finding_text (const struct diagnosis *d, const struct finding *f, char *buf, size_t size);

/* Format one line: what was checked and the worst finding. */
void diagnosis_line (const struct diagnosis *d, char *buf, size_t size);

/* Print the findings, one per line, and the table of nodes. */
void diagnosis_print (const struct diagnosis *d, FILE *to);

/* Print the diagnosis as JSON; dl-check(1) documents the fields. */
void diagnosis_json (const struct diagnosis *d, FILE *to);

/* Print a row for each rank with its place. */
void ranks_print (json_t *const *ranks, long size, FILE *to);
