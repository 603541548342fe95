/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's connection to a server, and what it has said to it. */
#pragma once

#include "runtime/ps/ps.h"

/* A request.  It waits in the queue until it is answered; then, if it changes
 * something, it is kept in the log until all servers have saved, and goes back
 * to the queue if another process takes the server's place.
 */
struct ps_record {
    struct ps_record *next;
    struct ps_header h;
    const unsigned char *body;
    bool logged;
    int64_t ticket; /* 0: nobody waits */
    float *out;     /* where the answer goes; NULL: nowhere */
    size_t *where;  /* of rows: which of 'out' each is; NULL: in this order */
    uint32_t row;   /* elements */
    unsigned char own[];
};

struct ps_queue {
    struct ps_record *head, *tail;
};

struct ps_link {
    long server;
    int fd; /* -1: not connected */
    uint64_t number, claim;
    struct ps_entry entry;
    struct ps_queue queue, log;
    struct ps_record *send; /* of the queue: the next to send */
    size_t sent;            /* bytes of it */
    struct ps_header in;
    size_t got;
    unsigned char *body; /* of an answer that goes nowhere, or is rows */
    size_t room;
    double since; /* of the last byte, or when the connection went */
    double next;  /* try to connect then */
    double pause;
    struct ps_pulse pulse;
    uint64_t lost;        /* the entry that was given up */
    int64_t clock, floor; /* as the server told */
};

struct ps_ticket {
    struct ps_ticket *next;
    int64_t id;
    size_t left; /* answers */
    int code;
    struct slurmdl_error why;
};

struct ps_client {
    struct ps_link *links;
    int64_t clock;
    uint32_t n;   /* changes in this iteration */
    bool clocked; /* server 0 has answered the last clock */
    int64_t told; /* the save that all servers were told of */
    int64_t saved;
    bool wanted;
    struct ps_ticket *tickets;
    int64_t next_ticket;
    struct slurmdl_ps_table *tables; /* name: NULL */
    uint64_t *keys;
    size_t ntables;
    bool joined, broken;
    bool leaving; /* all has been said but goodbye */
    struct slurmdl_error why;
    int code;
};

/* Room for 'copy' bytes of a body at record->own; NULL: out of memory. */
struct ps_record *
psrecord_create (const struct slurmdl_ps *ps, enum ps_kind kind, size_t copy);
void psrecord_destroy (struct ps_record *r);

/* Append to the queue, which owns it then. */
void psqueue_add (struct ps_queue *q, struct ps_record *r);
void pslink_add (struct slurmdl_ps *ps, struct ps_link *l, struct ps_record *r);

/* Send, receive and connect until 'done' is true; -1: the client is broken,
 * and why.
 */
typedef bool (*pslink_done_f) (struct slurmdl_ps *ps, int64_t arg);
int pslinks_pump (struct slurmdl_ps *ps,
                  pslink_done_f done,
                  int64_t arg,
                  struct slurmdl_error *err);
void pslink_destroy (struct slurmdl_ps *ps, struct ps_link *l);

/* handshake.c: say who this worker is; the answer, and its text of at most
 * PS_ANSWER_TEXT characters.  -1: there is none.
 */
enum { PS_ANSWER_TEXT = 256 };
int pshandshake_say (struct slurmdl_ps *ps,
                     struct ps_link *l,
                     int fd,
                     struct ps_header *a,
                     char *text);

/* connect.c: try to connect: 1: it is up, 0: not yet, -1: never. */
int pslink_connect (struct slurmdl_ps *ps,
                    struct ps_link *l,
                    struct slurmdl_error *err);
/* requests.c: a record was answered, or was known to be applied. */
void pslink_complete (struct slurmdl_ps *ps,
                      struct ps_link *l,
                      struct ps_record *r,
                      int code,
                      const char *why);

/* A request to all servers; -1 after psclient_break(). */
int psclient_tell_all (struct slurmdl_ps *ps,
                       enum ps_kind kind,
                       int64_t clock,
                       bool logged);
/* What an answer means beyond its record. */
void psclient_answered (struct slurmdl_ps *ps,
                        struct ps_link *l,
                        const struct ps_record *r,
                        const struct ps_header *h);
int psclient_break (struct slurmdl_ps *ps, int code, const char *why);
