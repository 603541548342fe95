/* SPDX-License-Identifier: Apache-2.0 */
/* Check that nodes reach each other over TCP. */
#pragma once

#include <sys/types.h>

#include "launcher/nodecheck/output.h"

/* Connect to the host and port of rank 0, and to those of the next node; a
 * finding if that fails.
 */
void check_master (const struct check_place *p);
void check_next (const struct check_place *p);

/* Start the process that check_master() and check_next() connect to.  It
 * listens on the port of the step's rank 0 if this is that rank ('findings'
 * gets an entry if the port is taken), and on '*port', which it chooses, for
 * ranks that have the key of the step's collector.
 * Returns its process id, or -1.
 */
pid_t peers_serve (const unsigned char *key,
                   bool is_master,
                   int *port,
                   json_t *findings);
void peers_end (pid_t pid);
