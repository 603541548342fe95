/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticate what goes over a connection, record by record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Keys and counters of both directions.  A record is bytes whose number both
 * sides know; its tag follows it.  A tag is right only for that record at that
 * place of that direction of that connection: what was changed, left out, sent
 * again, sent back or taken from another connection has a wrong one.
 *
 * NULL: the ranks have agreed that records have no tags.
 */
struct net_seal;

enum { SEAL_TAG = 16, SEAL_KEY = 32 };

/* Whether this processor does AES-GCM.  If both do, tags are those of
 * AES-256-GCM, else of ChaCha20-Poly1305; the record is the associated data of
 * an empty message, its number the nonce.  Of a record of 2 to 64 KiB it is the
 * size and 16 bytes for each 2 KiB, by NH under a key of the direction.
 */
bool seal_has_aes (void);

/* 'out' and 'in': SEAL_KEY bytes each.  NULL: out of memory. */
struct net_seal *seal_create (const unsigned char *out, const unsigned char *in, bool aes);
void seal_destroy (struct net_seal *s); /* NULL is accepted; errno is kept */

size_t seal_size (const struct net_seal *s); /* of a tag: SEAL_TAG, or 0 */

/* The tag of the next record that is sent; and whether that of the next one
 * that has come is right: -1 with EBADMSG, also for all that follow.  One
 * thread may send while another one receives.
 */
void seal_make (struct net_seal *s, const void *data, size_t n, void *tag);
int seal_check (struct net_seal *s, const void *data, size_t n, const void *tag);
