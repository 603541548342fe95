/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a communicator find each other. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* Over PMIx, PMI or nothing but a port of rank 0's, whatever the step has:
 * all that is asked of it is an exchange of small messages, so that each rank
 * learns the others' addresses.
 */
struct boot;

/* Find the other ranks within the time-out; the ranks that did not come are
 * named with their hosts, on all that did.
 */
struct boot *boot_open (const struct slurmdl_comm_options *o, struct slurmdl_error *err);
/* The same where all is known, key and time-out too: over TCP. */
struct boot_place;
struct boot *boot_open_place (const struct boot_place *p, struct slurmdl_error *err);
void boot_close (struct boot *b); /* NULL is accepted */

long boot_rank (const struct boot *b);
long boot_size (const struct boot *b);
double boot_timeout (const struct boot *b);   /* of each exchange, seconds */
const char *boot_name (const struct boot *b); /* "pmix", "pmi", "tcp", "one" */
/* HANDSHAKE_KEY bytes: the secret of these ranks; zeros for one. */
const unsigned char *boot_key (const struct boot *b);
bool boot_is_plain (const struct boot *b); /* handshake.h */

/* All ranks give 'bytes' bytes (at most 4,096), 'all' gets size * bytes. */
int boot_allgather (struct boot *b, const void *mine, size_t bytes, void *all,
                    struct slurmdl_error *err);
