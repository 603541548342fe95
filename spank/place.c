/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a task: from Slurm's variables, the resolver and the routes. */
#include "spank/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/network/reach.h"
#include "spank/context.h"
#include "spank/nodeaddr.h"
#include "spank/variable.h"

enum { EPHEMERAL = 32768, PEERS = 3, ADDRESS = 256 };

/* ---- the nodes of the step ---- */

/* What Slurm knows of them: read when a name leads to no other machine. */
struct nodes {
    const struct rank_layout *l;
    char (*to)[ADDRESS]; /* of each node; "": not known */
    long next;           /* lists of names are in one order, mostly */
};

static int take_address (void *arg, const char *node, const char *to)
{
    struct nodes *n = arg;

    for (long k = 0; k < n->l->nodes; k++) {
        long i = (n->next + k) % n->l->nodes;
        if (strcmp (n->l->names + n->l->name[i], node))
            continue;
        if (!*n->to[i])
            snprintf (n->to[i], ADDRESS, "%s", to);
        n->next = i + 1;
        break;
    }
    return 0;
}

static void read_nodes (spank_t sp, struct task *t, struct nodes *n)
{
    n->l = t->facts.layout;
    n->to = n->l ? calloc ((size_t)n->l->nodes, ADDRESS) : NULL;
    if (n->to)
        nodeaddr_each (sp, take_address, n);
}

static bool is_own (const struct reach_address *a)
{
    char interface[64];

    return reach_interface (a, interface, sizeof (interface)) == 0;
}

/* Several slurmd on one machine: each node has, by slurm.conf, an address of
 * this machine.  What a resolver says of a name proves nothing.
 */
static bool is_one_machine (const struct nodes *n)
{
    struct reach_address a;

    for (long i = 0; i < n->l->nodes; i++)
        if (!*n->to[i]
            || ((i == 0 || strcmp (n->to[i], n->to[i - 1]))
                && (reach_resolve (n->to[i], &a) == REACH_UNKNOWN || !is_own (&a))))
            return false;
    return true;
}

/* The names of all nodes become their addresses. */
static void rename_nodes (struct task *t, const struct nodes *n)
{
    struct rank_layout *l = &t->layout;

    for (long i = 0; i < l->nodes; i++) {
        size_t len = strlen (n->to[i]) + 1;
        if (len == 1 || l->used + len > sizeof (l->names))
            continue;
        l->name[i] = (uint32_t)l->used;
        memcpy (l->names + l->used, n->to[i], len);
        l->used += len;
    }
}

/* ---- the master, and the way to it ---- */

static long master_node (const struct task *t)
{
    return t->facts.layout ? t->layout.node_of[t->master_rank] : 0;
}

static const char *name_of (const struct task *t, long node)
{
    return t->layout.names + t->layout.name[node];
}

/* An address of 'node': by its name, or as Slurm has it.  One of this machine
 * is none unless it is known that the step has others.
 */
static bool find_node (const struct task *t, const struct nodes *n, long node,
                       struct reach_address *to)
{
    const char *name = n->to && *n->to[node] ? n->to[node] : name_of (t, node);

    return reach_resolve (name, to) == REACH_FOUND && (n->to || !is_own (to));
}

/* Another node, beginning with the next one. */
static bool find_peer (const struct task *t, const struct nodes *n, struct reach_address *to)
{
    long nodes = t->facts.nodes;

    for (long k = 1; k < nodes && k <= PEERS; k++)
        if (find_node (t, n, (t->facts.node + k) % nodes, to) && !is_own (to))
            return true;
    return false;
}

static void set_way (struct task *t, const struct reach_address *master,
                     const struct reach_address *own)
{
    struct rank_facts *f = &t->facts;

    reach_interface (own, f->interface, sizeof (f->interface));
    reach_figures (master, f->address, sizeof (f->address));
    reach_figures (own, f->own_address, sizeof (f->own_address));
}

/* A name may well lead to an address that only this machine has, such as that
 * of a bridge of containers.
 */
static bool is_beside (const struct reach_address *a, const struct reach_address *b)
{
    char first[64], second[64];

    return reach_interface (a, first, sizeof (first)) == 0
           && reach_interface (b, second, sizeof (second)) == 0 && !strcmp (first, second);
}

/* From the master's node: the way to another node.  Its own name may well be a
 * loopback address here, as Debian's installer and cloud-init write it.
 */
static bool set_master_here (struct task *t, const struct nodes *n)
{
    struct rank_facts *f = &t->facts;
    struct reach_address peer, own, named;
    bool known = reach_resolve (f->master, &named) == REACH_FOUND && is_own (&named);

    if (find_peer (t, n, &peer)) {
        if (reach_source (&peer, &own) < 0)
            return false;
    } else if (!n->to) {
        return false;
    } else if (known) {
        own = named;
    } else if (!find_node (t, n, f->node, &own) || !is_own (&own)) {
        return false;
    }
    set_way (t, known && is_beside (&named, &own) ? &named : &own, &own);
    if (!known)
        reach_figures (&own, f->master, sizeof (f->master));
    return true;
}

static bool set_master_there (struct task *t, const struct nodes *n)
{
    struct rank_facts *f = &t->facts;
    struct reach_address to, own;
    long node = master_node (t);

    if (!find_node (t, n, node, &to) || reach_source (&to, &own) < 0)
        return false;
    set_way (t, &to, &own);
    if (n->to)
        reach_figures (&to, f->master, sizeof (f->master));
    return true;
}

static bool set_master (struct task *t, const struct nodes *n)
{
    return master_node (t) == t->facts.node ? set_master_here (t, n) : set_master_there (t, n);
}

/* Whether the names of nodes are those of hosts: then one without an address is
 * a mistake, and its user wants to know.
 */
static bool names_are_hosts (const struct task *t)
{
    char host[ADDRESS] = "";

    gethostname (host, sizeof (host) - 1);
    return reach_same_name (host, t->facts.own);
}

/* What was found, or else what is missing; one line for each node. */
static void report_name (const struct task *t, const char *name, const char *instead)
{
    char host[ADDRESS];

    if (t->facts.local_rank != 0 || !option_is_given (PLUGIN_FRAMEWORK))
        return;
    snprintf (host, sizeof (host), "%s", t->facts.own);
    if (*instead)
        plugin_complain ("%s cannot resolve the name %s, the node of rank %ld, "
                         "to an address of another machine, and takes %s of "
                         "slurm.conf: mend /etc/hosts or the DNS of %s",
                         host, name, t->master_rank, instead, host);
    else
        plugin_complain ("%s does not know an address of %s, the node of rank "
                         "%ld, which other machines can reach, and ranks there "
                         "will not meet: mend /etc/hosts or the DNS of %s, or "
                         "set NodeAddr in slurm.conf",
                         host, name, t->master_rank, host);
}

static void set_unknown (struct task *t, const char *name)
{
    snprintf (t->facts.unknown, sizeof (t->facts.unknown),
              "the master is not set: no address of %.60s is known that other "
              "nodes reach: mend /etc/hosts or the DNS, set NodeAddr in "
              "slurm.conf, or export MASTER_ADDR",
              name);
    *t->facts.master = '\0';
}

/* Where the layout is not known, and so no other node. */
static void find_way (struct task *t)
{
    struct reach_address to, own;

    if (reach_resolve (t->facts.master, &to) == REACH_FOUND && reach_source (&to, &own) == 0)
        set_way (t, &to, &own);
}

/* Names first: on most sites that is all. */
static void find_master (spank_t sp, struct task *t)
{
    struct nodes none = { 0 }, n = { 0 };
    char name[sizeof (t->facts.master)];

    if (task_master_host (t, t->facts.master, sizeof (t->facts.master)) < 0)
        return;
    snprintf (name, sizeof (name), "%s", t->facts.master);
    if (!t->facts.layout) {
        find_way (t);
        return;
    }
    if (set_master (t, &none))
        return;
    read_nodes (sp, t, &n);
    if (n.to && is_one_machine (&n)) {
        task_master_here (t);
    } else if (n.to && set_master (t, &n)) {
        if (names_are_hosts (t) && master_node (t) != t->facts.node)
            report_name (t, name, t->facts.master);
        rename_nodes (t, &n);
    } else if (names_are_hosts (t)) {
        report_name (t, name, "");
    } else {
        set_unknown (t, name);
    }
    free (n.to);
}

static void find_loopback (struct task *t)
{
    struct reach_address a;

    task_master_here (t);
    if (reach_resolve (t->facts.master, &a) != REACH_UNKNOWN)
        set_way (t, &a, &a);
}

static int first_ephemeral (void)
{
    int fd = open ("/proc/sys/net/ipv4/ip_local_port_range", O_RDONLY | O_CLOEXEC);
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
    t->facts.job = t->job;
    t->facts.step = t->step;
    t->facts.is_master = master_node (t) == t->facts.node;
    if (t->facts.nodes > 1)
        find_master (sp, t);
    if (t->facts.nodes == 1 || t->facts.one_machine)
        find_loopback (t);
    task_ports (t, of_tasks, first_ephemeral ());
    return 0;
}
