/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a log entry: its events, and the checksum of them. */
#include "launcher/sweep/entry_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

char *journal_entry_text (const struct event *events, size_t n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);

    if (!f)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        json_t *o = event_json (&events[i]);
        json_dumpf (o, f, JSON_COMPACT);
        fputc ('\n', f);
        json_decref (o);
    }
    fflush (f);
    fprintf (f, "{\"xxh64\": \"%016llx\"}\n", (unsigned long long)XXH64 (text, size, 0));
    if (fclose (f) == 0)
        return text;
    free (text);
    return NULL;
}

char *journal_entry_body (char *text, size_t len)
{
    char *last = NULL;
    char want[64];

    if (len > 0 && text[len - 1] == '\n') {
        text[len - 1] = '\0';
        last = strrchr (text, '\n');
        text[len - 1] = '\n';
    }
    if (!last)
        return NULL;
    last++;
    snprintf (want, sizeof (want), "{\"xxh64\": \"%016llx\"}\n",
              (unsigned long long)XXH64 (text, (size_t)(last - text), 0));
    if (strcmp (last, want))
        return NULL;
    *last = '\0';
    return text;
}
