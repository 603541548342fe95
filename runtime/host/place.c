/* SPDX-License-Identifier: Apache-2.0 */
/* Choose GPUs, cores and network devices.  The choice depends on the arguments alone. */
#include "runtime/host/place.h"

#include <errno.h>
#include <string.h>

/* State that all steps of a choice share. */
struct choice {
    const struct topology *t;
    const struct place_request *r;
    struct place *p;
    uint64_t want[LOCAL_RANKS_MAX];   /* NUMA nodes that each rank wants, one bit per node */
    struct cpu_set usable[NODES_MAX]; /* CPUs of the step in each node */
    int cores[NODES_MAX];             /* cores in usable[] */
};

/* ---- cores ---- */

/* Add cores lo to hi - 1 of 'set', with those of their threads that are in it, to
 * 'out', which may be NULL.  Returns the number of cores in the set.
 */
static int take_cores (const struct topology *t, const struct cpu_set *set, int lo, int hi,
                       struct cpu_set *out)
{
    int16_t ordinal[CPUS_MAX];
    int n = 0;

    memset (ordinal, -1, sizeof (ordinal));
    for (int i = 0; i < CPUS_MAX; i++) {
        int16_t *o = &ordinal[t->core[i]];
        if (!cpus_has (set, i))
            continue;
        if (*o < 0)
            *o = (int16_t)n++;
        if (out && *o >= lo && *o < hi)
            cpus_add (out, i);
    }
    return n;
}

int place_cores (const struct topology *t, const struct cpu_set *cpus)
{
    return take_cores (t, cpus, 0, 0, NULL);
}

static uint64_t node_bit (int node)
{
    return node < 0 ? 0 : (uint64_t)1 << node;
}

/* Take part k of n of the cores in 'nodes'.  Count them node by node, because CPU
 * numbers may alternate between nodes.
 */
static void take_part (struct choice *c, uint64_t nodes, int k, int n)
{
    int total = 0;
    int at = 0;
    int lo;
    int hi;

    for (int i = 0; i < c->t->nodes; i++)
        total += nodes & node_bit (i) ? c->cores[i] : 0;
    if (total == 0)
        return;
    lo = total < n ? k % total : k * total / n;
    hi = total < n ? lo + 1 : (k + 1) * total / n;
    for (int i = 0; i < c->t->nodes; i++)
        if (nodes & node_bit (i)) {
            take_cores (c->t, &c->usable[i], lo - at, hi - at, &c->p->cpus);
            at += c->cores[i];
        }
}

/* ---- devices ---- */

static bool has_own_devices (const struct place_request *r)
{
    return r->devices >= r->local_size;
}

static int first_of (const struct place_request *r, int rank)
{
    return has_own_devices (r) ? rank * (r->devices / r->local_size) : rank % r->devices;
}

static int choice_node (const struct choice *c, int position)
{
    int gpu = c->r->visible[c->p->order[position]];

    return gpu < 0 ? -1 : c->t->gpu[gpu].node;
}

static bool is_device_near (const struct choice *c, int position, uint64_t nodes, bool package)
{
    int gpu = c->r->visible[position];
    int own = gpu < 0 ? -1 : c->t->gpu[gpu].node;

    if (own < 0)
        return false;
    for (int i = 0; package && i < c->t->nodes; i++)
        if (nodes & node_bit (i) && c->t->node[i].package == c->t->node[own].package)
            return true;
    return nodes & node_bit (own);
}

/* Give each rank devices near its cores.  Later passes accept devices farther
 * away.  At each distance, first keep the device that is already in place, so that
 * a good order does not change.
 */
static void order_devices (struct choice *c)
{
    const struct place_request *r = c->r;
    int each = r->devices / r->local_size;
    int order[GPUS_MAX];
    bool used[GPUS_MAX] = { false };

    memset (order, -1, sizeof (order));
    for (int pass = 0; pass < 6; pass++)
        for (int i = 0; i < r->devices; i++) {
            int rank = i / each;
            uint64_t nodes = rank < r->local_size ? c->want[rank] : 0;
            int from = pass % 2 ? 0 : i;
            int to = pass % 2 ? r->devices : i + 1;
            for (int d = from; order[i] < 0 && d < to; d++)
                if (!used[d] && (pass >= 4 || is_device_near (c, d, nodes, pass >= 2))) {
                    order[i] = d;
                    used[d] = true;
                }
        }
    for (int i = 0; i < r->devices; i++) {
        c->p->order[i] = order[i];
        c->p->reordered |= order[i] != i;
    }
}

/* ---- where ranks want to be ---- */

static uint64_t usable_nodes (const struct choice *c)
{
    uint64_t nodes = 0;

    for (int i = 0; i < c->t->nodes; i++)
        nodes |= c->cores[i] > 0 ? node_bit (i) : 0;
    return nodes;
}

/* NUMA nodes of 'count' devices, starting at position 'first'. */
static uint64_t device_nodes (const struct choice *c, int first, int count)
{
    uint64_t nodes = 0;

    for (int i = 0; i < count; i++)
        nodes |= node_bit (choice_node (c, first + i));
    return nodes;
}

/* List 'nodes', taking one from each package in turn. */
static int take_turns (const struct choice *c, uint64_t nodes, int order[static NODES_MAX])
{
    int n = 0;

    while (nodes) {
        int first = n;
        for (int i = 0; i < c->t->nodes; i++) {
            bool seen = !(nodes & node_bit (i));
            for (int k = first; k < n; k++)
                seen |= c->t->node[order[k]].package == c->t->node[i].package;
            if (!seen) {
                nodes &= ~node_bit (i);
                order[n++] = i;
            }
        }
    }
    return n;
}

static void want_spread (struct choice *c)
{
    uint64_t nodes = usable_nodes (c);
    uint64_t devices = nodes & device_nodes (c, 0, c->r->devices);
    int order[NODES_MAX];
    int n = take_turns (c, devices ? devices : nodes, order);

    for (int i = 0; n > 0 && i < c->r->local_size; i++)
        c->want[i] = node_bit (order[i % n]);
}

static void want_devices (struct choice *c)
{
    for (int i = 0; i < c->r->local_size; i++)
        c->want[i] = device_nodes (c, first_of (c->r, i), c->p->count);
}

/* Without devices, divide the ranks into blocks over the nodes, or the nodes over
 * the ranks if there are more nodes.
 */
static void want_nodes (struct choice *c)
{
    uint64_t nodes = usable_nodes (c);
    int n = __builtin_popcountll (nodes);
    int ranks = c->r->local_size;
    int at = 0;

    for (int i = 0; i < c->t->nodes; i++) {
        if (!(nodes & node_bit (i)))
            continue;
        for (int k = 0; k < ranks; k++)
            if (n > ranks ? at * ranks / n == k : k * n / ranks == at)
                c->want[k] |= node_bit (i);
        at++;
    }
}

/* A rank whose device has no known node, or whose step has no core there, goes to
 * the node with the most cores per rank.
 */
static void place_leftover_rank (struct choice *c, int rank)
{
    int best = -1;
    int of_best = 0;

    for (int i = 0; i < c->t->nodes; i++) {
        int ranks = 1;
        for (int k = 0; k < c->r->local_size; k++)
            ranks += (c->want[k] & node_bit (i)) != 0;
        if (c->cores[i] > 0 && (best < 0 || c->cores[i] * of_best > c->cores[best] * ranks)) {
            best = i;
            of_best = ranks;
        }
    }
    c->want[rank] = node_bit (best);
}

static void choose_wants (struct choice *c)
{
    const struct place_request *r = c->r;
    bool moves = r->home || r->placement == PLACE_SPREAD;
    uint64_t usable = usable_nodes (c);

    for (int i = 0; r->home && i < r->local_size; i++)
        c->want[i] = node_bit (r->home[i]);
    if (!r->home && r->placement == PLACE_SPREAD)
        want_spread (c);
    else if (!r->home && r->devices > 0)
        want_devices (c);
    else if (!r->home)
        want_nodes (c);
    if (moves && r->devices > 0 && has_own_devices (r) && !r->fixed_order)
        order_devices (c);
    for (int i = 0; i < r->local_size; i++)
        c->want[i] &= usable;
    for (int i = 0; i < r->local_size; i++)
        if (!c->want[i])
            place_leftover_rank (c, i);
}

/* ---- cores for this rank ---- */

/* Add this rank's share of 'nodes', which all ranks that want a node in 'by' divide
 * among themselves.
 */
static void add_share (struct choice *c, uint64_t nodes, uint64_t by)
{
    int own = c->r->local_rank;
    int k = 0;
    int n = 0;

    for (int i = 0; i < c->r->local_size; i++)
        if (c->want[i] & by) {
            k += i < own;
            n++;
        }
    take_part (c, nodes, k, n);
}

/* Share the nodes that no rank wants in the packages that this rank uses. */
static void share_packages (struct choice *c)
{
    uint64_t own = c->want[c->r->local_rank];
    uint64_t wanted = 0;
    uint64_t done = 0;

    for (int i = 0; i < c->r->local_size; i++)
        wanted |= c->want[i];
    for (int i = 0; i < c->t->nodes; i++) {
        uint64_t package = 0;
        if (!(own & node_bit (i)) || done & node_bit (i))
            continue;
        for (int k = 0; k < c->t->nodes; k++)
            if (c->t->node[k].package == c->t->node[i].package)
                package |= node_bit (k);
        done |= package;
        add_share (c, package & ~wanted, package);
    }
}

static void choose_cpus (struct choice *c)
{
    uint64_t own = c->want[c->r->local_rank];

    /* a single rank, often a launcher, with devices in several nodes */
    if (c->r->local_size == 1 && own & (own - 1)) {
        take_part (c, usable_nodes (c), 0, 1);
        return;
    }
    for (int i = 0; i < c->t->nodes; i++)
        if (own & node_bit (i))
            add_share (c, node_bit (i), node_bit (i));
    if (c->r->placement == PLACE_SOCKET)
        share_packages (c);
}

/* ---- the network device ---- */

static enum distance nic_distance (const struct choice *c, const struct nic *n, int gpu, int node)
{
    if (gpu >= 0)
        return topology_distance (c->t->gpu[gpu].path, c->t->gpu[gpu].node, n->path, n->node);
    return node >= 0 && n->node == node ? DISTANCE_NODE : DISTANCE_SYS;
}

static bool serves (const struct nic *n)
{
    return n->up && n->kind != NIC_ETHERNET;
}

static enum distance least_distance (const struct choice *c, int gpu, int node)
{
    enum distance least = DISTANCE_SYS;

    for (int i = 0; i < c->t->nics; i++)
        if (serves (&c->t->nic[i]) && nic_distance (c, &c->t->nic[i], gpu, node) < least)
            least = nic_distance (c, &c->t->nic[i], gpu, node);
    return least;
}

/* GPUs that are equally close to several devices take turns.  Without GPUs, the
 * ranks do.
 */
static void choose_nic (struct choice *c, int gpu, int node)
{
    enum distance least = least_distance (c, gpu, node);
    int near[NICS_MAX];
    int n = 0;
    int turn = 0;

    c->p->nic = -1;
    for (int i = 0; i < c->t->nics; i++)
        if (serves (&c->t->nic[i]) && nic_distance (c, &c->t->nic[i], gpu, node) == least)
            near[n++] = i;
    if (n == 0)
        return;
    if (gpu < 0)
        turn = c->r->local_rank;
    for (int i = 0; i < gpu; i++) {
        const struct nic *first = &c->t->nic[near[0]];
        turn += nic_distance (c, first, i, -1) == least;
    }
    c->p->nic = near[turn % n];
    c->p->nic_distance = least;
}

/* ---- all together ---- */

static void choose_devices (struct choice *c)
{
    struct place *p = c->p;

    for (int i = 0; i < c->r->devices; i++)
        p->order[i] = i;
    p->node = -1;
    if (c->r->devices == 0)
        return;
    p->first = first_of (c->r, c->r->local_rank);
    p->count = has_own_devices (c->r) ? c->r->devices / c->r->local_size : 1;
}

static void read_usable (struct choice *c)
{
    for (int i = 0; i < c->t->nodes; i++) {
        const struct cpu_set *all = &c->t->node[i].cpus;
        cpus_and (&c->usable[i], all, c->r->home ? all : &c->r->cpus);
        c->cores[i] = place_cores (c->t, &c->usable[i]);
    }
}

/* The NUMA node of this rank's cores. */
static int own_node (const struct choice *c)
{
    if (c->r->home)
        return c->r->home[c->r->local_rank];
    return topology_home (c->t, cpus_count (&c->p->cpus) ? &c->p->cpus : &c->r->cpus);
}

static bool is_far (const struct choice *c)
{
    if (c->r->placement == PLACE_NONE || c->p->node < 0)
        return false;
    if (c->r->home)
        return own_node (c) >= 0 && own_node (c) != c->p->node;
    return !cpus_meet (&c->p->cpus, &c->t->node[c->p->node].cpus);
}

int place_rank (const struct topology *t, const struct place_request *r, struct place *p)
{
    struct choice c = { .t = t, .r = r, .p = p };
    int gpu = -1;

    memset (p, 0, sizeof (*p));
    if (r->local_size < 1 || r->local_size > LOCAL_RANKS_MAX || r->local_rank < 0
        || r->local_rank >= r->local_size || r->devices < 0 || r->devices > GPUS_MAX) {
        errno = EINVAL;
        return -1;
    }
    read_usable (&c);
    choose_devices (&c);
    if (r->placement != PLACE_NONE)
        choose_wants (&c);
    if (r->placement != PLACE_NONE && !r->home)
        choose_cpus (&c);
    if (p->count > 0) {
        gpu = r->visible[p->order[p->first]];
        p->node = choice_node (&c, p->first);
    }
    choose_nic (&c, gpu, own_node (&c));
    p->far = is_far (&c);
    return 0;
}
