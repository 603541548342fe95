/* SPDX-License-Identifier: Apache-2.0 */
/* What each TCP connection between processes of a job begins with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which part of a program listens. */
enum handshake_service {
    HANDSHAKE_BOOTSTRAP = 0x626f,
    HANDSHAKE_MESH = 0x6d65,
    HANDSHAKE_COLLECTOR = 0x636f,
    HANDSHAKE_RATES = 0x7261,
};

enum {
    HANDSHAKE_MAGIC = 0x32444c53,
    HANDSHAKE_KEY = 16,
    HANDSHAKE_TOKEN = 16,
    HANDSHAKE_NONCE = 16,
    HANDSHAKE_MAC = 32
};

/* What the caller and the listener both know.  The key is a secret; one of
 * zeros is none, and takes part in nothing.  The token, which is no secret,
 * tells listeners with the same key apart; it is fresh if it was drawn by lot
 * for this listener, and no other.
 */
struct handshake {
    enum handshake_service service;
    unsigned version; /* of the service's protocol */
    unsigned char key[HANDSHAKE_KEY];
    unsigned char token[HANDSHAKE_TOKEN];
    bool fresh;    /* the token */
    bool confirms; /* see handshake_call(); of a fresh token always */
};

/* The messages, in the machine's order of bytes.  The caller says hello, the
 * listener answers with a challenge that proves that it has the key, and the
 * caller proves the same by the code of its proof, which 'length' bytes of the
 * service's own follow.  Both codes (BLAKE2b with the key) are over all that
 * was said before, and over who says it: what was recorded, changed or sent
 * back proves nothing.
 *
 * With a fresh token, which is as good as the nonce of a challenge, the caller
 * says hello and its proof at once, and the challenge comes as the answer: the
 * listener remembers the nonces of all that have proven something.
 */
struct handshake_hello {
    uint32_t magic;
    uint16_t service, version;
    unsigned char nonce[HANDSHAKE_NONCE];
};

struct handshake_challenge {
    unsigned char nonce[HANDSHAKE_NONCE];
    unsigned char mac[HANDSHAKE_MAC];
};

struct handshake_proof {
    uint32_t length;
    unsigned char mac[HANDSHAKE_MAC];
};

/* The caller's part, until the deadline (monotonic()); -1 with errno, EACCES:
 * who listens there does not have the key.
 *
 * Where the service confirms, the listener answers that it takes the
 * connection, and then the caller that it will use it: else it may have given
 * it up, and called again, before it was accepted.
 */
int handshake_call (int fd,
                    const struct handshake *h,
                    const void *body,
                    size_t n,
                    double deadline);

/* The listener's part: whether it may be a caller of this service; the nonce of
 * the challenge, and all of it, -1: there is none; and whether the caller has
 * the key.
 */
bool handshake_is_hello (const struct handshake *h,
                         const struct handshake_hello *hello);
int handshake_draw (const struct handshake *h, struct handshake_challenge *c);
void handshake_challenge (const struct handshake *h,
                          const struct handshake_hello *hello,
                          struct handshake_challenge *c);
bool handshake_is_proven (const struct handshake *h,
                          const struct handshake_hello *hello,
                          const struct handshake_challenge *c,
                          const struct handshake_proof *proof,
                          const void *body);

/* A key for one purpose among several of a secret's; 'size' bytes, at least 16,
 * at most 64.
 */
void handshake_derive (const unsigned char *key,
                       const char *purpose,
                       unsigned char *derived,
                       size_t size);

/* Forget a key. */
void handshake_forget (void *key, size_t n);
