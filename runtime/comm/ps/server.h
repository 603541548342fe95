/* SPDX-License-Identifier: Apache-2.0 */
/* A server at work. */
#ifndef RUNTIME_COMM_PS_SERVER_H
#define RUNTIME_COMM_PS_SERVER_H

#include "runtime/comm/ps/ps.h"

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
    double since;
    uint64_t claim, place;
    int64_t clock;      /* iterations it has ended */
    int64_t last_clock; /* the last request that was applied */
    uint32_t last_n;
    struct ps_entry entry;
};

struct ps_peer {
    int fd;
    bool known; /* it has said hello */
    long worker;
    double since;   /* when it came, or its request was held */
    double timeout; /* that the worker waits */
    struct ps_header in;
    size_t in_got;
    unsigned char *body;
    size_t body_room;
    bool held;        /* 'in' and 'body' are whole, and wait */
    bool close_after; /* the answer */
    struct ps_header out;
    const unsigned char *out_body;
    unsigned char *out_own;              /* if the body is this answer's own */
    size_t out_room, out_size, out_sent; /* with the header */
};

struct ps_server {
    struct slurmdl_ps *ps;
    struct ps_entry *entry; /* of ps */
    struct member self;
    int listen;
    struct ps_peer *peers;
    size_t npeers, room;
    struct ps_worker *workers;
    struct ps_table **tables;
    size_t ntables;
    int64_t done;  /* mode sync: iterations that were applied */
    int64_t cut;   /* save here; 0: nowhere */
    bool wanted;   /* server 0: a worker asks for a save */
    int64_t saved; /* newest that all have; -1: none */
    bool again;    /* it serves workers that another one served before */
    long byes;     /* workers that have left by themselves */
    double looked; /* when files were last looked at */
    double alive;  /* when a worker was last there */
};

enum ps_did { PS_DONE, PS_HELD, PS_FAILED };

/* apply.c: do the request of a peer, and prepare its answer. */
enum ps_did psapply_request (struct ps_server *s,
                             struct ps_peer *p,
                             struct slurmdl_error *why);
/* End iterations and save where all workers have come; -1: fatal. */
int psapply_progress (struct ps_server *s, struct slurmdl_error *err);
/* The least clock of the workers that are waited for; INT64_MAX: none is. */
int64_t psapply_slowest (const struct ps_server *s);
/* What 'p' waits for, in words. */
void psapply_explain (const struct ps_server *s,
                      const struct ps_peer *p,
                      struct slurmdl_error *why);
struct ps_table *psapply_table (struct ps_server *s, uint64_t key);
int psapply_add_table (struct ps_server *s, struct ps_table *t);
void psapply_cut (struct ps_server *s, int64_t clock); /* save there */
bool psapply_waits_for (const struct ps_worker *w);

/* people.c: workers come and go. */
enum ps_did pspeople_hello (struct ps_server *s,
                            struct ps_peer *p,
                            struct slurmdl_error *e);
enum ps_did
pspeople_join (struct ps_server *s, struct ps_peer *p, struct slurmdl_error *e);
enum ps_did
pspeople_bye (struct ps_server *s, struct ps_peer *p, struct slurmdl_error *e);
void pspeople_disconnected (struct ps_server *s, long worker);
/* Give up who does not come back.  Returns 1 when all have left. */
int pspeople_look (struct ps_server *s, struct slurmdl_error *err);

/* store.c */
int psstore_save (struct ps_server *s, struct slurmdl_error *err);
/* The newest save that all servers have, or nothing; then this one serves. */
int psstore_restore (struct ps_server *s, struct slurmdl_error *err);
/* ESTALE if another process has this place; looks for saves of all. */
int psstore_look (struct ps_server *s, struct slurmdl_error *err);

/* An answer with 'n' bytes of 'body', which is the peer's own if 'own'. */
void psanswer (struct ps_peer *p, const void *body, size_t n);
void *psanswer_room (struct ps_peer *p, size_t n); /* NULL: out of memory */
void psanswer_error (struct ps_peer *p, int code, const char *why);

#endif
