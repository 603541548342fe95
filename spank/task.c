/* SPDX-License-Identifier: Apache-2.0 */
/* In a task, as the user, just before its program: set its environment. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/rankenv.h"
#include "spank/context.h"

enum { EPHEMERAL = 32768, TEXT = 4096 };

struct task {
    spank_t sp;
    struct rank_facts facts;
    uint32_t job, step;
    struct sockaddr_storage master; /* 0: not resolved */
    socklen_t master_len;
};

/* ---- what Slurm says ---- */

static int text_of (spank_t sp, const char *name, char *buf, int size)
{
    *buf = '\0';
    return spank_getenv (sp, name, buf, size) == ESPANK_SUCCESS ? 0 : -1;
}

static long number_of (spank_t sp, const char *name)
{
    char text[32];
    char *end;
    long n;

    if (text_of (sp, name, text, sizeof (text)) < 0 || !*text)
        return -1;
    n = strtol (text, &end, 10);
    return *end ? -1 : n;
}

static const char *why_not (spank_t sp)
{
    char text[64];

    text_of (sp, "SLURM_DISTRIBUTION", text, sizeof (text));
    if (!strncmp (text, "arbitrary", 9))
        return "with --distribution=arbitrary the host of rank 0 is not known";
    if (number_of (sp, "SLURM_HET_SIZE") > 1)
        return "heterogeneous jobs are not supported yet";
    return NULL;
}

static int read_place (struct task *t)
{
    struct rank_facts *f = &t->facts;
    char spec[TEXT];

    f->rank = number_of (t->sp, "SLURM_PROCID");
    f->size = number_of (t->sp, "SLURM_STEP_NUM_TASKS");
    f->local_rank = number_of (t->sp, "SLURM_LOCALID");
    f->node = number_of (t->sp, "SLURM_NODEID");
    f->nodes = number_of (t->sp, "SLURM_STEP_NUM_NODES");
    text_of (t->sp, "SLURM_STEP_TASKS_PER_NODE", spec, sizeof (spec));
    f->local_size = rankenv_tasks_of_node (spec, f->node);
    if (spank_get_item (t->sp, S_JOB_ID, &t->job) != ESPANK_SUCCESS
        || spank_get_item (t->sp, S_JOB_STEPID, &t->step) != ESPANK_SUCCESS
        || f->rank < 0 || f->size <= f->rank || f->local_rank < 0 || f->node < 0
        || f->nodes < 1 || f->local_size < 1)
        return -1;
    return 0;
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
    text_of (sp, "SLURMD_NODENAME", node, sizeof (node));
    host[strcspn (host, ".")] = '\0';
    node[strcspn (node, ".")] = '\0';
    return *node && strcmp (node, host);
}

static int find_master (struct task *t)
{
    static const char self[] = "127.0.0.1";
    struct rank_facts *f = &t->facts;
    char list[TEXT];

    if (f->nodes == 1) {
        memcpy (f->master, self, sizeof (self));
        return resolve (t, self);
    }
    text_of (t->sp, "SLURM_STEP_NODELIST", list, sizeof (list));
    if (rankenv_first_host (list, f->master, sizeof (f->master)) < 0)
        return -1;
    if (resolve (t, f->master) == 0 || !nodes_are_no_hosts (t->sp))
        return 0;
    memcpy (f->master, self, sizeof (self));
    return resolve (t, self);
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

static void find_interface (struct task *t)
{
    struct rank_facts *f = &t->facts;
    struct sockaddr_storage own;

    if (t->master_len == 0
        || interface_with ((struct sockaddr *)&t->master,
                           f->interface,
                           sizeof (f->interface))
               == 0)
        return;
    if (route_to (t, &own) == 0)
        interface_with (
            (struct sockaddr *)&own, f->interface, sizeof (f->interface));
}

/* ---- the port ---- */

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

static void find_port (struct task *t)
{
    char reserved[256];

    text_of (t->sp, "SLURM_STEP_RESV_PORTS", reserved, sizeof (reserved));
    t->facts.port =
        rankenv_port (reserved, t->job, t->step, first_ephemeral ());
}

/* Rank 0 is about to listen there: tell now what would else be a time-out. */
static void test_port (const struct task *t)
{
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_port = htons ((uint16_t)t->facts.port) };
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0)
        return;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (bind (fd, (struct sockaddr *)&any, sizeof (any)) < 0
        && errno == EADDRINUSE)
        slurm_error ("dl: port %d of this node is in use; set MASTER_PORT, or "
                     "ask for MpiParams=ports=... in slurm.conf",
                     t->facts.port);
    close (fd);
}

/* ---- setting ---- */

/* Whether 'name' is in the list "A,B,C". */
static int is_listed (const char *list, const char *name)
{
    size_t n = strlen (name);

    while (*list) {
        size_t len = strcspn (list, ",");
        if (len == n && !strncmp (list, name, n))
            return 1;
        list += len + (list[len] == ',');
    }
    return 0;
}

/* What the user exported stays; what this plugin set in an outer step (a job
 * that was submitted from a step inherits it) does not.
 */
static void set_variables (struct task *t, const struct rank_variable *v, int n)
{
    char stale[TEXT];
    char have[TEXT];
    char ours[TEXT] = "";
    char step[32];
    size_t used = 0;

    text_of (t->sp, "DL_ENV_SET", stale, sizeof (stale));
    for (int i = 0; i < n; i++) {
        if (text_of (t->sp, v[i].name, have, sizeof (have)) == 0
            && !is_listed (stale, v[i].name))
            continue;
        spank_setenv (t->sp, v[i].name, v[i].value, 1);
        used += (size_t)snprintf (ours + used,
                                  sizeof (ours) - used,
                                  "%s%s",
                                  used ? "," : "",
                                  v[i].name);
    }
    snprintf (step, sizeof (step), "%u.%u", t->job, t->step);
    spank_setenv (t->sp, "DL_ENV_STEP", step, 1);
    spank_setenv (t->sp, "DL_ENV_SET", ours, 1);
}

void task_environment (spank_t sp, const char *framework)
{
    struct rank_variable vars[RANK_VARIABLES_MAX];
    struct task t = { .sp = sp };
    const char *why = why_not (sp);
    int n;

    if (!why && (read_place (&t) < 0 || find_master (&t) < 0))
        why = "Slurm does not say where this task is";
    if (why) {
        slurm_error ("dl: --dl=%s: nothing is set: %s", framework, why);
        return;
    }
    find_interface (&t);
    find_port (&t);
    if (t.facts.rank == 0)
        test_port (&t);
    n = rankenv_fill (framework, &t.facts, vars);
    if (n > 0)
        set_variables (&t, vars, n);
}
