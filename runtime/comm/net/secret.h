/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step, which its processes have and nobody else. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/comm/net/handshake.h"

/* Derive the key for a purpose from DL_SECRET: the same in all processes of a
 * start of a job's step.  SECRET_INVALID: it is not 32 hexadecimal digits.
 */
enum secret_result { SECRET_INVALID = -1, SECRET_UNSET, SECRET_FOUND };
enum secret_result secret_of_environment (const char *purpose, unsigned char *key,
                                          struct slurmdl_error *err);

/* Write the key as 32 hexadecimal digits and '\0', and read it back; -1 if 'text'
 * is no key.
 */
enum { SECRET_DIGITS = 2 * HANDSHAKE_KEY };
void secret_print (const unsigned char *key, char *text);
int secret_parse (const char *text, unsigned char *key);
