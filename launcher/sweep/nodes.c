/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the machines on which attempts ended. */
#include "launcher/sweep/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/queries.h"
#include "launcher/sweep/state_edit.h"
#include "runtime/base/array.h"

/* So many failures in a row, and results elsewhere meanwhile. */
enum { STREAK = 5 };

/* NULL if there is no name, or no memory. */
static struct host *know_host (struct sweep *s, const char *name)
{
    struct host *h = sweep_host (s, name);
    struct host *list;
    char *copy;

    if (h || !name)
        return h;
    if (!(list = array_grow (s->hosts, s->nhosts, sizeof (*list))))
        return NULL;
    s->hosts = list;
    if (!(copy = strdup (name)))
        return NULL;
    list[s->nhosts] = (struct host){ .name = copy };
    return &list[s->nhosts++];
}

void host_succeeds (struct sweep *s, const char *name)
{
    struct host *h = know_host (s, name);

    if (h) {
        h->results++;
        h->fails = 0;
        h->trials[0] = h->trials[1] = 0;
    }
}

void host_fails (struct sweep *s, const char *name, long trial)
{
    struct host *h = know_host (s, name);

    if (!h)
        return;
    if (h->fails++ == 0)
        h->before = s->nresults;
    if (!h->trials[0])
        h->trials[0] = trial;
    else if (h->trials[0] != trial)
        h->trials[1] = trial;
}

/* Those that do well outnumber those that are excluded. */
static bool is_minority (const struct sweep *s, const struct host *h)
{
    long balance = 0;

    for (size_t i = 0; i < s->nhosts; i++) {
        const struct host *other = &s->hosts[i];
        if (other != h)
            balance += other->why ? -1 : other->results > 0;
    }
    return balance > 0;
}

bool host_spoils (const struct sweep *s, const char *name, long trial)
{
    const struct host *h = sweep_host (s, name);

    return h && !h->why && h->fails + 1 >= STREAK && (h->trials[1] != 0 || h->trials[0] != trial)
           && s->nresults - h->before >= STREAK && is_minority (s, h);
}

int apply_exclude (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct host *h = know_host (s, e->host);

    (void)err;
    if (h) {
        state_set_text (&h->why, e->off ? NULL : e->why ? e->why : "");
        h->fails = 0;
        h->trials[0] = h->trials[1] = 0;
    }
    return 0;
}
