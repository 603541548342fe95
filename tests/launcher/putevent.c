/* SPDX-License-Identifier: Apache-2.0 */
/* Put one event, given as JSON, into the decision log of an experiment. */
#include <stdio.h>
#include <stdlib.h>

#include "launcher/config/diagnostics.h"
#include "launcher/sweep/sweep.h"

int main (int argc, char **argv)
{
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s = NULL;
    struct event e;
    json_t *json = argc == 3 ? json_loads (argv[2], 0, NULL) : NULL;
    int rv = 1;

    problems_open (&p);
    if (json && event_read (json, &e) == 0 && (s = sweep_open (argv[1], &p, &err)))
        rv = sweep_publish (s, &e, 1, &err);
    if (rv != 0)
        fprintf (stderr, "usage: putevent DIR JSON (%s)\n", err.text);
    sweep_close (s);
    json_decref (json);
    problems_close (&p);
    free (p.text);
    return rv != 0;
}
