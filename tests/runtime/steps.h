/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of many kinds, for the tests of layouts and environments. */
#pragma once

#include <errno.h>

#include "runtime/rank/layout.h"

/* clang-format off */
/* Steps as Slurm 22.05 describes them; 'want' is "host/SLURM_LOCALID" of each rank. */
static const struct step {
    const char *name, *hosts, *tasks, *distribution;
    long plane;
    const char *gtids[4]; /* by SLURM_NODEID */
    const char *groups[3];
    const char *want; /* NULL: it fails with 'error' */
    int error;
} steps[] = {
    { "one node", "n1", "4", NULL, -1, { "0,1,2,3" }, { 0 },
      "n1/0 n1/1 n1/2 n1/3", 0 },
    { "2 x 4", "n[1-2]", "4(x2)", "block", -1, { "0,1,2,3", "4,5,6,7" }, { 0 },
      "n1/0 n1/1 n1/2 n1/3 n2/0 n2/1 n2/2 n2/3", 0 },
    { "uneven", "n[9-11]", "4(x2),3", "block:cyclic", -1,
      { "0,1,2,3", "4,5,6,7", "8,9,10" }, { 0 },
      "n9/0 n9/1 n9/2 n9/3 n10/0 n10/1 n10/2 n10/3 n11/0 n11/1 n11/2", 0 },
    { "launchers", "a1,b[07-08]", "1(x3)", "cyclic", -1, { "0", "1", "2" }, { 0 },
      "a1/0 b07/0 b08/0", 0 },
    { "cyclic", "n[1-2]", "4,1", "cyclic:block", -1, { "0,2,3,4", "1" }, { 0 },
      "n1/0 n2/0 n1/1 n1/2 n1/3", 0 },
    { "plane", "n[1-2]", "4,1", "plane", 2, { "0,1,3,4", "2" }, { 0 },
      "n1/0 n1/1 n2/0 n1/2 n1/3", 0 },
    { "arbitrary", "n[1,3]", "2,1", "arbitrary", -1, { "1,2", "0" }, { 0 },
      "n3/0 n1/0 n1/1", 0 },
    { "arbitrary 1", "n3", "2", "arbitrary", -1, { "0,1" }, { 0 }, "n3/0 n3/1", 0 },
    { "arbitrary 3", "n[1-3]", "1(x3)", "arbitrary", -1, { "1", "2", "0" }, { 0 },
      NULL, ENOTSUP },
    { "het", "n[1-3]", "2,1,2", "block", -1, { "0,1", "2,3", "4" },
      { "n3", "n[1-2]" }, "n3/0 n3/1 n1/0 n1/1 n2/0", 0 },
    { "het, a step of some", "n[1,3]", "1(x2)", "cyclic", -1, { "0", "1" },
      { "n3", "n[1-2]" }, "n3/0 n1/0", 0 },
    { "het, a shared node", "n1", "3", "block", -1, { "0", "1,2" },
      { "n1", "n1" }, NULL, EINVAL },
    { "het, no list", "n[1-3]", "2,1,2", "block", -1, { "0,1", "2,3", "4" },
      { "n3", "" }, NULL, EINVAL },
    { "not what it says", "n[1-2]", "2,2", "block", -1, { "0,2", "1,3" }, { 0 },
      NULL, EINVAL },
    { "too few", "n[1-2]", "2", "block", -1, { "0,1", "2" }, { 0 }, NULL, EINVAL },
    { "too many", "n1", "2,1", "block", -1, { "0,1" }, { 0 }, NULL, EINVAL },
    { "unknown", "n[1-2]", "1(x2)", "snake", -1, { "0", "1" }, { 0 }, NULL, ENOTSUP },
    { "no plane", "n[1-2]", "1(x2)", "plane", 0, { "0", "1" }, { 0 }, NULL, ENOTSUP },
};
/* clang-format on */

static int lay_out (struct rank_layout *l, const struct step *s, long node)
{
    struct layout_facts f = { .hosts = s->hosts,
                              .tasks = s->tasks,
                              .distribution = s->distribution,
                              .plane = s->plane,
                              .node = node,
                              .gtids = s->gtids[node] };

    for (int i = 0; i < 4 && s->gtids[i]; i++)
        f.ranks += layout_count (s->gtids[i]);
    for (int i = 0; i < 3 && s->groups[i]; i++)
        f.groups[f.ngroups++] = s->groups[i];
    return layout_fill (l, &f);
}
