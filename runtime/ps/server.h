/* SPDX-License-Identifier: Apache-2.0 */
/* A server at work. */
#pragma once

#include "runtime/comm/net/listener.h"
#include "runtime/ps/ps.h"

/* One thread, which polls.  Of each connection one request at a time is read,
 * then done or held: a held one waits (for other workers, initial values, a
 * save), and nothing more is read from its connection.
 */
enum ps_life {
    PS_UNSEEN, /* may come: is waited for */
    PS_LIVE,
    PS_BROKEN, /* its connection is gone, since 'since' */
    PS_GONE,   /* lost */
    PS_BYED,   /* has left */
};

struct ps_worker {
    enum ps_life life;
    bool silent; /* broken, and its host has not said so */
    double since;
    uint64_t claim, place;
    int64_t clock;      /* iterations it has ended */
    int64_t last_clock; /* the last request that was applied */
    uint32_t last_n;
    struct ps_entry entry;
};

struct ps_peer {
    int fd;
    bool known; /* it is the worker's connection */
    long worker;
    double since; /* when its request was held */
    struct ps_pulse pulse;
    double timeout; /* that the worker waits */
    struct ps_header in;
    size_t in_got;
    unsigned char *body;
    size_t body_room;
    bool held;        /* 'in' and 'body' are whole, and wait */
    bool close_after; /* the answer */
    bool silent;      /* it is gone, and its host does not say so */
    struct ps_header out;
    const unsigned char *out_body;
    unsigned char *out_own;              /* if the body is this answer's own */
    size_t out_room, out_size, out_sent; /* with the header */
};

struct ps_saving;

struct ps_server {
    struct slurmdl_ps *ps;
    struct ps_entry *entry; /* of ps */
    struct process_id self;
    struct listener listener; /* fd -1: none */
    struct ps_peer *peers;
    size_t npeers;
    struct ps_worker *workers;
    struct ps_table **tables;
    size_t ntables;
    int64_t done;             /* mode sync: iterations that were applied */
    int64_t cut;              /* save here; 0: nowhere */
    bool wanted;              /* server 0: a worker asks for a save */
    struct ps_saving *saving; /* NULL: no save is under way */
    int64_t saved;            /* newest that all have; -1: none */
    bool again;    /* it serves workers that another one served before */
    long byes;     /* workers that have left by themselves */
    double looked; /* when files of servers were last looked at */
    double asked;  /* and of workers */
    double alive;  /* when a worker was last there */
};

enum ps_did { PS_DONE, PS_HELD, PS_FAILED };

/* server.c: the workers that are waited for. */
bool psserver_waits_for (const struct ps_worker *w);
/* The least clock of the workers that are waited for; INT64_MAX: none is. */
int64_t psserver_slowest (const struct ps_server *s);
int64_t psserver_fastest (const struct ps_server *s); /* the greatest clock */
/* Most of those that have not been given up are connected: the network of this
 * host is not the cause for the others. */
bool psserver_sees_workers (const struct ps_server *s);
/* Tables: by key, one more (-1: out of memory), whether it can be one. */
struct ps_table *psserver_table (struct ps_server *s, uint64_t key);
int psserver_add_table (struct ps_server *s, struct ps_table *t);
bool psserver_is_good_spec (const struct ps_spec *s);

/* apply.c: do the request of a peer, and prepare its answer. */
enum ps_did psapply_request (struct ps_server *s,
                             struct ps_peer *p,
                             struct slurmdl_error *why);
/* End iterations and save where all workers have come; -1: fatal. */
int psapply_progress (struct ps_server *s, struct slurmdl_error *err);
/* What 'p' waits for, in words. */
void psapply_explain (const struct ps_server *s,
                      const struct ps_peer *p,
                      struct slurmdl_error *why);

/* workers.c: they come and go. */
enum ps_did psworkers_hello (struct ps_server *s,
                             struct ps_peer *p,
                             struct slurmdl_error *e);
enum ps_did psworkers_join (struct ps_server *s,
                            struct ps_peer *p,
                            struct slurmdl_error *e);
enum ps_did
psworkers_bye (struct ps_server *s, struct ps_peer *p, struct slurmdl_error *e);
void psworkers_disconnected (struct ps_server *s, long worker, bool silent);
/* Give up who does not come back.  Returns 1 when all have left. */
int psworkers_look (struct ps_server *s, struct slurmdl_error *err);

/* save.c: a save at s->cut of the tables as they are; one at a time.
 * pssave_go_on() does some of it in each turn of the loop, -1: it failed;
 * pssave_finish() all of it.
 */
int pssave_begin (struct ps_server *s, struct slurmdl_error *err);
int pssave_go_on (struct ps_server *s, struct slurmdl_error *err);
int pssave_finish (struct ps_server *s, struct slurmdl_error *err);
void pssave_abandon (struct ps_server *s);
/* Save at 'clock': what was pushed before it, and nothing later. */
void pssave_cut (struct ps_server *s, int64_t clock);
/* How long the loop may wait for events. */
int pssave_wait_ms (const struct ps_server *s, int otherwise);

/* store.c: forget the saves that are older than the newest that all have;
 * returns how many of PS_SAVES at 'old'.  Then any thread may remove the files:
 * this server's, and those of servers that are no more. */
uint32_t psstore_old (struct ps_server *s, struct ps_saved *old);
void psstore_remove (const struct slurmdl_ps *ps, const struct ps_saved *v);
/* A file of this server's is whole: tell the others. */
int psstore_saved (struct ps_server *s,
                   const struct ps_saved *saved,
                   struct slurmdl_error *err);
/* The newest save that all servers have, or nothing; then this one serves. */
int psstore_restore (struct ps_server *s, struct slurmdl_error *err);
/* ESTALE if another process has this place.  Where a worker has given this
 * server up, but others are connected to it, it takes its place again.  Looks
 * for saves of all.
 */
int psstore_look (struct ps_server *s, struct slurmdl_error *err);

/* peer.c: -1: the connection is gone. */
int pspeer_flush (struct ps_server *s, struct ps_peer *p);
int pspeer_serve (struct ps_server *s, struct ps_peer *p);
/* It is gone, as poll() says. */
void pspeer_hung_up (struct ps_peer *p);
bool pspeer_is_writing (const struct ps_peer *p);
void pspeer_drop (struct ps_server *s, size_t i);
/* Who has said hello. */
void pspeers_accept (struct ps_server *s);
/* What was held may go on after what others have done. */
void pspeers_retry (struct ps_server *s);
/* Answer what was held too long; drop who is late. */
void pspeers_tick (struct ps_server *s);

/* spare.c: the server whose place is to be taken; -1: all have left, -2:
 * failure. */
long psspare_wait (struct slurmdl_ps *ps, struct slurmdl_error *err);

/* An answer with 'n' bytes of 'body', which is the peer's own if 'own'. */
void psanswer (struct ps_peer *p, const void *body, size_t n);
void *psanswer_room (struct ps_peer *p, size_t n); /* NULL: out of memory */
void psanswer_error (struct ps_peer *p, int code, const char *why);
