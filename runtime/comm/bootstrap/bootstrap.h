/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a communicator find each other. */
#pragma once

#include <stdbool.h>

#include "runtime/slurmdl_comm.h"

/* Over PMIx, PMI or just a port of rank 0, whatever the step offers.  All that
 * is needed is an exchange of small messages, so that each rank learns the
 * addresses of the others.
 */
struct boot;

/* Find the other ranks within the timeout.  On failure, all ranks that came
 * report the missing ranks and their hosts.
 */
struct boot *boot_open (const struct slurmdl_comm_options *o, struct slurmdl_error *err);
/* The same over TCP, if everything is known, including key and timeout. */
struct boot_place;
struct boot *boot_open_place (const struct boot_place *p, struct slurmdl_error *err);
void boot_close (struct boot *b); /* NULL is accepted */

long boot_rank (const struct boot *b);
long boot_size (const struct boot *b);
double boot_timeout (const struct boot *b);   /* of each exchange, seconds */
const char *boot_name (const struct boot *b); /* "pmix", "pmi", "tcp", "one" */
/* HANDSHAKE_KEY bytes: the secret of these ranks; zeros if there is only one. */
const unsigned char *boot_key (const struct boot *b);
bool boot_is_plain (const struct boot *b); /* handshake.h */

/* Each rank passes 'bytes' bytes (at most 4,096); 'all' receives size * bytes. */
int boot_allgather (struct boot *b, const void *mine, size_t bytes, void *all,
                    struct slurmdl_error *err);
