/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step, which its processes have and nobody else. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/net/handshake.h"

/* The key for a purpose, the same in all processes with that DL_SECRET, job,
 * start of it and step.  Returns 1; 0: DL_SECRET is not set; -1: it is not 32
 * hexadecimal digits.
 */
int secret_of_environment (const char *purpose, unsigned char *key, struct slurmdl_error *err);

/* The key as 32 hexadecimal digits and '\0'; and back, -1: that it is not. */
enum { SECRET_DIGITS = 2 * HANDSHAKE_KEY };
void secret_print (const unsigned char *key, char *text);
int secret_parse (const char *text, unsigned char *key);
