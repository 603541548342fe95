/* SPDX-License-Identifier: Apache-2.0 */
/* The events in a pack file of the decision log. */
#include "launcher/sweep/log.c"
#include "tests/fuzz/fuzz.h"

/* Volatile, so that the reads that sanitizers check are not optimized away. */
volatile size_t fuzz_sum;

/* Read every byte that an event claims to have. */
static size_t weigh (const struct event *e)
{
    const char *const texts[] = { e->by,   e->why, e->host, e->gpus,  e->owner,  e->state,
                                  e->name, e->dir, e->job,  e->slots, e->source, e->label };
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < sizeof (texts) / sizeof (*texts); i++)
        n += texts[i] ? strlen (texts[i]) : 0;
    for (size_t i = 0; i < e->nx; i++)
        sum += e->x[i];
    for (size_t i = 0; i < e->nmetrics; i++)
        sum += e->metrics[i];
    return n + (sum > 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct packed events = { .data = (char *)(uintptr_t)data, .size = size };
    const char *path = fuzz_path ("000000.pack");
    struct pack *p;
    struct event e;

    unlink (path);
    pack_publish (path, &events);
    if (!(p = pack_open (path)))
        abort ();
    while (pack_next (p, &e) == UNPACK_EVENT) {
        fuzz_sum += weigh (&e) + (event_name (e.op) != NULL);
        json_decref (e.json);
    }
    pack_close (p);
    return 0;
}
