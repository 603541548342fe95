/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks connect to a port of rank 0, and exchange messages over a tree. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/net/board.h"
#include "runtime/comm/net/listener.h"
#include "runtime/comm/net/notice.h"
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/stream.h"
#include "runtime/slurmdl_comm.h"

/* What a rank knows before it has connected to any other. */
struct boot_place {
    long rank, size;
    /* Where rank 0 listens, "HOST[,HOST...]".  If there is a notice, which contains that, it is set
     * only if the user named it or rank 0 cannot publish (tcp.c).
     */
    char host[256];
    int port;
    bool is_named; /* the user has chosen both */
    bool nearby;   /* 'host' is the name of a node, possibly this one, or of no host */
    struct listen_sockets listener; /* of rank 0, if it already listens */
    /* The same on all ranks of this step, and on no others.  Without 'has_key', it is in the
     * notice. */
    unsigned char key[HANDSHAKE_KEY];
    bool has_key;
    /* The notice (notice.h) of rank 0, which removes it; "" if there is none. */
    char notice[NOTICE_NAME];
    struct board_post post;           /* the same at srun, for ranks that cannot see the notice */
    int linger;                       /* seconds for which it explains why rank 0 ended */
    bool plain;                       /* messages have no tags (handshake.h) */
    double timeout;                   /* seconds */
    char own[64];                     /* name of this host */
    const struct rank_layout *layout; /* which rank is where; or NULL */
    bool *heard;                      /* set once rank 0 has answered anything; or NULL */
};

/* Another rank, and the ranks that it represents. */
struct boot_peer {
    struct net_stream stream;
    long rank; /* -1: unknown yet */
    char host[64];
    char from[64];   /* its address */
    int port;        /* where it would listen to children; 0: it does not */
    uint32_t *ranks; /* itself first; NULL if only their number matters */
    long nranks;
};

/* Rank 0 has no parent. */
struct boot_tree {
    long rank, size;
    double timeout;
    struct boot_peer parent; /* stream.fd is -1: none */
    struct boot_peer *children;
    long nchildren;
    const struct rank_layout *layout;
    bool broken;
    struct slurmdl_error why;
};

/* Compose what rank 0 publishes about its listener: "PORT/KEY/MACHINE/HOST[,HOST...]", where KEY is
 * "-" if all ranks have the key and MACHINE identifies ranks on the same machine; or why it has
 * none.
 */
enum { BOOT_NOTICE = 448 };
void boot_compose (struct boot_place *p, char *notice);
void boot_compose_failure (const char *why, char *notice);
/* Parse a notice.  Returns -1 with EPROTO if it is invalid, ECONNREFUSED if there is no listener;
 * 'err' says why.  Only a rank on the same machine may get a loopback address as the host.
 */
int boot_parse (struct boot_place *p, const char *notice, struct slurmdl_error *err);

bool boot_is_loopback (const char *host);

/* The kinds of messages. */
enum { BOOT_TEXT = 1024, BOOT_VERSION = 1 };

enum boot_kind {
    BOOT_WELCOME = 1,
    BOOT_REFUSED, /* with a reason; not sent to processes of another step */
    BOOT_GATHER,
    BOOT_ALL,
    BOOT_FAILED, /* errno (int32_t) and a reason */
};

/* Connect.  Returns -1 with 'err' naming the ranks that did not come. */
int boot_tree_open (struct boot_tree *t, struct boot_place *p, struct slurmdl_error *err);
void boot_tree_close (struct boot_tree *t, bool ours); /* not a parent process's */

int boot_tree_allgather (struct boot_tree *t, const void *mine, size_t bytes, void *all,
                         struct slurmdl_error *err);

/* Tell all peers except 'but' why this fails. */
void boot_tree_tell (struct boot_tree *t, const struct boot_peer *but, int error, const char *why);
/* Read the rest of what was received: otherwise, closing would discard messages that were sent. */
void boot_tree_drain (struct boot_tree *t);
/* The reason in a message of a peer; sets errno. */
const char *boot_tree_reason (const struct net_stream *w);

/* Fail with EBADMSG: somebody in between alters the messages. */
int boot_say_altered (const struct boot_peer *from, struct slurmdl_error *err);

void boot_peer_init (struct boot_peer *p, int fd, struct net_seal *seal);
void boot_peer_close (struct boot_peer *p);

/* The body of the handshake of a rank; 'nranks' numbers follow, its own first. */
struct boot_hello {
    int64_t rank, size;
    char host[64];
    uint32_t nranks;
    int32_t port; /* where it would listen to children; 0: it does not */
};

/* Introduce this rank to the parent of 't': where it listens (0: nowhere), and
 * that it represents the children of 't', or none if 'alone'.
 */
int boot_introduce (struct boot_tree *t, const struct boot_place *p, int port, bool alone,
                    double deadline);

/* Fail with EOPNOTSUPP: only one of two ranks is plain. */
int boot_say_differs (bool plain, long rank, const char *host, struct slurmdl_error *err);

/* Ranks that connect to a listener. */
struct boot_accept {
    const struct boot_place *place;
    struct board_post *post; /* to serve meanwhile, or NULL */
    struct listener listener;
    struct boot_peer *peers; /* ranks that have come */
    long n;
    bool *missing;                /* ranks to wait for */
    long left;                    /* their number */
    struct slurmdl_error differs; /* a rank with another DL_COMM_INTEGRITY */
};

/* Takes ownership of the listener. */
int boot_accept_open (struct boot_accept *m, const struct boot_place *p,
                      const struct listen_sockets *listener);
void boot_accept_expect (struct boot_accept *m, long rank);
/* Wait for all.  Returns -1 with ETIMEDOUT if some did not come, EOPNOTSUPP if one differs. */
int boot_accept_run (struct boot_accept *m, double deadline);
/* The ranks that came become children of 't', in the order of ranks. */
int boot_accept_end (struct boot_accept *m, struct boot_tree *t);
void boot_accept_close (struct boot_accept *m);

/* In a step with more than BOOT_STAR ranks, the ranks of a node connect as one. */
enum { BOOT_STAR = 64, BOOT_FANOUT = 32 };

/* On the first rank of this node, its leader: accept the local ranks.  A rank that does not connect
 * to it connects to rank 0 instead.  Returns -1 without a reason; then all ranks do that.
 */
int boot_node_gather (struct boot_tree *t, const struct boot_place *p);
int boot_node_connect (const struct boot_place *p); /* a socket, or -1 */
/* The first rank of this node; -1: unknown, or it is rank 0. */
long boot_node_leader (const struct boot_place *p);

/* Build the tree once the ranks are connected: tell each one its parent. */
struct boot_child {
    uint32_t rank, nranks; /* including those below it */
};
struct boot_welcome {
    char host[64];  /* of rank 0 */
    int64_t parent; /* -1: it stays where it is */
    char parent_host[64], parent_from[256];
    int32_t parent_port;
    uint32_t nchildren; /* number of its children, which follow */
};
int boot_tree_build (struct boot_tree *t, const struct boot_place *p, struct slurmdl_error *err);
/* Act on the message from the parent; sets listener->n to 0 if it was taken. */
int boot_tree_move (struct boot_tree *t, const struct boot_place *p,
                    struct listen_sockets *listener, struct slurmdl_error *err);

/* Write "3, 8-11 (node03), 17 (node04)": the ranks r with missing[r], with
 * their hosts unless 'layout' is NULL; "and 12 more" if there is no room.
 */
void boot_name_ranks (char *buf, size_t size, const bool *missing, long n,
                      const struct rank_layout *layout);
