/* SPDX-License-Identifier: Apache-2.0 */
/* What the parameter server and its workers say to each other, over TCP. */
#pragma once

#include <stdbool.h>

#include "runtime/comm/net/listen.h"
#include "runtime/ps/registration.h"

/* A worker sends requests, and the server answers them in their order; both
 * are a header and 'bytes' bytes, in the machine's own order of bytes.  A
 * request that changes something has the worker's iteration and a number in
 * it, 'n' from 1, by which it is applied once; n is 0 for what may be repeated.
 */
enum { PS_VERSION = 2, PS_MAGIC = 0x53504c44 };

enum ps_kind {
    PS_HELLO =
        1, /* only in the handshake: struct ps_hello; answer: clock; offset: of
              the others; count, n: last that was applied; table: its claim */
    PS_JOIN,      /* goes on at 'clock' */
    PS_DECLARE,   /* struct ps_spec; count: 1: values follow */
    PS_INITIAL,   /* floats at 'offset' of the shard */
    PS_PUSH,      /* floats at 'offset' of the shard */
    PS_PULL,      /* count floats at 'offset'; answer: floats */
    PS_PUSH_ROWS, /* count ids, then rows */
    PS_PULL_ROWS, /* count ids; answer: rows */
    PS_CLOCK,     /* ends iteration 'clock'; count: 1: to be saved.  Answer:
                     clock: where all servers are to save; 0: nowhere */
    PS_CUT,       /* save at 'clock' */
    PS_SAVED,     /* is answered when a save was completed, or soon */
    PS_RATE,      /* a double */
    PS_BYE,
    PS_KINDS
};

struct ps_header {
    uint32_t magic;
    uint16_t version, kind;
    uint32_t status; /* of an answer: errno, and the body says why */
    uint32_t n;
    uint64_t table; /* key: pskey() of its name */
    int64_t clock;
    uint64_t offset, count;
    uint64_t bytes;
    int64_t saved; /* of an answer: newest save that all servers have */
};

struct ps_hello {
    int64_t server, servers, worker, workers;
    int64_t mode, staleness;
    int64_t cut; /* newest that this worker knows */
    uint64_t claim;
    uint64_t place;  /* number of its entry */
    uint64_t before; /* the server's claim that it was connected to */
    double timeout;
    struct ps_entry entry;
};

/* A table as it is declared. */
struct ps_spec {
    char name[SLURMDL_PS_NAME_SIZE];
    uint64_t n, seed;
    uint32_t row, rule;
    double rate, momentum, decay, beta1, beta2, epsilon, low, high;
};

enum {
    PS_BLOCK = 1 << 16,         /* elements of a dense table with one time */
    PS_PIECE = 4 * PS_BLOCK,    /* of a request */
    PS_ROWS_BYTES_MAX = 1 << 30 /* of a request of rows */
};

uint64_t ps_key (const char *name);
uint64_t ps_mix (uint64_t x);

/* The range of a dense table of 'n' elements that a server has: whole blocks,
 * so that they stay the same with another number of servers. */
void ps_shard (uint64_t key,
               uint64_t n,
               long server,
               long servers,
               uint64_t *lo,
               uint64_t *count);

static inline long ps_server_of (uint64_t id, long servers)
{
    return servers == 1 ? 0 : (long)(ps_mix (id) % (uint64_t)servers);
}

/* ---- sockets; all are not blocking ---- */

/* Listen, and put the port and the addresses of this machine, or 'address',
 * into 'e'.
 */
int pswire_listen (const char *address,
                   struct ps_entry *e,
                   struct listen_sockets *s,
                   struct slurmdl_error *err);

/* Connect to one of the addresses; at most 2 seconds each. */
int pswire_connect (const struct ps_entry *e);

/* No delays, and idle connections are probed. */
void pswire_tune (int fd, double grace);

/* When a connection was last seen to be alive; zeroed at first. */
struct ps_pulse {
    double looked, alive;
};

/* What was sent has not been acknowledged by the peer's kernel for 'grace'
 * seconds.  It is to be called at least every PS_LOOK_MAX seconds: after a
 * longer pause it begins again.
 */
enum { PS_LOOK_MAX = 3 };
bool pswire_is_dead (int fd, double grace, struct ps_pulse *pulse);
