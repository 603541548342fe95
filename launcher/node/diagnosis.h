/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnose the nodes of a step from the reports of its ranks, and print that. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/rank/layout.h"

/* Of a finding.  From SEVERITY_STOP on the step is not to start. */
enum severity {
    SEVERITY_NOTE, /* a fact to know */
    SEVERITY_WARN, /* the step may run */
    SEVERITY_STOP, /* the step cannot work; no node is the culprit */
    SEVERITY_BAD,  /* this node is bad */
    /* the same, unless all nodes say so: then it is the job's doing */
    SEVERITY_SHARED,
};
extern const char *const severity_names[];

/* What a rank whose program is not to start ends with; spank/check_collector.c has the
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
    long count; /* of nodes */
    long *nodes;
};

struct node_row {
    char name[NAME_TEXT];
    long ranks, answered, gpus;
    bool bad;
    char cores[NAME_TEXT], nic[NAME_TEXT], address[NAME_TEXT], gpu[NAME_TEXT];
};

struct diagnosis {
    long size;        /* ranks that there should be */
    long answered;    /* that there were */
    long unreachable; /* without answer, of unknown nodes */
    long *node_of;    /* by rank; -1: not known */
    struct node_row *nodes;
    long nnodes;
    struct finding *findings; /* the worst first */
    long nfindings;
    bool stop;
};

/* 'ranks' has 'size' objects as the ranks sent them, NULL for those without
 * answer; 'layout' says where those are, or is NULL.  What one of them holds is
 * never trusted to be there, or to be of its type.
 */
struct diagnosis *diagnosis_create (json_t *const *ranks, long size,
                                    const struct rank_layout *layout);
void diagnosis_destroy (struct diagnosis *d);

/* What rank 'rank' ends with: an enum gather_status. */
int diagnosis_status (const struct diagnosis *d, long rank);

/* "n1, n2 and 7 more: WHY" of a finding. */
void finding_text (const struct diagnosis *d, const struct finding *f, char *buf, size_t size);

/* One line: what was looked at, and the worst of what was found. */
void diagnosis_line (const struct diagnosis *d, char *buf, size_t size);

/* The findings, a line each, and the table of nodes. */
void diagnosis_print (const struct diagnosis *d, FILE *to);

/* All of that as JSON; dl-check(1) has the fields. */
void diagnosis_json (const struct diagnosis *d, FILE *to);

/* A row for each rank: who is where. */
void ranks_print (json_t *const *ranks, long size, FILE *to);
