/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task is: from Slurm's variables, the resolver and the routing table.
 */
#include "spank/place.h"
#include "spank/variable.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EPHEMERAL = 32768, NAME = 64 };

static const char self[] = "127.0.0.1";

/* ---- what Slurm says ---- */

/* Of a heterogeneous job: all components have the number of the first one. */
static uint32_t job_of (spank_t sp)
{
    long job = variable_number (sp, "SLURM_JOB_ID");
    uint32_t id = 0;

    if (job <= 0)
        spank_get_item (sp, S_JOB_ID, &id);
    return job > 0 ? (uint32_t)job : id;
}

static int read_place (struct task *t)
{
    struct rank_facts *f = &t->facts;

    f->rank = variable_number (t->sp, "SLURM_PROCID");
    f->size = variable_number (t->sp, "SLURM_STEP_NUM_TASKS");
    f->local_rank = variable_number (t->sp, "SLURM_LOCALID");
    f->node = variable_number (t->sp, "SLURM_NODEID");
    f->nodes = variable_number (t->sp, "SLURM_STEP_NUM_NODES");
    variable_text (t->sp, "SLURM_STEP_NODELIST", t->hosts, sizeof (t->hosts));
    variable_text (
        t->sp, "SLURM_STEP_TASKS_PER_NODE", t->tasks, sizeof (t->tasks));
    variable_text (t->sp, "SLURM_GTIDS", t->gtids, sizeof (t->gtids));
    variable_text (t->sp, "SLURMD_NODENAME", f->own, sizeof (f->own));
    variable_text (
        t->sp, "SLURM_DISTRIBUTION", t->distribution, sizeof (t->distribution));
    f->local_size = layout_count (t->gtids);
    if (f->local_size < 1)
        f->local_size = layout_tasks_of_node (t->tasks, f->node);
    t->job = job_of (t->sp);
    if (spank_get_item (t->sp, S_JOB_STEPID, &t->step) != ESPANK_SUCCESS
        || f->rank < 0 || f->size <= f->rank || f->local_rank < 0 || f->node < 0
        || f->nodes < 1 || f->local_size < 1)
        return -1;
    return 0;
}

/* ---- GPUs and PMI ---- */

static long count_items (const char *list)
{
    long n = *list != '\0';

    for (; *list; list++)
        n += *list == ',';
    return n;
}

static void read_gpus (struct task *t)
{
    static const char *const names[] = { "CUDA_VISIBLE_DEVICES",
                                         "ROCR_VISIBLE_DEVICES",
                                         "HIP_VISIBLE_DEVICES",
                                         "ZE_AFFINITY_MASK" };
    struct rank_facts *f = &t->facts;
    char list[1024];
    long n;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++)
        if (variable_text (t->sp, names[i], list, sizeof (list)) == 0 && *list
            && strcmp (list, "NoDevFiles") && strcmp (list, "-1")) {
            f->visible_gpus = count_items (list);
            break;
        }
    n = variable_number (t->sp, "SLURM_GPUS_ON_NODE");
    f->gpus = f->visible_gpus ? f->visible_gpus : n > 0 ? n : 0;
}

static void read_pmi (struct task *t)
{
    if (variable_number (t->sp, "PMIX_RANK") >= 0)
        t->facts.pmi = RANK_PMI_X;
    else if (variable_number (t->sp, "PMI_FD") >= 0)
        t->facts.pmi = RANK_PMI_2;
}

/* ---- which rank is where ---- */

static void read_group (struct task *t, int i)
{
    char name[NAME];

    snprintf (name, sizeof (name), "SLURM_JOB_NODELIST_HET_GROUP_%d", i);
    if (variable_text (t->sp, name, t->groups[i], sizeof (t->groups[i])) == 0)
        return;
    snprintf (name, sizeof (name), "SLURM_JOB_NODELIST_PACK_GROUP_%d", i);
    variable_text (t->sp, name, t->groups[i], sizeof (t->groups[i]));
}

/* SLURM_HET_SIZE is also there in a step of one component, and in a job that
 * was submitted from a heterogeneous one.
 */
static void find_layout (struct task *t)
{
    struct rank_facts *f = &t->facts;
    long het = variable_number (t->sp, "SLURM_HET_SIZE");
    struct layout_facts l = { .hosts = t->hosts,
                              .tasks = t->tasks,
                              .distribution = t->distribution,
                              .ranks = f->size,
                              .node = f->node,
                              .gtids = t->gtids };

    l.plane = variable_number (t->sp, "SLURM_DIST_PLANESIZE");
    for (int i = 0; i < het && het <= LAYOUT_GROUPS; i++) {
        read_group (t, i);
        l.groups[l.ngroups++] = t->groups[i];
    }
    t->is_het = l.ngroups > 1;
    if (layout_fill (&t->layout, &l) == 0) {
        f->layout = &t->layout;
        return;
    }
    t->contradicted = errno == EINVAL;
    l.ngroups = 0;
    if (t->is_het && layout_fill (&t->layout, &l) == 0) {
        t->is_het = t->contradicted = false;
        f->layout = &t->layout;
    }
}

/* Without a layout it is only known that an ordinary step begins on its first
 * host.
 */
static int host_of_master (struct task *t, char *buf, size_t size)
{
    if (t->facts.layout) {
        snprintf (
            buf, size, "%s", layout_host (t->facts.layout, t->master_rank));
        return 0;
    }
    if (t->is_het || t->master_rank
        || !strncmp (t->distribution, "arbitrary", 9))
        return -1;
    return layout_first_host (t->hosts, buf, size);
}

/* ---- the host of rank 0 ---- */

static int resolve (struct task *t, const char *host)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;

    if (getaddrinfo (host, NULL, &hints, &list) != 0 || !list)
        return -1;
    memcpy (&t->master, list->ai_addr, list->ai_addrlen);
    t->master_len = list->ai_addrlen;
    freeaddrinfo (list);
    return 0;
}

/* Several slurmd on one machine: the names of their nodes are no hosts. */
static int nodes_are_no_hosts (spank_t sp)
{
    char node[256];
    char host[256] = "";

    gethostname (host, sizeof (host) - 1);
    variable_text (sp, "SLURMD_NODENAME", node, sizeof (node));
    host[strcspn (host, ".")] = '\0';
    node[strcspn (node, ".")] = '\0';
    return *node && strcmp (node, host);
}

static void find_master (struct task *t)
{
    struct rank_facts *f = &t->facts;

    if (f->nodes > 1) {
        if (host_of_master (t, f->master, sizeof (f->master)) < 0) {
            f->master[0] = '\0';
            return;
        }
        if (resolve (t, f->master) == 0 || !nodes_are_no_hosts (t->sp))
            return;
        f->one_machine = true;
    }
    memcpy (f->master, self, sizeof (self));
    resolve (t, self);
}

/* ---- the interface that reaches it ---- */

static int same_address (const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || a->sa_family != b->sa_family)
        return 0;
    if (a->sa_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr
               == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    if (a->sa_family == AF_INET6)
        return !memcmp (&((const struct sockaddr_in6 *)a)->sin6_addr,
                        &((const struct sockaddr_in6 *)b)->sin6_addr,
                        sizeof (struct in6_addr));
    return 0;
}

static int interface_with (const struct sockaddr *a, char *buf, size_t size)
{
    struct ifaddrs *list = NULL;
    int rv = -1;

    if (getifaddrs (&list) < 0)
        return -1;
    for (struct ifaddrs *i = list; i && rv < 0; i = i->ifa_next)
        if (same_address (i->ifa_addr, a)) {
            snprintf (buf, size, "%s", i->ifa_name);
            rv = 0;
        }
    freeifaddrs (list);
    return rv;
}

/* Our address on the way to the master: connecting a datagram socket asks the
 * routing table and sends nothing.
 */
static int route_to (const struct task *t, struct sockaddr_storage *own)
{
    struct sockaddr_storage to = t->master;
    socklen_t len = sizeof (*own);
    int fd = socket (to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rv = -1;

    ((struct sockaddr_in *)&to)->sin_port = htons (9); /* the same for v6 */
    if (fd >= 0 && connect (fd, (struct sockaddr *)&to, t->master_len) == 0
        && getsockname (fd, (struct sockaddr *)own, &len) == 0)
        rv = 0;
    if (fd >= 0)
        close (fd);
    return rv;
}

static void numbers_of (const struct sockaddr_storage *a,
                        socklen_t len,
                        char *buf,
                        int size)
{
    if (getnameinfo ((const struct sockaddr *)a,
                     len,
                     buf,
                     (socklen_t)size,
                     NULL,
                     0,
                     NI_NUMERICHOST)
        != 0)
        *buf = '\0';
}

static void find_interface (struct task *t)
{
    struct rank_facts *f = &t->facts;
    struct sockaddr_storage own = t->master;

    if (t->master_len == 0)
        return;
    numbers_of (&t->master, t->master_len, f->address, sizeof (f->address));
    if (interface_with (
            (struct sockaddr *)&own, f->interface, sizeof (f->interface))
            < 0
        && route_to (t, &own) == 0)
        interface_with (
            (struct sockaddr *)&own, f->interface, sizeof (f->interface));
    if (*f->interface)
        numbers_of (
            &own, t->master_len, f->own_address, sizeof (f->own_address));
}

/* ---- ports ---- */

static int first_ephemeral (void)
{
    int fd =
        open ("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC);
    char text[64] = "";
    ssize_t n = fd < 0 ? 0 : read (fd, text, sizeof (text) - 1);

    if (fd >= 0)
        close (fd);
    return n > 0 && atoi (text) > 0 ? atoi (text) : EPHEMERAL;
}

/* Components of a heterogeneous job have reserved ports of their own, in one
 * list: only the first ones are known to be those of rank 0's node.
 */
static void find_ports (struct task *t, bool task_ports)
{
    struct rank_facts *f = &t->facts;
    long tasks = f->one_machine ? f->size : f->layout ? f->layout->most : 1;
    struct rank_ports p;
    char reserved[256];

    variable_text (t->sp, "SLURM_STEP_RESV_PORTS", reserved, sizeof (reserved));
    if (task_ports && t->is_het)
        *reserved = '\0';
    p = rankenv_ports (reserved, t->job, t->step, first_ephemeral (), tasks);
    f->port = p.master;
    f->port2 = p.second;
    f->task_port = p.tasks;
}

/* ---- */

int task_place (struct task *t, const char *roles, bool task_ports)
{
    if (read_place (t) < 0) {
        snprintf (
            t->why, sizeof (t->why), "Slurm does not say where this task is");
        return -1;
    }
    if (roles && *roles) {
        if (roles_parse (roles, &t->roles, t->why, sizeof (t->why)) < 0
            || roles_resolve (&t->roles, t->facts.size, t->why, sizeof (t->why))
                   < 0)
            return -1;
        t->facts.roles = &t->roles;
    }
    t->master_rank = rankenv_master_rank (t->facts.roles);
    find_layout (t);
    find_master (t);
    find_interface (t);
    find_ports (t, task_ports);
    read_gpus (t);
    read_pmi (t);
    return 0;
}
