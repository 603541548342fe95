/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank looks at on its node, each in a process that may hang. */
#ifndef LAUNCHER_NODECHECK_HEALTH_H
#define LAUNCHER_NODECHECK_HEALTH_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launcher/nodecheck/diagnosis.h"
#include "launcher/nodecheck/gather.h"

/* Where the checks run. */
struct check_place {
    enum check_level level;
    long local_rank, local_size;
    const json_t *next; /* the next node: {"host", "address", "port"} */
    int out;            /* of the check's process: where it tells */
};

/* For a check, in its own process. */
void check_tells (const struct check_place *p,
                  enum severity severity,
                  const char *fmt,
                  ...) __attribute__ ((format (printf, 3, 4)));
/* A fact: a version, a rate, a GPU.  'value' is taken over. */
void check_fact (const struct check_place *p,
                 const char *group,
                 const char *name,
                 json_t *value);
/* What it is about to look at, told if it hangs there. */
void check_begins (const struct check_place *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

enum check_who { EVERY_RANK, FIRST_OF_NODE };

struct check_row {
    const char *name;
    enum check_level level; /* from which on it is done */
    enum check_who who;
    enum severity hangs; /* what it means if it does not end */
    void (*run) (const struct check_place *p);
};
/* Ended by a NULL name: of one node; and of two, after the first. */
extern const struct check_row check_table[], check_peer_table[];

/* Run those of the table that are for this level and rank, at the same time.
 * What has not ended after 'seconds' is killed and left alone.  Adds to the
 * array 'findings', and groups of facts to the object 'facts'.
 */
void health_run (const struct check_row *table,
                 const struct check_place *place,
                 double seconds,
                 json_t *facts,
                 json_t *findings);

/* A finding as it is sent; 'why' is cleaned when it is read. */
json_t *finding_json (enum severity severity, const char *why);

/* ---- the checks ---- */
void check_gpus (const struct check_place *p); /* gpus.c */
void check_copy (const struct check_place *p); /* gpucopy.c */
void check_amd (const struct check_place *p);  /* system.c */
void check_kernel (const struct check_place *p);
void check_network (const struct check_place *p);
void check_memory (const struct check_place *p);
void check_bandwidth (const struct check_place *p);
void check_directory (const struct check_place *p); /* files.c */
void check_temporary (const struct check_place *p);
void check_versions (const struct check_place *p); /* versions.c */
void check_python (const struct check_place *p);
void check_master (const struct check_place *p); /* peers.c */
void check_next (const struct check_place *p);

/* The other end of these two, in a process of its own: on the port where the
 * step's rank 0 will listen, if this is that rank ('findings' says if it cannot
 * be taken), and on '*port', which it chooses.  Returns its process, or -1.
 */
pid_t peers_serve (bool is_master, int *port, json_t *findings);
void peers_end (pid_t pid);

/* The GPUs that this process was given, by Slurm's variables: how many, and
 * whether the i-th of the driver's is one of them.
 */
long gpus_given (void);
bool gpu_is_given (unsigned i, const char *uuid);

#endif
