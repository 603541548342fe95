/* SPDX-License-Identifier: Apache-2.0 */
/* The server that Horovod's ranks meet at: named values over HTTP. */
#ifndef LAUNCHER_CMD_RENDEZVOUS_H
#define LAUNCHER_CMD_RENDEZVOUS_H

#include <stdbool.h>

#include "runtime/slurmdl.h"

/* GET, PUT and DELETE of /SCOPE/KEY.  GET of a key that is not there yet is
 * answered with 404, and the client asks again.  DELETE /SCOPE/RANK says that a
 * rank has done with the scope; when all have, its values go, so that the ranks
 * can meet again.  A rank is one that has put a value under its number.
 *
 * A value has at most 1 MiB, all of them 256 MiB; there is no authentication,
 * as Horovod's client has none.
 */
struct rendezvous;

/* Listen on that address and port ("" is any address).  NULL on failure. */
struct rendezvous *rendezvous_create (const char *address,
                                      const char *port,
                                      struct slurmdl_error *err);
void rendezvous_destroy (struct rendezvous *r);

/* Answer until *ended, which a signal handler sets; SIGCHLD is delivered only
 * while this waits.
 */
void rendezvous_serve (struct rendezvous *r, const volatile int *ended);

#endif
