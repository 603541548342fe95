/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to dl search-server. */
#include "launcher/cmd/commands.h"
#include "tests/fuzz/fuzz.h"

/* Limit the requests, because large searches are slow without being a bug. */
enum { LINES = 40, REQUEST = 4096 };

static size_t cut (const uint8_t *data, size_t size)
{
    size_t n = 0;

    size = size < REQUEST ? size : REQUEST;
    for (size_t i = 0; i < size; i++)
        if (data[i] == '\n' && ++n == LINES)
            return i;
    return size;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const struct search_server_options opt = { .searcher = NULL };
    const struct command_line line = { .dir = ".", .options = &opt };
    const char *path = fuzz_file ("requests", data, cut (data, size));

    if (!freopen (path, "re", stdin))
        _exit (2);
    cmd_search_server (&line);
    return 0;
}
