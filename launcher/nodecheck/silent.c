/* SPDX-License-Identifier: Apache-2.0 */
/* Name the nodes of a step that never answered the collector. */
#include "launcher/nodecheck/silent.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/rank/layout.h"

enum { NAMED = 8 };

struct silent {
    json_t *const *ranks;
    long size;
    size_t n;
    char names[512];
};

static bool has_answered (const struct silent *s, const char *node)
{
    for (long i = 0; i < s->size; i++) {
        const json_t *facts = json_object_get (s->ranks[i], "facts");
        const char *host =
            json_string_value (json_object_get (facts, "host")) ?: "";
        if (!strcmp (host, node))
            return true;
    }
    return false;
}

static int note (void *arg, const char *node)
{
    struct silent *s = arg;
    size_t used = strlen (s->names);

    if (!has_answered (s, node) && s->n++ < NAMED)
        snprintf (s->names + used,
                  sizeof (s->names) - used,
                  "%s%.60s",
                  used ? "," : "",
                  node);
    return 0;
}

void silent_print (const char *nodes, json_t *const *ranks, long size, FILE *to)
{
    struct silent s = { .ranks = ranks, .size = size };
    bool exact = *nodes == '=';

    if (!*nodes || (!exact && size > 0)
        || layout_each_host (nodes + 1, note, &s) < 0 || s.n == 0)
        return;
    fprintf (to,
             "dl: no answer from %s%s%s: dl.so is missing there, so that tasks "
             "have none of its variables, or stands after a container plugin "
             "in plugstack.conf, or no task ran; see dl-spank(8)\n",
             exact ? "" : "any node of this step, of ",
             s.names,
             s.n > NAMED ? ", ..." : "");
}
