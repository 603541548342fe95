/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticate what goes over a connection, record by record. */
#include "runtime/comm/net/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NONCE = 12 };

_Static_assert(crypto_aead_aes256gcm_KEYBYTES == SEAL_KEY, "a key");
_Static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SEAL_KEY, "a key");
_Static_assert(crypto_aead_aes256gcm_ABYTES == SEAL_TAG, "a tag");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == SEAL_TAG, "a tag");
_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == NONCE, "a nonce");
_Static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == NONCE, "a nonce");

struct way {
    crypto_aead_aes256gcm_state state;
    unsigned char key[SEAL_KEY];
    uint64_t count; /* of records */
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

static void begin (struct way *w, const unsigned char *key, bool aes)
{
    memcpy (w->key, key, sizeof (w->key));
    if (aes)
        crypto_aead_aes256gcm_beforenm (&w->state, key);
}

struct net_seal *
seal_create (const unsigned char *out, const unsigned char *in, bool aes)
{
    struct net_seal *s = calloc (1, sizeof (*s));

    if (!s)
        return NULL;
    s->aes = aes;
    begin (&s->out, out, aes);
    begin (&s->in, in, aes);
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

void seal_make (struct net_seal *s, const void *data, size_t n, void *tag)
{
    unsigned char nonce[NONCE], empty[1] = { 0 };

    if (!s)
        return;
    next_nonce (&s->out, nonce);
    if (s->aes)
        crypto_aead_aes256gcm_encrypt_detached_afternm (
            empty, tag, NULL, empty, 0, data, n, NULL, nonce, &s->out.state);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached (
            empty, tag, NULL, empty, 0, data, n, NULL, nonce, s->out.key);
}

int seal_check (struct net_seal *s, const void *data, size_t n, const void *tag)
{
    unsigned char nonce[NONCE], empty[1] = { 0 };
    int rv;

    if (!s)
        return 0;
    next_nonce (&s->in, nonce);
    if (s->aes)
        rv = crypto_aead_aes256gcm_decrypt_detached_afternm (
            empty, NULL, empty, 0, tag, data, n, nonce, &s->in.state);
    else
        rv = crypto_aead_chacha20poly1305_ietf_decrypt_detached (
            empty, NULL, empty, 0, tag, data, n, nonce, s->in.key);
    s->in.bad |= rv != 0;
    if (!s->in.bad)
        return 0;
    errno = EBADMSG;
    return -1;
}
