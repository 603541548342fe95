/* SPDX-License-Identifier: Apache-2.0 */
/* What each TCP connection between ranks begins with. */
#ifndef RUNTIME_COMM_NET_HANDSHAKE_H
#define RUNTIME_COMM_NET_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which part of a program listens. */
enum handshake_service {
    HANDSHAKE_BOOTSTRAP = 0x626f,
    HANDSHAKE_MESH = 0x6d65,
    HANDSHAKE_PS = 0x7073,
    HANDSHAKE_COLLECTOR = 0x636f,
};

enum { HANDSHAKE_MAGIC = 0x48444c53, HANDSHAKE_TOKEN = 16 };

/* The caller sends this and 'length' bytes of the service's own, in the
 * machine's order of bytes.  It has learned the listener's token together with
 * its address.
 */
struct handshake {
    uint32_t magic;
    uint16_t service, version; /* of the service's protocol */
    unsigned char token[HANDSHAKE_TOKEN];
    uint32_t length;
};

/* Whether it may be the beginning of a connection to that service; 'most': of
 * 'length'.  Takes as long whatever is wrong with the token.
 */
bool handshake_is_good (const struct handshake *h,
                        enum handshake_service service,
                        const unsigned char *token,
                        size_t most);

/* Say who calls, until the deadline (monotonic()); -1 with errno. */
int handshake_send (int fd,
                    enum handshake_service service,
                    unsigned version,
                    const unsigned char *token,
                    const void *body,
                    size_t n,
                    double deadline);

/* For services that confirm (listener.h): the listener answers with a token
 * that it has of the caller; EPROTO if that is not 'own'.  Then the caller says
 * that it will use the connection: it may have given it up, and called again,
 * before it was accepted.
 */
int handshake_confirm (int fd, const unsigned char *own, double deadline);

#endif
