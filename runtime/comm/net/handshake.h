/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake at the beginning of each TCP connection between processes of a job. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/seal.h"

/* The part of the program that listens. */
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

/* What both the caller and the listener know.  The key is secret; a key of zeros is invalid, and is
 * never accepted.  The token is not secret, and distinguishes listeners with the same key.
 */
struct handshake {
    enum handshake_service service;
    unsigned version; /* of the service's protocol */
    unsigned char key[HANDSHAKE_KEY];
    unsigned char token[HANDSHAKE_TOKEN];
    bool plain;    /* no tags after the handshake; both sides must agree */
    bool confirms; /* see handshake_call() */
};

/* The messages, in native byte order.  The caller sends a hello.  The listener answers with a
 * challenge that proves that it has the key.  Only then the caller proves the same with its MAC,
 * followed by 'length' bytes of the service.  Both MACs (BLAKE2b with the key) cover all earlier
 * messages and the role of the sender, so that recorded, altered or reflected messages prove
 * nothing.
 *
 * Both sides then derive the keys of the connection, one for each direction, from the key, the
 * Diffie-Hellman secret (X25519) of their points, which are drawn for each call and each listener,
 * and all messages.  A relay of the handshake cannot know them, nor can anybody who learns the key
 * later.
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

/* Set '*plain' to whether DL_COMM_INTEGRITY is "handshake".  Returns -1 with EINVAL if it is
 * neither that nor "frames" nor empty.
 */
int handshake_wants_plain (bool *plain, struct slurmdl_error *err);

/* The caller's part, until 'deadline' (monotonic()).  '*seal', which the caller owns, is for the
 * data that follow.  Returns -1 with errno: EACCES if the listener does not have the key,
 * EOPNOTSUPP if it has but only one side is plain.
 *
 * If the service confirms, the listener answers that it accepts the connection, and then the caller
 * that it will use it: the caller may have given up and called again before it was accepted.  Both
 * answers are the tag of an agreed record.
 */
int handshake_call (int fd, const struct handshake *h, const void *body, size_t n, double deadline,
                    struct net_seal **seal);

/* The listener's part.  A key pair may serve many calls. */
struct handshake_pair {
    unsigned char secret[HANDSHAKE_POINT], point[HANDSHAKE_POINT];
};
int handshake_draw (struct handshake_pair *p);

/* In this order: check whether the hello may come from a caller of this service; make the answer
 * (-1 on failure); check whether the caller has the key; and only then, whether both sides are
 * plain or not, and derive the keys, which is too much work for unauthenticated callers.
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

/* The tag with which each side confirms. */
void handshake_confirm (struct net_seal *s, unsigned char *tag);
int handshake_is_confirmed (struct net_seal *s, const unsigned char *tag);

/* The seal after the handshake: NULL if it is plain. */
struct net_seal *handshake_end (const struct handshake *h, struct net_seal *s);

/* Derive a key of 'size' bytes (16 to 64) for one purpose. */
void handshake_derive (const unsigned char *key, const char *purpose, unsigned char *derived,
                       size_t size);

/* Erase a key. */
void handshake_forget (void *key, size_t n);
