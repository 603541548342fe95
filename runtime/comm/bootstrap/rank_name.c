/* SPDX-License-Identifier: Apache-2.0 */
/* Name ranks and their hosts in a line. */
#include <stdio.h>
#include <string.h>

#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/rank/layout.h"

static const char *host_of (const struct rank_layout *layout, long rank)
{
    return layout && rank < layout->ranks ? layout_host (layout, rank) : "";
}

/* The first rank after 'from' that does not go on with it. */
static long end_of (const bool *missing, long n, long from, const struct rank_layout *l)
{
    const char *host = host_of (l, from);
    long to = from + 1;

    while (to < n && missing[to] && !strcmp (host_of (l, to), host))
        to++;
    return to;
}

static void put_run (char *buf, size_t size, long from, long to, const char *host)
{
    char range[48];

    if (to - from == 1)
        snprintf (range, sizeof (range), "%ld", from);
    else
        snprintf (range, sizeof (range), "%ld-%ld", from, to - 1);
    if (*host)
        snprintf (buf, size, "%s (%s)", range, host);
    else
        snprintf (buf, size, "%s", range);
}

void boot_name_ranks (char *buf, size_t size, const bool *missing, long n,
                      const struct rank_layout *layout)
{
    enum { MORE = 24 }; /* room for the number of those that have none */
    char run[320];
    size_t used = 0;
    long left = 0;
    long to;

    for (long r = 0; r < n; r++)
        left += missing[r];
    *buf = '\0';
    for (long r = 0; r < n; r = to) {
        to = r + 1;
        if (!missing[r])
            continue;
        to = end_of (missing, n, r, layout);
        put_run (run, sizeof (run), r, to, host_of (layout, r));
        if (used + strlen (run) + 2 + (left > to - r ? MORE : 1) > size) {
            snprintf (buf + used, size - used, "%s%ld more", used ? " and " : "", left);
            return;
        }
        used += (size_t)snprintf (buf + used, size - used, "%s%s", used ? ", " : "", run);
        left -= to - r;
    }
}
