/* SPDX-License-Identifier: Apache-2.0 */
/* Authenticate the data on a connection, record by record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Keys and counters for both directions.  A record is a number of bytes that both sides know,
 * followed by its tag.  A tag is valid only for this record at this position in this direction of
 * this connection, so that altered, omitted, repeated or reflected records, or records of another
 * connection, are detected.
 *
 * NULL: the ranks have agreed not to use tags.
 */
struct net_seal;

enum { SEAL_TAG = 16, SEAL_KEY = 32 };

/* Whether this processor supports AES-GCM.  If both do, the tags are those of AES-256-GCM,
 * otherwise of ChaCha20-Poly1305.  The record is the associated data of an empty message, and its
 * number the nonce.  For a record of 2 to 64 KiB, the associated data are its size and 16 bytes for
 * each 2 KiB, computed by NH with a key for the direction.
 */
bool seal_has_aes (void);

/* 'out' and 'in' have SEAL_KEY bytes each.  Returns NULL if out of memory. */
struct net_seal *seal_create (const unsigned char *out, const unsigned char *in, bool aes);
void seal_destroy (struct net_seal *s); /* NULL is accepted; keeps errno */

size_t seal_size (const struct net_seal *s); /* of a tag: SEAL_TAG, or 0 */

/* Make the tag of the next record to send; and check the tag of the next record received: -1 with
 * EBADMSG, also for all later ones.  One thread may send while another one receives.
 */
void seal_make (struct net_seal *s, const void *data, size_t n, void *tag);
int seal_check (struct net_seal *s, const void *data, size_t n, const void *tag);
