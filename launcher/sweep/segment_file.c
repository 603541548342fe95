/* SPDX-License-Identifier: Apache-2.0 */
/* Write and read the file of a block's events. */
#include "launcher/sweep/segment_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"

enum { PACK_MAX = 1 << 30 };

struct pack_header {
    char magic[8];
    uint64_t layout; /* also tells the byte order */
    uint64_t size;   /* of the events */
    uint64_t sum;    /* XXH64 of them */
};

static const char magic[8] = "DLPACK01";

struct pack {
    char *text;
    size_t size;
    size_t at;
};

void pack_publish (const char *path, const struct packed *events)
{
    struct pack_header h = { .layout = event_layout (),
                             .size = events->size,
                             .sum = XXH64 (events->data, events->size, 0) };
    char *text;

    if (access (path, F_OK) == 0 || !(text = malloc (sizeof (h) + events->size)))
        return;
    memcpy (h.magic, magic, sizeof (magic));
    memcpy (text, &h, sizeof (h));
    memcpy (text + sizeof (h), events->data, events->size);
    publish_if_absent (path, text, sizeof (h) + events->size, NULL);
    free (text);
}

static bool is_good (const struct pack *p)
{
    struct pack_header h;

    if (p->size < sizeof (h))
        return false;
    memcpy (&h, p->text, sizeof (h));
    return !memcmp (h.magic, magic, sizeof (magic)) && h.layout == event_layout ()
           && h.size == p->size - sizeof (h) && h.sum == XXH64 (p->text + sizeof (h), h.size, 0);
}

struct pack *pack_open (const char *path)
{
    struct pack *p = NULL;

    /* file_read() would wait for a name that may well be absent */
    if (access (path, F_OK) < 0 || !(p = calloc (1, sizeof (*p))))
        return NULL;
    p->text = file_read (path, PACK_MAX, &p->size, NULL);
    p->at = sizeof (struct pack_header);
    if (p->text && is_good (p))
        return p;
    pack_close (p);
    return NULL;
}

void pack_close (struct pack *p)
{
    if (p)
        free (p->text);
    free (p);
}

int pack_next (struct pack *p, struct event *e)
{
    return event_unpack (p->text, p->size, &p->at, e);
}
