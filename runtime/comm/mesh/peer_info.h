/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank tells all others of itself: who, where, and how to reach it.
 */
#pragma once

#include "runtime/base/process_id.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/interface.h"

enum { PEER_ADDRESSES = 8 };

struct mesh_peer_info {
    char host[64];
    char word[32];  /* DL_COMM_NODE */
    uint64_t shm;   /* the device that is mounted at /dev/shm; 0: none */
    uint64_t netns; /* the network namespace */
    unsigned char token[HANDSHAKE_TOKEN];
    struct process_id member;
    uint64_t cores_hash; /* of which it may run on */
    int32_t cores;
    uint16_t port;
    struct interface_address at[PEER_ADDRESSES]; /* ended by family 0 */
};

/* This process, without its port.  Interfaces: those that are up and
 * not loopback; DL_COMM_INTERFACE is a list of them, "ib0,eth1", else those
 * of containers and virtual machines come last.
 */
void peer_info_fill (struct mesh_peer_info *c);
int peer_info_addresses (const struct mesh_peer_info *c); /* how many */

/* End the texts of what another rank has said. */
void peer_info_end (struct mesh_peer_info *c);

/* Whether two ranks see the same loopback; whether they can share memory. */
bool peer_info_same_net (const struct mesh_peer_info *a, const struct mesh_peer_info *b);
bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b);
