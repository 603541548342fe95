/* SPDX-License-Identifier: Apache-2.0 */
/* Read the traffic, speed and errors of this node's network interfaces and InfiniBand ports. */
#pragma once

#include <stdbool.h>

enum { NETWORK_LINKS = 32, NETWORK_NAME = 48 };

/* Counters since the start of the driver that tell of a bad link. */
enum network_fault {
    FAULT_ERRORS,  /* of an interface: damaged frames, and those that could not be sent */
    FAULT_DROPS,   /* of an interface: frames without room, or of an unknown protocol */
    FAULT_SYMBOLS, /* of a port, as the following: damaged symbols */
    FAULT_DOWN,    /* the link went down */
    FAULT_INTEGRITY,
    FAULT_DISCARDS, /* packets that could not be sent */
    NETWORK_FAULTS
};

/* Unknown values are NaN. */
struct network_link {
    char name[NETWORK_NAME]; /* "eth0", "mlx5_0/1" */
    bool is_port;            /* of InfiniBand */
    double speed;            /* bytes/s */
    double received, sent;   /* bytes */
    double packets;          /* of an interface, both ways */
    double faults[NETWORK_FAULTS];
};

struct network_readings {
    int n;
    struct network_link links[NETWORK_LINKS]; /* without lo */
    double segments, resent; /* of TCP in this network namespace: sent, and sent again ... */
    double received, gaps;   /* ... received, and received while an earlier one is missing */
};

/* The descriptors are those of /proc and /sys, or copies of them.  Reading the faults of a port
 * asks its firmware, which takes longer than the rest.
 */
void network_read (int proc, int sys, bool faults, struct network_readings *r);
