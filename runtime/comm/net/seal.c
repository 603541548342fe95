/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticate a connection record by record. */
#include "runtime/comm/net/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of a block of a long record and of its hash. */
enum { NONCE = 12, BLOCK = 2048, SHORT = 16, BLOCKS = 32 };
enum { WORDS = BLOCK / 8 };

_Static_assert(crypto_aead_aes256gcm_KEYBYTES == SEAL_KEY, "a key");
_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SEAL_KEY, "a key");
_Static_assert(crypto_aead_aes256gcm_ABYTES == SEAL_TAG, "a tag");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == SEAL_TAG, "a tag");
_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == NONCE, "a nonce");
_Static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == NONCE, "a nonce");

struct way {
    crypto_aead_aes256gcm_state state;
    unsigned char key[SEAL_KEY];
    uint64_t words[WORDS]; /* the key that hashes blocks */
    uint64_t count;        /* number of records */
    bool bad;
};

struct net_seal {
    struct way out, in;
    bool aes;
};

bool seal_has_aes (void)
{
    return sodium_init () >= 0 && crypto_aead_aes256gcm_is_available ();
}

static void begin_way (struct way *w, const unsigned char *key, bool aes)
{
    static const unsigned char purpose[] = "slurmdl blocks";
    static const unsigned char nonce[crypto_stream_chacha20_ietf_NONCEBYTES];
    unsigned char blocks[SEAL_KEY];

    memcpy (w->key, key, sizeof (w->key));
    if (aes)
        crypto_aead_aes256gcm_beforenm (&w->state, key);
    crypto_generichash (blocks, sizeof (blocks), purpose, sizeof (purpose), key, SEAL_KEY);
    crypto_stream_chacha20_ietf ((unsigned char *)w->words, sizeof (w->words), nonce, blocks);
    sodium_memzero (blocks, sizeof (blocks));
}

struct net_seal *seal_create (const unsigned char *out, const unsigned char *in, bool aes)
{
    struct net_seal *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->aes = aes;
    begin_way (&s->out, out, aes);
    begin_way (&s->in, in, aes);
    return s;
}

void seal_destroy (struct net_seal *s)
{
    int saved = errno;

    if (s)
        sodium_memzero (s, sizeof (*s));
    free (s);
    errno = saved;
}

size_t seal_size (const struct net_seal *s)
{
    return s ? SEAL_TAG : 0;
}

static void next_nonce (struct way *w, unsigned char *nonce)
{
    memset (nonce, 0, NONCE);
    memcpy (nonce, &w->count, sizeof (w->count));
    w->count++;
}

/* NH hash of BLOCK bytes: the sum of products of pairs of words, each with a word
 * of the key added.  Two different blocks have the same hash with a probability of
 * at most 2^-64 (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, CRYPTO '99,
 * theorem 4.2).
 */
static void hash_block (const uint64_t *key, const unsigned char *data, void *out)
{
    unsigned __int128 even = 0, odd = 0;
    uint64_t v[4];

    for (int i = 0; i < WORDS; i += 4) {
        memcpy (v, data + i * 8, sizeof (v));
        even += (unsigned __int128)(v[0] + key[i]) * (v[1] + key[i + 1]);
        odd += (unsigned __int128)(v[2] + key[i + 2]) * (v[3] + key[i + 3]);
    }
    even += odd;
    memcpy (out, &even, SHORT);
}

/* A long record is replaced by its size and its hashed blocks, whose tag is cheap
 * to compute.
 */
struct digest {
    uint64_t size;
    unsigned char blocks[BLOCKS][SHORT];
};

static const void *digest_of_blocks (const struct way *w, const void *data, size_t *n,
                                     struct digest *d)
{
    const unsigned char *p = data;
    unsigned char last[BLOCK];
    size_t k = 0, left = *n;

    if (left < BLOCK || left > (size_t)BLOCKS * BLOCK)
        return data;
    d->size = left;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
        hash_block (w->words, p, d->blocks[k++]);
    if (left > 0) {
        memcpy (last, p, left);
        memset (last + left, 0, BLOCK - left);
        hash_block (w->words, last, d->blocks[k++]);
    }
    *n = offsetof (struct digest, blocks) + k * SHORT;
    return d;
}

void seal_make (struct net_seal *s, const void *data, size_t n, void *tag)
{
    unsigned char nonce[NONCE], empty[1] = { 0 };
    struct digest d;

    if (!s)
        return;
    data = digest_of_blocks (&s->out, data, &n, &d);
    next_nonce (&s->out, nonce);
    if (s->aes)
        crypto_aead_aes256gcm_encrypt_detached_afternm (empty, tag, NULL, empty, 0, data, n, NULL,
                                                        nonce, &s->out.state);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached (empty, tag, NULL, empty, 0, data, n,
                                                            NULL, nonce, s->out.key);
}

int seal_check (struct net_seal *s, const void *data, size_t n, const void *tag)
{
    unsigned char nonce[NONCE], empty[1] = { 0 };
    struct digest d;
    int rv;

    if (!s)
        return 0;
    data = digest_of_blocks (&s->in, data, &n, &d);
    next_nonce (&s->in, nonce);
    if (s->aes)
        rv = crypto_aead_aes256gcm_decrypt_detached_afternm (empty, NULL, empty, 0, tag, data, n,
                                                             nonce, &s->in.state);
    else
        rv = crypto_aead_chacha20poly1305_ietf_decrypt_detached (empty, NULL, empty, 0, tag, data,
                                                                 n, nonce, s->in.key);
    s->in.bad |= rv != 0;
    if (!s->in.bad)
        return 0;
    errno = EBADMSG;
    return -1;
}
