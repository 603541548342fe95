/* SPDX-License-Identifier: Apache-2.0 */
/* What each TCP connection between ranks begins with. */
#include "runtime/comm/net/handshake.h"

#include <errno.h>
#include <string.h>

#include "runtime/comm/net/socket.h"

/* A secret of the step belongs here: as a code over what both have sent, in
 * handshake_send() and handshake_is_good(), and in the answer.
 */
bool handshake_is_good (const struct handshake *h,
                        enum handshake_service service,
                        const unsigned char *token,
                        size_t most)
{
    unsigned char differs = 0;

    for (int i = 0; i < HANDSHAKE_TOKEN; i++)
        differs |= h->token[i] ^ token[i];
    return h->magic == HANDSHAKE_MAGIC && h->service == service
           && h->length <= most && !differs;
}

int handshake_send (int fd,
                    enum handshake_service service,
                    unsigned version,
                    const unsigned char *token,
                    const void *body,
                    size_t n,
                    double deadline)
{
    struct handshake h = { .magic = HANDSHAKE_MAGIC,
                           .service = (uint16_t)service,
                           .version = (uint16_t)version,
                           .length = (uint32_t)n };

    memcpy (h.token, token, sizeof (h.token));
    return socket_send (fd, &h, sizeof (h), deadline) < 0
                   || socket_send (fd, body, n, deadline) < 0
               ? -1
               : 0;
}

int handshake_confirm (int fd, const unsigned char *own, double deadline)
{
    unsigned char answer[HANDSHAKE_TOKEN];
    char go = 1;

    if (socket_recv (fd, answer, sizeof (answer), deadline) < 0)
        return -1;
    if (memcmp (answer, own, sizeof (answer))) {
        errno = EPROTO;
        return -1;
    }
    return socket_send (fd, &go, 1, deadline);
}
