/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a server to requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ps/server.h"

void psanswer (struct ps_peer *p, const void *body, size_t n)
{
    p->out = (struct ps_header){ .magic = PS_MAGIC,
                                 .version = PS_VERSION,
                                 .kind = p->in.kind,
                                 .clock = p->in.clock,
                                 .bytes = n };
    p->out_body = body;
    p->out_size = sizeof (p->out) + n;
    p->out_sent = 0;
}

void *psanswer_room (struct ps_peer *p, size_t n)
{
    void *more;

    if (n > p->out_room) {
        if (!(more = realloc (p->out_own, n)))
            return NULL;
        p->out_own = more;
        p->out_room = n;
    }
    psanswer (p, p->out_own, n);
    return n ? p->out_own : (void *)&p->out;
}

void psanswer_error (struct ps_peer *p, int code, const char *why)
{
    size_t n = strlen (why);
    void *to = psanswer_room (p, n + 1);

    if (to)
        memcpy (to, why, n + 1);
    else
        psanswer (p, NULL, 0);
    p->out.status = (uint32_t)(code ? code : EIO);
}
