/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that ranks send to the collector of dl check. */
#include <errno.h>

#include "launcher/node/checks.h"
#include "launcher/node/diagnosis.h"
#include "runtime/comm/net/stream.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 8 };

static void diagnose (json_t *const *ranks)
{
    struct diagnosis *d = diagnosis_create (ranks, RANKS, NULL);
    FILE *to = fopen ("/dev/null", "we");
    char line[512];

    for (long i = 0; d && to && i < RANKS; i++)
        diagnosis_status (d, i);
    if (d && to) {
        diagnosis_print (d, to);
        diagnosis_line (d, line, sizeof (line));
        ranks_print (ranks, RANKS, to);
    }
    if (to)
        fclose (to);
    diagnosis_destroy (d);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    int fd = fuzz_socket (data, size);
    struct net_stream w;
    json_t *ranks[RANKS] = { NULL };

    net_stream_init (&w, fd, NULL);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = gather_receive (&w);
        if (!ranks[i] && errno != EBADMSG)
            break;
    }
    diagnose (ranks);
    for (int i = 0; i < RANKS; i++)
        json_decref (ranks[i]);
    net_stream_close (&w);
    return 0;
}
