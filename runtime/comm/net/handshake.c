/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake that begins each TCP connection between processes of a job. */
#include "runtime/comm/net/handshake.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

#include "runtime/base/environment.h"
#include "runtime/comm/net/socket.h"

/* The speaker's role is part of each code, so that nobody can return a challenge as
 * a proof.
 */
static const char listener_role[] = "slurmdl listener";
static const char caller_role[] = "slurmdl caller";
static const char session_role[] = "slurmdl session";
static const char confirmed[] = "slurmdl confirmed";

_Static_assert(HANDSHAKE_KEY >= crypto_generichash_KEYBYTES_MIN, "a key");
_Static_assert(HANDSHAKE_MAC <= crypto_generichash_BYTES_MAX, "a code");
_Static_assert(2 * SEAL_KEY <= crypto_generichash_BYTES_MAX, "both keys");
_Static_assert(HANDSHAKE_POINT == crypto_scalarmult_BYTES, "a point");
_Static_assert(HANDSHAKE_POINT == crypto_scalarmult_SCALARBYTES, "a scalar");

int handshake_wants_plain (bool *plain, struct slurmdl_error *err)
{
    const char *text = environment_text ("DL_COMM_INTEGRITY", "");

    *plain = !strcmp (text, "handshake");
    if (*plain || !*text || !strcmp (text, "frames"))
        return 0;
    errno = EINVAL;
    return errorf (err, "DL_COMM_INTEGRITY=%.40s: not frames or handshake", text);
}

static bool has_key (const struct handshake *h)
{
    return sodium_init () >= 0 && !sodium_is_zero (h->key, sizeof (h->key));
}

static int draw_bytes (unsigned char *bytes, size_t n)
{
    return getrandom (bytes, n, 0) == (ssize_t)n ? 0 : -1;
}

int handshake_draw (struct handshake_pair *p)
{
    if (sodium_init () < 0 || draw_bytes (p->secret, sizeof (p->secret)) < 0)
        return -1;
    return crypto_scalarmult_base (p->point, p->secret);
}

static uint32_t flags_of (const struct handshake *h)
{
    return (seal_has_aes () ? HANDSHAKE_AES : 0) | (h->plain ? HANDSHAKE_PLAIN : 0);
}

/* Hash everything that was sent before the codes. */
static void hash_hellos (crypto_generichash_state *s, const struct handshake *h, const char *role,
                         const struct handshake_hello *hello, const struct handshake_challenge *c,
                         size_t size)
{
    crypto_generichash_init (s, h->key, sizeof (h->key), size);
    crypto_generichash_update (s, (const unsigned char *)role, strlen (role) + 1);
    crypto_generichash_update (s, (const unsigned char *)hello, sizeof (*hello));
    crypto_generichash_update (s, h->token, sizeof (h->token));
    crypto_generichash_update (s, (const unsigned char *)c,
                               offsetof (struct handshake_challenge, mac));
}

static void finish_hash (crypto_generichash_state *s, unsigned char *to, size_t size)
{
    crypto_generichash_final (s, to, size);
    sodium_memzero (s, sizeof (*s));
}

static void listener_mac (const struct handshake *h, const struct handshake_hello *hello,
                          const struct handshake_challenge *c, unsigned char *mac)
{
    crypto_generichash_state s;

    hash_hellos (&s, h, listener_role, hello, c, HANDSHAKE_MAC);
    finish_hash (&s, mac, HANDSHAKE_MAC);
}

static void caller_mac (const struct handshake *h, const struct handshake_hello *hello,
                        const struct handshake_challenge *c, const struct handshake_proof *proof,
                        const void *body, unsigned char *mac)
{
    crypto_generichash_state s;

    hash_hellos (&s, h, caller_role, hello, c, HANDSHAKE_MAC);
    crypto_generichash_update (&s, (const unsigned char *)&proof->length, sizeof (proof->length));
    crypto_generichash_update (&s, body, proof->length);
    finish_hash (&s, mac, HANDSHAKE_MAC);
}

/* Derive the keys of a connection.  'secret' is ours, 'point' the other side's. */
static struct net_seal *make_seal (const struct handshake *h, const struct handshake_hello *hello,
                                   const struct handshake_challenge *c, const unsigned char *secret,
                                   const unsigned char *point, bool listens)
{
    unsigned char shared[crypto_scalarmult_BYTES], keys[2][SEAL_KEY];
    crypto_generichash_state s;
    struct net_seal *seal;

    errno = EACCES;
    if (crypto_scalarmult (shared, secret, point) != 0)
        return NULL;
    hash_hellos (&s, h, session_role, hello, c, sizeof (keys));
    crypto_generichash_update (&s, shared, sizeof (shared));
    finish_hash (&s, keys[0], sizeof (keys));
    seal = seal_create (keys[listens], keys[!listens], hello->flags & c->flags & HANDSHAKE_AES);
    sodium_memzero (shared, sizeof (shared));
    sodium_memzero (keys, sizeof (keys));
    return seal;
}

bool handshake_is_hello (const struct handshake *h, const struct handshake_hello *hello)
{
    return hello->magic == HANDSHAKE_MAGIC && hello->service == h->service;
}

int handshake_answer (const struct handshake *h, const struct handshake_pair *p,
                      const struct handshake_hello *hello, struct handshake_challenge *c)
{
    if (!has_key (h) || draw_bytes (c->nonce, sizeof (c->nonce)) < 0)
        return -1;
    c->flags = flags_of (h);
    memcpy (c->point, p->point, sizeof (c->point));
    listener_mac (h, hello, c, c->mac);
    return 0;
}

bool handshake_is_proven (const struct handshake *h, const struct handshake_hello *hello,
                          const struct handshake_challenge *c, const struct handshake_proof *proof,
                          const void *body)
{
    unsigned char mac[HANDSHAKE_MAC];

    caller_mac (h, hello, c, proof, body, mac);
    return sodium_memcmp (mac, proof->mac, sizeof (mac)) == 0;
}

bool handshake_agrees (const struct handshake *h, const struct handshake_hello *hello)
{
    return h->plain == !!(hello->flags & HANDSHAKE_PLAIN);
}

struct net_seal *handshake_seal (const struct handshake *h, const struct handshake_pair *p,
                                 const struct handshake_hello *hello,
                                 const struct handshake_challenge *c)
{
    return make_seal (h, hello, c, p->secret, hello->point, true);
}

void handshake_confirm (struct net_seal *s, unsigned char *tag)
{
    seal_make (s, confirmed, sizeof (confirmed), tag);
}

int handshake_is_confirmed (struct net_seal *s, const unsigned char *tag)
{
    return seal_check (s, confirmed, sizeof (confirmed), tag);
}

struct net_seal *handshake_end (const struct handshake *h, struct net_seal *s)
{
    if (!h->plain)
        return s;
    seal_destroy (s);
    return NULL;
}

/* ---- the caller ---- */

static int hear_challenge (int fd, const struct handshake *h, const struct handshake_hello *hello,
                           struct handshake_challenge *c, double deadline)
{
    unsigned char mac[HANDSHAKE_MAC];

    if (socket_recv (fd, c, sizeof (*c), deadline) < 0)
        return -1;
    listener_mac (h, hello, c, mac);
    if (sodium_memcmp (mac, c->mac, sizeof (mac)) == 0)
        return 0;
    errno = EACCES;
    return -1;
}

/* Send everything up to the next answer at once. */
static int send_proof (int fd, const struct handshake_proof *proof, const void *body,
                       double deadline)
{
    struct iovec v[2] = { { (void *)proof, sizeof (*proof) }, { (void *)body, proof->length } };

    return socket_sendv (fd, v, 2, deadline);
}

static int confirm (int fd, struct net_seal *s, double deadline)
{
    unsigned char tag[SEAL_TAG];

    if (socket_recv (fd, tag, sizeof (tag), deadline) < 0 || handshake_is_confirmed (s, tag) < 0)
        return -1;
    handshake_confirm (s, tag);
    return socket_send (fd, tag, sizeof (tag), deadline);
}

/* Send the proof even if the other side does not agree about plain connections, so
 * that it learns of that.
 */
static int prove (int fd, const struct handshake *h, const struct handshake_hello *hello,
                  struct handshake_challenge *c, const void *body, size_t n, double deadline)
{
    struct handshake_proof proof = { .length = (uint32_t)n };

    if (socket_send (fd, hello, sizeof (*hello), deadline) < 0
        || hear_challenge (fd, h, hello, c, deadline) < 0)
        return -1;
    caller_mac (h, hello, c, &proof, body, proof.mac);
    if (send_proof (fd, &proof, body, deadline) < 0)
        return -1;
    if (h->plain == !!(c->flags & HANDSHAKE_PLAIN))
        return 0;
    errno = EOPNOTSUPP;
    return -1;
}

int handshake_call (int fd, const struct handshake *h, const void *body, size_t n, double deadline,
                    struct net_seal **seal)
{
    struct handshake_hello hello = { .magic = HANDSHAKE_MAGIC,
                                     .service = (uint16_t)h->service,
                                     .version = (uint16_t)h->version,
                                     .flags = flags_of (h) };
    struct handshake_challenge c;
    struct handshake_pair own;
    struct net_seal *s = NULL;

    errno = EACCES;
    if (!has_key (h) || draw_bytes (hello.nonce, sizeof (hello.nonce)) < 0
        || handshake_draw (&own) < 0)
        return -1;
    memcpy (hello.point, own.point, sizeof (hello.point));
    if (prove (fd, h, &hello, &c, body, n, deadline) == 0)
        s = make_seal (h, &hello, &c, own.secret, c.point, false);
    sodium_memzero (&own, sizeof (own));
    if (!s)
        return -1;
    if (h->confirms && confirm (fd, s, deadline) < 0) {
        seal_destroy (s);
        return -1;
    }
    *seal = handshake_end (h, s);
    return 0;
}

void handshake_derive (const unsigned char *key, const char *purpose, unsigned char *derived,
                       size_t size)
{
    crypto_generichash (derived, size, (const unsigned char *)purpose, strlen (purpose), key,
                        HANDSHAKE_KEY);
}

void handshake_forget (void *key, size_t n)
{
    sodium_memzero (key, n);
}
