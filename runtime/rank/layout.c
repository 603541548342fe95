/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's host lists, tasks per node and distributions. */
#include "runtime/rank/layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST = 256, BRACKETS = 4, DIGITS = 9 };

static int fail_layout (int code)
{
    errno = code;
    return -1;
}

static bool is_empty_text (const char *text)
{
    return !text || !*text;
}

/* ---- lists of hosts ---- */

struct expansion {
    char host[HOST];
    int (*emit) (void *arg, const char *host);
    void *arg;
};

static int expand_hosts (struct expansion *e, size_t n, const char *rest, size_t len, int depth);

/* Expand one "lo-hi" or "lo" with its leading zeros, followed by the rest of the
 * host name.
 */
static int expand_range (struct expansion *e, size_t n, const char *range, const char *rest,
                         size_t len, int depth)
{
    size_t width = strspn (range, "0123456789");
    const char *end = range + width;
    long lo;
    long hi;
    int rv = 0;

    if (width == 0 || width > DIGITS)
        return fail_layout (EINVAL);
    lo = hi = strtol (range, NULL, 10);
    if (*end == '-') {
        size_t w = strspn (end + 1, "0123456789");
        if (w == 0 || w > DIGITS)
            return fail_layout (EINVAL);
        hi = strtol (end + 1, NULL, 10);
        end += 1 + w;
    }
    if ((*end != ',' && *end != ']') || hi < lo)
        return fail_layout (EINVAL);
    for (; rv == 0 && lo <= hi; lo++) {
        int w = snprintf (e->host + n, sizeof (e->host) - n, "%0*ld", (int)width, lo);
        rv = n + (size_t)w >= sizeof (e->host)
                 ? fail_layout (EINVAL)
                 : expand_hosts (e, n + (size_t)w, rest, len, depth + 1);
    }
    return rv;
}

/* Expand the 'len' bytes at 'rest' behind the 'n' bytes of e->host. */
static int expand_hosts (struct expansion *e, size_t n, const char *rest, size_t len, int depth)
{
    const char *open = memchr (rest, '[', len);
    size_t plain = open ? (size_t)(open - rest) : len;
    const char *shut;

    if (n + plain >= sizeof (e->host) || memchr (rest, ']', plain) || depth > BRACKETS)
        return fail_layout (EINVAL);
    memcpy (e->host + n, rest, plain);
    n += plain;
    e->host[n] = '\0';
    if (!open)
        return n ? e->emit (e->arg, e->host) : fail_layout (EINVAL);
    shut = memchr (open, ']', len - plain);
    if (!shut)
        return fail_layout (EINVAL);
    for (const char *p = open + 1; p <= shut; p += strcspn (p, ",]") + 1) {
        int rv = expand_range (e, n, p, shut + 1, len - (size_t)(shut + 1 - rest), depth);
        if (rv != 0)
            return rv;
    }
    return 0;
}

/* The length up to the first comma outside brackets. */
static size_t element_length (const char *list)
{
    size_t n = 0;
    bool inside = false;

    for (; list[n] && (inside || list[n] != ','); n++)
        inside = list[n] == '[' || (inside && list[n] != ']');
    return n;
}

int layout_each_host (const char *list, int (*emit) (void *arg, const char *host), void *arg)
{
    struct expansion e = { .emit = emit, .arg = arg };

    for (;;) {
        size_t n = element_length (list);
        int rv = expand_hosts (&e, 0, list, n, 0);
        if (rv != 0)
            return rv;
        list += n;
        if (!*list++)
            return 0;
    }
}

struct first {
    char *buf;
    size_t size;
};

static int keep_first (void *arg, const char *host)
{
    struct first *f = arg;

    if (strlen (host) >= f->size)
        return fail_layout (EINVAL);
    memcpy (f->buf, host, strlen (host) + 1);
    return 1;
}

int layout_first_host (const char *list, char *buf, size_t size)
{
    struct first f = { buf, size };

    return layout_each_host (list, keep_first, &f) == 1 ? 0 : -1;
}

/* ---- tasks per node ---- */

/* Read "4(x2)" at *spec: the number of tasks, and on how many nodes. */
static int next_tasks (const char **spec, long *tasks, long *nodes)
{
    char *end;

    if (!isdigit ((unsigned char)**spec))
        return fail_layout (EINVAL);
    *tasks = strtol (*spec, &end, 10);
    *nodes = 1;
    if (!strncmp (end, "(x", 2)) {
        *nodes = strtol (end + 2, &end, 10);
        if (*end++ != ')' || *nodes < 1)
            return fail_layout (EINVAL);
    }
    if (*end && *end != ',')
        return fail_layout (EINVAL);
    *spec = end + (*end == ',');
    return 0;
}

long layout_tasks_of_node (const char *spec, long node)
{
    long tasks;
    long nodes;

    while (next_tasks (&spec, &tasks, &nodes) == 0) {
        if (node < nodes)
            return tasks;
        node -= nodes;
    }
    return -1;
}

long layout_count (const char *gtids)
{
    long n = 0;

    for (;;) {
        size_t digits = strspn (gtids, "0123456789");
        if (digits == 0 || (gtids[digits] && gtids[digits] != ','))
            return fail_layout (EINVAL);
        n++;
        gtids += digits;
        if (!*gtids++)
            return n;
    }
}

/* ---- the nodes ---- */

static int append_host_name (void *arg, const char *host)
{
    struct rank_layout *l = arg;
    size_t n = strlen (host) + 1;

    if (l->nodes == LAYOUT_NODES || l->used + n > sizeof (l->names))
        return fail_layout (E2BIG);
    l->name[l->nodes++] = (uint32_t)l->used;
    memcpy (l->names + l->used, host, n);
    l->used += n;
    return 0;
}

static int read_tasks (struct rank_layout *l, const char *spec)
{
    long node = 0;
    long tasks;
    long nodes;

    while (node < l->nodes) {
        if (next_tasks (&spec, &tasks, &nodes) < 0 || nodes > l->nodes - node || tasks < 1)
            return fail_layout (EINVAL);
        if (tasks > LAYOUT_RANKS)
            return fail_layout (E2BIG);
        for (; nodes > 0; nodes--)
            l->tasks[node++] = (uint32_t)tasks;
        if (tasks > l->most)
            l->most = tasks;
    }
    return *spec ? fail_layout (EINVAL) : 0;
}

/* Move the nodes of one component to the front of those not placed yet. */
struct placing {
    struct rank_layout *l;
    long placed;
};

static int place_node (void *arg, const char *host)
{
    struct placing *p = arg;
    struct rank_layout *l = p->l;

    for (long i = p->placed; i < l->nodes; i++)
        if (!strcmp (l->names + l->name[i], host)) {
            uint32_t name = l->name[i];
            uint32_t tasks = l->tasks[i];
            size_t n = (size_t)(i - p->placed) * sizeof (l->name[0]);
            memmove (&l->name[p->placed + 1], &l->name[p->placed], n);
            memmove (&l->tasks[p->placed + 1], &l->tasks[p->placed], n);
            l->name[p->placed] = name;
            l->tasks[p->placed++] = tasks;
            return 0;
        }
    return 0; /* a node of the job but not of this step */
}

/* ---- the ranks ---- */

/* Deal ranks to nodes [from, to) in rounds of 'block' per node. */
static long deal (struct rank_layout *l, uint16_t *dealt, long rank, long from, long to, long block)
{
    long left = 0;

    for (long i = from; i < to; i++)
        left += l->tasks[i];
    if (rank + left > l->ranks)
        return fail_layout (EINVAL);
    while (left > 0)
        for (long i = from; i < to; i++)
            for (long k = 0; k < block && dealt[i] < l->tasks[i]; k++, left--) {
                l->local_of[rank] = dealt[i]++;
                l->node_of[rank++] = (uint16_t)i;
            }
    return rank;
}

static long block_of (const struct layout_facts *f)
{
    if (is_empty_text (f->distribution) || !strncmp (f->distribution, "block", 5))
        return LAYOUT_RANKS;
    if (!strncmp (f->distribution, "cyclic", 6))
        return 1;
    if (!strncmp (f->distribution, "plane", 5) && f->plane > 0)
        return f->plane;
    return fail_layout (ENOTSUP);
}

static int lists_rank (const char *gtids, long rank)
{
    char *end;

    for (;; gtids = end + 1) {
        if (strtol (gtids, &end, 10) == rank)
            return 1;
        if (*end != ',')
            return 0;
    }
}

struct dealing {
    struct rank_layout *l;
    long rank, node; /* next rank; node of the last rank */
    uint16_t dealt[LAYOUT_NODES];
};

/* Put the next rank on this host.  Consecutive ranks are mostly on the same host or
 * the next.
 */
static int deal_host (void *arg, const char *host)
{
    struct dealing *d = arg;
    struct rank_layout *l = d->l;
    long k = 0;

    if (d->rank == l->ranks)
        return 1;
    while (k < l->nodes && strcmp (l->names + l->name[d->node], host)) {
        d->node = (d->node + 1) % l->nodes;
        k++;
    }
    if (k == l->nodes)
        return fail_layout (EINVAL);
    l->node_of[d->rank] = (uint16_t)d->node;
    l->local_of[d->rank++] = d->dealt[d->node]++;
    return 0;
}

static int deal_order (struct rank_layout *l, const struct layout_facts *f)
{
    struct dealing d = { .l = l };

    if (layout_each_host (f->order, deal_host, &d) < 0 || d.rank < l->ranks)
        return fail_layout (EINVAL);
    for (long i = 0; i < l->nodes; i++)
        if (d.dealt[i] != l->tasks[i])
            return fail_layout (EINVAL);
    return 0;
}

/* On two nodes, the ranks that are not on this node are on the other. */
static int deal_arbitrary (struct rank_layout *l, const struct layout_facts *f)
{
    uint16_t dealt[2] = { 0, 0 };

    if (!is_empty_text (f->order) && !f->ngroups && deal_order (l, f) == 0)
        return 0;
    if (l->nodes > 2 || f->ngroups || is_empty_text (f->gtids))
        return fail_layout (ENOTSUP);
    for (long r = 0; r < l->ranks; r++) {
        long here = l->nodes == 1 || lists_rank (f->gtids, r);
        long node = here ? f->node : 1 - f->node;
        l->node_of[r] = (uint16_t)node;
        l->local_of[r] = dealt[node]++;
    }
    return 0;
}

static int deal_all (struct rank_layout *l, const struct layout_facts *f)
{
    uint16_t dealt[LAYOUT_NODES] = { 0 };
    struct placing p = { l, 0 };
    long block;
    long rank = 0;

    if (!is_empty_text (f->distribution) && !strncmp (f->distribution, "arbitrary", 9))
        return deal_arbitrary (l, f);
    block = block_of (f);
    if (block < 0)
        return -1;
    for (int g = 0; g < f->ngroups && rank >= 0; g++) {
        long from = p.placed;
        if (is_empty_text (f->groups[g]) || layout_each_host (f->groups[g], place_node, &p) != 0)
            return fail_layout (EINVAL);
        rank = deal (l, dealt, rank, from, p.placed, block);
    }
    if (f->ngroups == 0)
        rank = deal (l, dealt, 0, 0, l->nodes, block);
    return rank == l->ranks ? 0 : fail_layout (EINVAL);
}

/* Check the layout against the ranks that this node really has. */
static int verify_own_ranks (const struct rank_layout *l, const struct layout_facts *f)
{
    const char *p = f->gtids;
    long count = 0;

    for (long r = 0; r < l->ranks; r++)
        if (l->node_of[r] == f->node) {
            char *end;
            if (strtol (p, &end, 10) != r || end == p)
                return fail_layout (EINVAL);
            p = end + (*end == ',');
            count++;
        }
    return *p || count != l->tasks[f->node] ? fail_layout (EINVAL) : 0;
}

int layout_deal (struct rank_layout *l, const struct layout_facts *f)
{
    l->nodes = l->most = 0;
    l->used = 0;
    l->ranks = f->ranks;
    if (is_empty_text (f->hosts) || is_empty_text (f->tasks) || f->ranks < 1)
        return fail_layout (EINVAL);
    if (f->ranks > LAYOUT_RANKS)
        return fail_layout (E2BIG);
    if (layout_each_host (f->hosts, append_host_name, l) != 0 || read_tasks (l, f->tasks) < 0)
        return -1;
    return f->node >= l->nodes ? fail_layout (EINVAL) : deal_all (l, f);
}

int layout_fill (struct rank_layout *l, const struct layout_facts *f)
{
    if (is_empty_text (f->gtids) || f->node < 0)
        return fail_layout (EINVAL);
    return layout_deal (l, f) < 0 ? -1 : verify_own_ranks (l, f);
}

const char *layout_host (const struct rank_layout *l, long rank)
{
    return l->names + l->name[l->node_of[rank]];
}

long layout_cross (const struct rank_layout *l, long local_rank, long node, long *before)
{
    long n = 0;

    *before = 0;
    for (long i = 0; i < l->nodes; i++)
        if (l->tasks[i] > (uint32_t)local_rank) {
            *before += i < node;
            n++;
        }
    return n;
}
