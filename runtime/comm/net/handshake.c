/* SPDX-License-Identifier: Apache-2.0 */
/* What each TCP connection between processes of a job begins with. */
#include "runtime/comm/net/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/comm/net/socket.h"

/* Who says it: a challenge is no proof, whoever sends it. */
static const char listener_role[] = "slurmdl listener";
static const char caller_role[] = "slurmdl caller";

enum { PIECE = 2048 };

_Static_assert(HANDSHAKE_TOKEN == HANDSHAKE_NONCE, "a token is a nonce");
_Static_assert(HANDSHAKE_KEY >= crypto_generichash_KEYBYTES_MIN, "a key");
_Static_assert(HANDSHAKE_MAC <= crypto_generichash_BYTES_MAX, "a code");

static bool has_key (const struct handshake *h)
{
    return sodium_init () >= 0 && !sodium_is_zero (h->key, sizeof (h->key))
           && !(h->fresh && sodium_is_zero (h->token, sizeof (h->token)));
}

static int draw (unsigned char *nonce, size_t n)
{
    return getrandom (nonce, n, 0) == (ssize_t)n ? 0 : -1;
}

static void begin (crypto_generichash_state *s,
                   const struct handshake *h,
                   const char *role,
                   const struct handshake_hello *hello,
                   const unsigned char *nonce)
{
    crypto_generichash_init (s, h->key, sizeof (h->key), HANDSHAKE_MAC);
    crypto_generichash_update (
        s, (const unsigned char *)role, strlen (role) + 1);
    crypto_generichash_update (
        s, (const unsigned char *)hello, sizeof (*hello));
    crypto_generichash_update (s, h->token, sizeof (h->token));
    crypto_generichash_update (s, nonce, HANDSHAKE_NONCE);
}

static void end (crypto_generichash_state *s, unsigned char *mac)
{
    crypto_generichash_final (s, mac, HANDSHAKE_MAC);
    sodium_memzero (s, sizeof (*s));
}

void handshake_challenge (const struct handshake *h,
                          const struct handshake_hello *hello,
                          struct handshake_challenge *c)
{
    crypto_generichash_state s;

    begin (&s, h, listener_role, hello, c->nonce);
    end (&s, c->mac);
}

static void caller_mac (const struct handshake *h,
                        const struct handshake_hello *hello,
                        const struct handshake_challenge *c,
                        const struct handshake_proof *proof,
                        const void *body,
                        unsigned char *mac)
{
    crypto_generichash_state s;

    begin (&s, h, caller_role, hello, c->nonce);
    crypto_generichash_update (
        &s, (const unsigned char *)&proof->length, sizeof (proof->length));
    crypto_generichash_update (&s, body, proof->length);
    end (&s, mac);
}

bool handshake_is_hello (const struct handshake *h,
                         const struct handshake_hello *hello)
{
    return hello->magic == HANDSHAKE_MAGIC && hello->service == h->service;
}

int handshake_draw (const struct handshake *h, struct handshake_challenge *c)
{
    if (!has_key (h))
        return -1;
    if (!h->fresh)
        return draw (c->nonce, sizeof (c->nonce));
    memcpy (c->nonce, h->token, sizeof (c->nonce));
    return 0;
}

bool handshake_is_proven (const struct handshake *h,
                          const struct handshake_hello *hello,
                          const struct handshake_challenge *c,
                          const struct handshake_proof *proof,
                          const void *body)
{
    unsigned char mac[HANDSHAKE_MAC];

    caller_mac (h, hello, c, proof, body, mac);
    return sodium_memcmp (mac, proof->mac, sizeof (mac)) == 0;
}

static int hear_challenge (int fd,
                           const struct handshake *h,
                           const struct handshake_hello *hello,
                           struct handshake_challenge *c,
                           double deadline)
{
    unsigned char mac[HANDSHAKE_MAC];

    if (socket_recv (fd, c, sizeof (*c), deadline) < 0)
        return -1;
    memcpy (mac, c->mac, sizeof (mac));
    handshake_challenge (h, hello, c);
    if (sodium_memcmp (mac, c->mac, sizeof (mac)) == 0)
        return 0;
    errno = EACCES;
    return -1;
}

/* All that is said before the next answer, in a piece. */
static int say (int fd,
                const struct handshake_hello *hello,
                const struct handshake_proof *proof,
                const void *body,
                double deadline)
{
    char buf[PIECE];
    size_t n = 0;

    if (hello)
        n = sizeof (*hello);
    if (n)
        memcpy (buf, hello, n);
    memcpy (buf + n, proof, sizeof (*proof));
    n += sizeof (*proof);
    if (proof->length > sizeof (buf) - n)
        return socket_send (fd, buf, n, deadline) < 0
                   ? -1
                   : socket_send (fd, body, proof->length, deadline);
    if (proof->length)
        memcpy (buf + n, body, proof->length);
    return socket_send (fd, buf, n + proof->length, deadline);
}

static int prove (int fd,
                  const struct handshake *h,
                  const struct handshake_hello *hello,
                  const void *body,
                  size_t n,
                  double deadline)
{
    struct handshake_proof proof = { .length = (uint32_t)n };
    struct handshake_challenge c;

    if (h->fresh)
        memcpy (c.nonce, h->token, sizeof (c.nonce));
    else if (socket_send (fd, hello, sizeof (*hello), deadline) < 0
             || hear_challenge (fd, h, hello, &c, deadline) < 0)
        return -1;
    caller_mac (h, hello, &c, &proof, body, proof.mac);
    return say (fd, h->fresh ? hello : NULL, &proof, body, deadline);
}

static int confirm (int fd,
                    const struct handshake *h,
                    const struct handshake_hello *hello,
                    double deadline)
{
    struct handshake_challenge c;
    char go = 0;
    int rv = h->fresh ? hear_challenge (fd, h, hello, &c, deadline)
                      : socket_recv (fd, &go, 1, deadline);

    return rv < 0 ? -1 : socket_send (fd, &go, 1, deadline);
}

int handshake_call (int fd,
                    const struct handshake *h,
                    const void *body,
                    size_t n,
                    double deadline)
{
    struct handshake_hello hello = { .magic = HANDSHAKE_MAGIC,
                                     .service = (uint16_t)h->service,
                                     .version = (uint16_t)h->version };

    errno = EACCES;
    if (!has_key (h) || draw (hello.nonce, sizeof (hello.nonce)) < 0
        || prove (fd, h, &hello, body, n, deadline) < 0)
        return -1;
    return h->confirms || h->fresh ? confirm (fd, h, &hello, deadline) : 0;
}

void handshake_derive (const unsigned char *key,
                       const char *purpose,
                       unsigned char *derived,
                       size_t size)
{
    crypto_generichash (derived,
                        size,
                        (const unsigned char *)purpose,
                        strlen (purpose),
                        key,
                        HANDSHAKE_KEY);
}

void handshake_forget (void *key, size_t n)
{
    sodium_memzero (key, n);
}
