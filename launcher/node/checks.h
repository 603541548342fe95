/* SPDX-License-Identifier: Apache-2.0 */
/* dl check: messages between the ranks and the collector, the checks, and the
 * collector.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "launcher/node/diagnosis.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/listen.h"
#include "runtime/comm/net/stream.h"

/* ---- messages ---- */

/* After the handshake, whose body is {"rank", "size", "layout": {...}}, each message is
 * a JSON object.  The clock starts with the first handshake.
 *
 *  rank:      {"facts": {...}, "findings": [...]}
 *  collector: {"go": {"next": {"host", "address", "port"}}}
 *  rank:      {"findings": [...], "rates": {...}}
 *  collector: {"status": 0, 75 or 79}
 */

enum { GATHER_LINE = 256 << 10 }; /* longest line or message, bytes */

/* Receive a message from a non-blocking socket; the caller owns it.  Returns NULL with
 * errno EAGAIN if none is complete yet, or with another errno if no more can arrive.
 */
json_t *gather_receive (struct net_stream *w);

/* Send a whole message before the monotonic() time 'deadline'.  Returns -1 with errno
 * on failure.
 */
int gather_send (struct net_stream *w, const json_t *object, double deadline);

struct gather_line {
    char *text;
    size_t used, capacity;
};

/* Read from a non-blocking descriptor.  Returns an object, which the caller owns, once
 * its line is complete.  Returns NULL with errno EAGAIN until then, or with another
 * errno if no more can arrive.
 */
json_t *gather_read (int fd, struct gather_line *line);
void gather_line_free (struct gather_line *line);

/* Copy text from another node, truncated to fit.  Characters outside printable ASCII
 * become '?'.
 */
void gather_clean (char *buf, size_t size, const char *text);

/* ---- levels ---- */

enum check_level { LEVEL_NONE, LEVEL_QUICK, LEVEL_FULL };

/* Parse "none", "quick" or "full".  Returns an enum check_level, or -1. */
int gather_level (const char *word);

/* Time limits in seconds since the first rank: for the checks of each node, for all of
 * its facts, for the checks that need two nodes, and for the result.
 */
struct gather_times {
    double probes, facts, peers, all;
};
extern const struct gather_times gather_times[3]; /* by level */

/* ---- what a check reports from its process ---- */

struct check_place {
    enum check_level level;
    long local_rank, local_size;
    const unsigned char *key; /* key of the ranks of the step; NULL if there is none */
    const json_t *next;       /* the next node: {"host", "address", "port"} */
    int out;                  /* descriptor for the output of the check */
};

/* Report a finding to the collector. */
void check_finding (const struct check_place *p, enum severity severity, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Report a fact, such as a version, a rate or a GPU.  Takes ownership of 'value'. */
void check_fact (const struct check_place *p, const char *group, const char *name, json_t *value);

/* Report what the check examines from now on, so that the diagnosis can name it if the
 * check hangs.
 */
void check_stage (const struct check_place *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Return a finding as JSON, with unprintable characters of 'why' replaced. */
json_t *finding_json (enum severity severity, const char *why);

/* ---- running checks ---- */

enum check_scope { EVERY_RANK, FIRST_OF_NODE };

struct check_row {
    const char *name;
    enum check_level level; /* the lowest at which it runs */
    enum check_scope scope;
    enum severity hangs; /* severity if the check hangs or crashes */
    void (*run) (const struct check_place *p);
};

/* Run all checks of the table for this level and rank in parallel.  Kills a check that
 * takes longer than 'seconds', without waiting for it to exit.  Appends to the array
 * 'findings' and adds groups of facts to 'facts'.
 */
void health_run (const struct check_row *table, const struct check_place *place, double seconds,
                 json_t *facts, json_t *findings);

/* ---- the checks: each adds findings and facts ---- */

/* Check and report the GPUs that this rank sees. */
void check_gpus (const struct check_place *p);

/* Report a GPU whose memory returns wrong data or copies slowly. */
void check_copy (const struct check_place *p);

/* Check one part of the node: AMD GPUs, the kernel's messages, network interfaces,
 * memory, and memory bandwidth.
 */
void check_amd (const struct check_place *p);
void check_kernel (const struct check_place *p);
void check_network (const struct check_place *p);
void check_memory (const struct check_place *p);
void check_bandwidth (const struct check_place *p);

/* Report a working directory or TMPDIR that this rank cannot use. */
void check_directory (const struct check_place *p);
void check_temporary (const struct check_place *p);

/* Report versions that must be the same on all ranks: those of the kernel and NCCL, and
 * those of Python and its packages.
 */
void check_versions (const struct check_place *p);
void check_python (const struct check_place *p);

/* Report a finding if rank 0's host and port, or those of the next node, do not accept
 * a connection.
 */
void check_master (const struct check_place *p);
void check_next (const struct check_place *p);

/* Start the process that check_master() and check_next() connect to.  On rank 0, it
 * listens on the step's port and adds a finding if the port is taken.  On every rank,
 * it also listens on '*port', which it chooses, for ranks that have the key of the
 * step's collector.  Returns its process ID, or -1.
 */
pid_t peers_serve (const unsigned char *key, bool is_master, int *port, json_t *findings);
void peers_end (pid_t pid);

/* Environment variable that passes the value of `dl check --gpus`, the expected number
 * of GPUs, to the processes of the check.
 */
#define EXPECTED_VARIABLE "DL_CHECK_GPUS"

/* ---- the collector, which evaluates the reports of a step's ranks ---- */

struct gather {
    enum check_level level;
    bool table;                       /* print the node and the GPUs of each rank */
    bool json;                        /* print JSON to standard output */
    unsigned char key[HANDSHAKE_KEY]; /* of the ranks of this step */
    struct listen_sockets listener;
    int parent;        /* descriptor; the collector ends when it is closed; -1 for none */
    const char *notes; /* file for the names of bad nodes, or NULL */
};

/* Listen on 'port', or on a port in 'range' ("60001-60100"), or on a port that the
 * kernel chooses.
 */
int gather_open (struct gather *g, int port, const char *range, struct slurmdl_error *err);

/* Return the parameters of the handshake between the ranks and the collector. */
struct handshake gather_handshake (const unsigned char *key);

/* Collect the reports of all ranks, print the diagnosis to standard error and answer
 * the ranks.  Returns the step's enum gather_status.
 */
int gather_serve (struct gather *g);
