/* SPDX-License-Identifier: Apache-2.0 */
/* What a Jupyter server in a job says of itself. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "runtime/slurmdl.h"

struct notebook_server {
    char node[256]; /* name of the job's first node */
    char token[256];
    int port;
    bool network; /* it listens on the node's address, not on loopback */
};

/* Path of the folder, mode 0700, that has a folder for each job: 0700, too, and
 * made by the job.
 */
int notebooks_folder (char path[PATH_MAX], struct slurmdl_error *err);

/* Returns 0; 1 if there is no server yet; -1 with errno and 'err', EPERM if its
 * configuration switches the token off.
 */
int notebook_server_read (const char *folder,
                          long job,
                          struct notebook_server *s,
                          struct slurmdl_error *err);
