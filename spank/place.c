/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a task: from Slurm's variables, the resolver and the routes. */
#include "spank/place.h"
#include "spank/variable.h"

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

enum { EPHEMERAL = 32768 };

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
static int nodes_are_no_hosts (const struct variables *v)
{
    char node[256];
    char host[256] = "";

    gethostname (host, sizeof (host) - 1);
    variables_text (v, "SLURMD_NODENAME", node, sizeof (node));
    host[strcspn (host, ".")] = '\0';
    node[strcspn (node, ".")] = '\0';
    return *node && strcmp (node, host);
}

static void find_master (struct task *t)
{
    struct rank_facts *f = &t->facts;

    if (f->nodes > 1) {
        if (task_master_host (t, f->master, sizeof (f->master)) < 0)
            return;
        if (resolve (t, f->master) == 0 || !nodes_are_no_hosts (&t->vars))
            return;
    }
    task_master_here (t);
    resolve (t, f->master);
}

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

/* ---- */

int task_place (spank_t sp, struct task *t, const char *roles, bool of_tasks)
{
    t->vars = variables_of (sp);
    spank_get_item (sp, S_JOB_STEPID, &t->step);
    spank_get_item (sp, S_JOB_ID, &t->job);
    if (task_read (t, roles) < 0)
        return -1;
    find_master (t);
    find_interface (t);
    task_ports (t, of_tasks, first_ephemeral ());
    return 0;
}
