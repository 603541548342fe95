/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a step tell one place what they have, and hear a verdict. */
#ifndef LAUNCHER_NODECHECK_GATHER_H
#define LAUNCHER_NODECHECK_GATHER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "launcher/sys/settings.h"
#include "runtime/slurmdl.h"

/* What a rank whose program is not to start ends with; spank/gather.c has the
 * same numbers.
 */
enum gather_status {
    GATHER_GO = 0,
    GATHER_AGAIN = 75,     /* nothing is wrong with its own node */
    GATHER_THIS_NODE = 79, /* its node is bad */
};

enum check_level { LEVEL_NONE, LEVEL_QUICK, LEVEL_FULL };

/* "none", "quick", "full"; -1 if it is none of them. */
int gather_level (const char *word);

/* Seconds from the first rank to the verdict, and to its parts: facts and
 * checks of each node; then what needs two nodes.
 */
struct gather_times {
    double probes, facts, peers, all;
};
extern const struct gather_times gather_times[3]; /* by level */

/* ---- the wire: a JSON object a line ----
 *
 * rank:      {"token", "rank", "size", "layout": {...}}  (begins the clock)
 * rank:      {"facts": {...}, "findings": [...]}
 * collector: {"go": {"next": {"host", "address", "port"}}}
 * rank:      {"findings": [...], "rates": {...}}
 * collector: {"status": 0, 75 or 79}
 */
enum {
    GATHER_LINE = 256 << 10, /* longest line */
    GATHER_TOKEN = 32,       /* characters of a token */
    GATHER_RANKS = 32768,
};

struct gather_line {
    char *text;
    size_t used, room;
};

/* Read what there is on a non-blocking descriptor.  Returns an object once its
 * line is complete, which the caller owns; NULL with errno EAGAIN if it is
 * not; NULL with another errno if nothing more can come.
 */
json_t *gather_read (int fd, struct gather_line *line);
void gather_line_free (struct gather_line *line);

/* Write an object and a line's end, all of it before 'deadline' (monotonic()).
 * Returns 0, or -1 with errno.
 */
int gather_write (int fd, const json_t *object, double deadline);

/* Copy text that another node sent, without control characters, cut to fit. */
void gather_clean (char *buf, size_t size, const char *text);

/* ---- the collector ---- */

struct gather {
    enum check_level level;
    bool table; /* print who is where */
    char token[GATHER_TOKEN + 1];
    int listener; /* fd */
    int port;
    int life;          /* fd whose end ends the collector; -1: none */
    const char *notes; /* file for the names of bad nodes, or NULL */
};

/* That file, in the folder of an attempt: a name a line. */
#define GATHER_NOTES "bad-nodes"

/* Listen on 'port', or on any in 'range' ("60001-60100"), or where the kernel
 * chooses; make a token unless there is one.  Returns 0, or -1.
 */
int gather_open (struct gather *g,
                 int port,
                 const char *range,
                 struct slurmdl_error *err);

/* A socket that listens on 'port' (0: the kernel chooses) of all addresses,
 * IPv6 and IPv4; it does not block.  'reuse': although connections of an
 * earlier one linger.  Returns -1 with errno.
 */
int gather_listen (int port, bool reuse);
int gather_port (int fd);

/* Collect, print to standard error, answer.  Returns an enum gather_status: of
 * the step.
 */
int gather_serve (struct gather *g);

/* ---- a rank ---- */

struct gather_client {
    enum check_level level;
    bool table;
    bool quiet;                 /* print no finding */
    bool waits;                 /* the collector may be about to listen */
    const char *address, *port; /* NULL: there is no collector */
    const char *token;
};

/* Gather the facts and findings of this rank.  With a collector send them and
 * wait for its verdict, without one judge by them alone.  Prints at most a
 * line, and '*all' (if not NULL) gets what the rank knows, which the caller
 * owns.  Returns an enum gather_status.
 */
int gather_rank (const struct gather_client *c, json_t **all);

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_check (const struct settings *st);
int cmd_check_rank (const struct settings *st);
int cmd_gather (const struct settings *st);

#endif
