/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a step in Slurm's notation, one value per line: hosts, tasks, distribution, plane,
 * ranks, node, ranks of the node, components.
 */
#include "runtime/rank/layout.h"
#include "runtime/rank/rank_environment.h"
#include "tests/fuzz/fuzz.h"

static int count (void *arg, const char *host)
{
    long *n = arg;

    (void)host;
    return ++*n > LAYOUT_NODES;
}

static void ask (const struct rank_layout *l)
{
    long before;

    for (long r = 0; r < l->ranks; r += 1 + l->ranks / 8)
        layout_host (l, r);
    layout_cross (l, 0, 0, &before);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct rank_layout l;
    char *text = fuzz_text (data, size);
    char *rest = text;
    struct layout_facts f = { .hosts = fuzz_line (&rest) };
    char host[64];
    long n = 0;

    f.tasks = fuzz_line (&rest);
    f.distribution = fuzz_line (&rest);
    f.plane = strtol (fuzz_line (&rest), NULL, 10);
    f.ranks = strtol (fuzz_line (&rest), NULL, 10);
    f.node = strtol (fuzz_line (&rest), NULL, 10);
    f.gtids = fuzz_line (&rest);
    while (*rest && f.ngroups < LAYOUT_GROUPS)
        f.groups[f.ngroups++] = fuzz_line (&rest);
    if (layout_fill (&l, &f) == 0)
        ask (&l);
    if (layout_deal (&l, &f) == 0)
        ask (&l);
    layout_count (f.gtids);
    layout_first_host (f.hosts, host, sizeof (host));
    layout_each_host (f.hosts, count, &n);
    layout_tasks_of_node (f.tasks, f.node);
    rank_environment_ports (f.gtids, 1, 0, 32768, f.ranks);
    free (text);
    return 0;
}
