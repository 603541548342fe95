/* SPDX-License-Identifier: Apache-2.0 */
/* What each TCP connection between processes of a job begins with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/seal.h"

/* Which part of a program listens. */
enum handshake_service {
    HANDSHAKE_BOOTSTRAP = 0x626f,
    HANDSHAKE_MESH = 0x6d65,
    HANDSHAKE_COLLECTOR = 0x636f,
    HANDSHAKE_RATES = 0x7261,
    HANDSHAKE_RANKS = 0x726b,
};

enum {
    HANDSHAKE_MAGIC = 0x33444c53,
    HANDSHAKE_KEY = 16,
    HANDSHAKE_TOKEN = 16,
    HANDSHAKE_NONCE = 16,
    HANDSHAKE_POINT = 32,
    HANDSHAKE_MAC = 32
};

/* What the caller and the listener both know.  The key is a secret; one of
 * zeros is none, and takes part in nothing.  The token, which is no secret,
 * tells listeners with the same key apart.
 */
struct handshake {
    enum handshake_service service;
    unsigned version; /* of the service's protocol */
    unsigned char key[HANDSHAKE_KEY];
    unsigned char token[HANDSHAKE_TOKEN];
    bool plain;    /* no tags on what follows: both sides want that, or none */
    bool confirms; /* see handshake_call() */
};

/* The messages, in the machine's order of bytes.  The caller says hello, the
 * listener answers with a challenge that proves that it has the key, and only
 * then the caller proves the same by the code of its proof, which 'length'
 * bytes of the service's own follow.  Both codes (BLAKE2b with the key) are
 * over all that was said before, and over who says it: what was recorded,
 * changed or sent back proves nothing.
 *
 * Both sides then make the keys of the connection, one for each direction, of
 * the key, the Diffie-Hellman secret (X25519) of their points, which are drawn
 * for the call and for the listener, and all that was said: who passes the
 * handshake on has no part in them, nor who later learns the key.
 */
enum { HANDSHAKE_AES = 1, HANDSHAKE_PLAIN = 2 }; /* flags */

struct handshake_hello {
    uint32_t magic;
    uint16_t service, version;
    uint32_t flags;
    unsigned char nonce[HANDSHAKE_NONCE];
    unsigned char point[HANDSHAKE_POINT];
};

struct handshake_challenge {
    uint32_t flags;
    unsigned char nonce[HANDSHAKE_NONCE];
    unsigned char point[HANDSHAKE_POINT];
    unsigned char mac[HANDSHAKE_MAC];
};

struct handshake_proof {
    uint32_t length;
    unsigned char mac[HANDSHAKE_MAC];
};

/* '*plain' is whether DL_COMM_INTEGRITY is "handshake".  Returns -1 with EINVAL if
 * it is neither that nor "frames" nor empty.
 */
int handshake_wants_plain (bool *plain, struct slurmdl_error *err);

/* The caller's part, until the deadline (monotonic()); '*seal', which the
 * caller owns, is for what follows.  -1 with errno; EACCES: who listens there
 * does not have the key; EOPNOTSUPP: it has, and one side is plain.
 *
 * Where the service confirms, the listener answers that it takes the
 * connection, and then the caller that it will use it: else it may have given
 * it up, and called again, before it was accepted.  Both answers are the tag of
 * an agreed record.
 */
int handshake_call (int fd, const struct handshake *h, const void *body, size_t n, double deadline,
                    struct net_seal **seal);

/* The listener's part.  A pair of keys, which may serve many calls. */
struct handshake_pair {
    unsigned char secret[HANDSHAKE_POINT], point[HANDSHAKE_POINT];
};
int handshake_draw (struct handshake_pair *p);

/* Whether it may be a caller of this service; the answer, -1: there is none;
 * whether the caller has the key; and then whether it is plain as we are, and
 * the keys, which is work only for who has proven something.
 */
bool handshake_is_hello (const struct handshake *h, const struct handshake_hello *hello);
int handshake_answer (const struct handshake *h, const struct handshake_pair *p,
                      const struct handshake_hello *hello, struct handshake_challenge *c);
bool handshake_is_proven (const struct handshake *h, const struct handshake_hello *hello,
                          const struct handshake_challenge *c, const struct handshake_proof *proof,
                          const void *body);
bool handshake_agrees (const struct handshake *h, const struct handshake_hello *hello);
struct net_seal *handshake_seal (const struct handshake *h, const struct handshake_pair *p,
                                 const struct handshake_hello *hello,
                                 const struct handshake_challenge *c);

/* What both sides confirm with: a tag each. */
void handshake_confirm (struct net_seal *s, unsigned char *tag);
int handshake_is_confirmed (struct net_seal *s, const unsigned char *tag);

/* What is left of 's' after the handshake: NULL, if that was plain. */
struct net_seal *handshake_end (const struct handshake *h, struct net_seal *s);

/* A key for one purpose among several of a secret's; 'size' bytes, at least 16,
 * at most 64.
 */
void handshake_derive (const unsigned char *key, const char *purpose, unsigned char *derived,
                       size_t size);

/* Forget a key. */
void handshake_forget (void *key, size_t n);
