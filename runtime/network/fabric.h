/* SPDX-License-Identifier: Apache-2.0 */
/* Find the high-speed network of a node, from sysfs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* This uses only libc, and keeps no memory after a call: the plugin calls it in a task, as the
 * user. */

enum fabric_kind {
    FABRIC_TCP, /* none of the others */
    FABRIC_INFINIBAND,
    FABRIC_ROCE,
    FABRIC_SLINGSHOT,
    FABRIC_EFA,
    FABRIC_KINDS
};

/* "tcp", "infiniband", "roce", "slingshot", "efa" */
extern const char *const fabric_names[FABRIC_KINDS];

enum { FABRIC_NAME = 32, FABRIC_MAX = 128 };

/* A port of an adapter. */
struct fabric_port {
    char name[FABRIC_NAME]; /* mlx5_0, cxi0, rdmap0s6 */
    enum fabric_kind kind;
    int number;         /* 1 nearly always */
    int rate;           /* Gb/s; 0: not known */
    const char *unused; /* why it is not part of the fabric, or NULL */
};

/* An IP interface. */
struct fabric_interface {
    char name[FABRIC_NAME];
    int index;
    int speed;          /* Mb/s; 0: not known */
    bool is_ib;         /* IP over InfiniBand */
    const char *unused; /* why it reaches no other node, or NULL */
};

struct fabric {
    enum fabric_kind kind;
    int nports, ninterfaces;
    struct fabric_port ports[FABRIC_MAX];
    struct fabric_interface interfaces[FABRIC_MAX]; /* by index */
};

/* Read the tree below 'root' ("/sys" on a live machine).  Missing files mean missing devices: a
 * machine without any network has TCP and no interface.
 *
 * Slingshot takes precedence, then EFA, then InfiniBand or RoCE, whichever has the greater total
 * speed.  A port is not part of the fabric if it is down, of another kind, emulated in software,
 * iWARP, or slower than the fastest of its kind (storage and management adapters, a degraded link).
 * Adapters as fast as the compute adapters cannot be distinguished from them.
 */
void fabric_read (const char *root, struct fabric *f);

/* Write one line, such as "infiniband: 8 x 400 Gb/s (mlx5_0 ...), not mlx5_4 (down); IP over eno1".
 * Returns its length, cut to size - 1.
 */
size_t fabric_text (const struct fabric *f, char *buf, size_t size);

/* Whether this is the name of an interface of containers, virtual machines or an overlay. */
bool fabric_is_virtual (const char *name);

/* The interface that NCCL chooses if NCCL_SOCKET_IFNAME is unset: the first "ib*", else the first
 * whose name does not begin with docker, lo or virbr.  NULL if there is none.
 */
const struct fabric_interface *fabric_nccl_choice (const struct fabric *f);
