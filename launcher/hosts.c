/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the machines on which attempts ended. */
#include <stdlib.h>
#include <string.h>

#include "launcher/replay.h"

struct host *sweep_host (const struct sweep *s, const char *name)
{
    for (size_t i = 0; name && i < s->nhosts; i++)
        if (!strcmp (s->hosts[i].name, name))
            return &s->hosts[i];
    return NULL;
}

/* NULL if there is no name, or no memory. */
static struct host *know_host (struct sweep *s, const char *name)
{
    struct host *h = sweep_host (s, name);
    struct host *list;
    char *copy;

    if (h || !name)
        return h;
    if (!(list = replay_grow (s->hosts, s->nhosts, sizeof (*list))))
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
    h->fails++;
    if (!h->trials[0])
        h->trials[0] = trial;
    else if (h->trials[0] != trial)
        h->trials[1] = trial;
}

int apply_exclude (struct sweep *s,
                   const struct event *e,
                   struct slurmdl_error *err)
{
    struct host *h = know_host (s, e->host);

    (void)err;
    if (h) {
        replay_text (&h->why, e->off ? NULL : e->why ? e->why : "");
        h->fails = 0;
        h->trials[0] = h->trials[1] = 0;
    }
    return 0;
}
