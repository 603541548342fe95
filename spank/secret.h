/* SPDX-License-Identifier: Apache-2.0 */
/* DL_SECRET: 128 bits that the processes of a step have, and nobody else. */
#pragma once

#include <stdbool.h>

enum { SECRET_TEXT = 33 };

/* 128 random bits as hexadecimal digits; -1 with errno. */
int secret_random (char text[SECRET_TEXT]);

/* In srun, before the environment is sent.  'wanted': one is made for this
 * step, for all components of a heterogeneous job; else that of a step that
 * this srun is in is forgotten, as it is not this step's.
 */
void plugin_secret (bool wanted);
