/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step, which its processes have and nobody else: in their
 * environment, or in a file of the user's.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/net/handshake.h"

/* The key for a purpose, the same in all processes with that DL_SECRET, job
 * and step.  Returns 1; 0: DL_SECRET is not set; -1: it is not 32 hexadecimal
 * digits.
 */
int secret_of_environment (const char *purpose,
                           unsigned char *key,
                           struct slurmdl_error *err);

/* The key as 32 hexadecimal digits and '\0'; and back, -1: that it is not. */
enum { SECRET_DIGITS = 2 * HANDSHAKE_KEY };
void secret_print (const unsigned char *key, char *text);
int secret_parse (const char *text, unsigned char *key);

/* The file of that name in ~/.slurm-dl, a folder and a file that only the user
 * may read.  One process makes it, or takes what an earlier one has left; the
 * others look it up, with ENOENT until it is there.
 */
enum { SECRET_NAME = 256 };
int secret_make (const char *name,
                 unsigned char *key,
                 struct slurmdl_error *err);
int secret_look_up (const char *name,
                    unsigned char *key,
                    struct slurmdl_error *err);
void secret_remove (const char *name); /* errno is kept */

/* A name in 'buf' for the file of this step, of what listens at that port; -1:
 * this is no step.
 */
int secret_step_name (char *buf, size_t size, int port);
