/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks meet at a port of rank 0's, and exchange messages over a tree. */
#ifndef RUNTIME_COMM_BOOTTCP_H
#define RUNTIME_COMM_BOOTTCP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/wire.h"
#include "runtime/slurmdl_comm.h"

/* What a rank knows before it has met anyone. */
struct boot_place {
    long rank, size;
    long local_rank, local_size; /* on its node; -1: not known */
    char host[256];              /* where rank 0 listens */
    int port;
    int listener;   /* of rank 0's, if it listens already; else -1 */
    uint64_t key;   /* the same on all ranks of this step, and on no others */
    double timeout; /* seconds */
    char own[64];   /* name of this host */
    const struct rank_layout *layout; /* which rank is where; or NULL */
};

/* Another rank, and those that it speaks for. */
struct peer {
    struct wire wire;
    double since; /* when it connected */
    long rank;    /* -1: it has not said who it is */
    char host[64];
    char from[64];   /* its address */
    uint32_t *ranks; /* itself first */
    long nranks;
};

/* Parents have smaller numbers than their children; rank 0 has no parent. */
struct tree {
    long rank, size;
    double timeout;
    struct peer parent; /* wire.fd is -1: none */
    struct peer *children;
    long nchildren;
    const struct rank_layout *layout;
    uint32_t turn; /* of exchanges */
    bool broken;
    struct slurmdl_error why;
};

enum boot_kind {
    BOOT_HELLO = 1,
    BOOT_WELCOME,
    BOOT_REFUSED, /* a reason; not for those who come from another step */
    BOOT_GATHER,
    BOOT_ALL,
    BOOT_FAILED, /* a reason */
};

/* Meet; -1 with 'err' naming those who did not come. */
int tree_open (struct tree *t,
               const struct boot_place *p,
               struct slurmdl_error *err);
void tree_close (struct tree *t);

int tree_allgather (struct tree *t,
                    const void *mine,
                    size_t bytes,
                    void *all,
                    struct slurmdl_error *err);

/* Tell all peers but 'but' why this ends. */
void tree_tell (struct tree *t, const struct peer *but, const char *why);

void peer_init (struct peer *p, int fd);
void peer_close (struct peer *p);

/* "3, 8-11 (node03), 17 (node04)": the ranks r for which missing[r], with
 * their hosts where 'layout' is not NULL; "and 12 more" if there is no room.
 */
void boot_name_ranks (char *buf,
                      size_t size,
                      const bool *missing,
                      long n,
                      const struct rank_layout *layout);

#endif
