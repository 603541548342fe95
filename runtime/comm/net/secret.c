/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step, known only to its processes. */
#include "runtime/comm/net/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"

void secret_print (const unsigned char *key, char *text)
{
    for (int i = 0; i < HANDSHAKE_KEY; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", key[i]);
}

static int digit (char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int secret_parse (const char *text, unsigned char *key)
{
    unsigned char any = 0;

    for (int i = 0; i < HANDSHAKE_KEY; i++, text += 2) {
        int high = digit (text[0]);
        int low = high < 0 ? -1 : digit (text[1]);
        if (low < 0)
            return -1;
        any |= key[i] = (unsigned char)(high << 4 | low);
    }
    return *text || !any ? -1 : 0;
}

/* Mix in the job and step: the same DL_SECRET then gives different keys in
 * different steps, and in a job that was requeued.
 */
static void derive_key (const unsigned char *secret, const char *purpose, unsigned char *key)
{
    const char *step = step_id ();
    char text[256];

    snprintf (text, sizeof (text), "%.32s %.64s %.16s %.64s", purpose,
              *step ? environment_text ("SLURM_JOB_ID", "") : "",
              *step ? environment_text ("SLURM_RESTART_COUNT", "") : "", step);
    handshake_derive (secret, text, key, HANDSHAKE_KEY);
}

enum secret_result secret_of_environment (const char *purpose, unsigned char *key,
                                          struct slurmdl_error *err)
{
    const char *text = environment_text ("DL_SECRET", "");
    unsigned char secret[HANDSHAKE_KEY];

    if (!*text)
        return SECRET_UNSET;
    if (secret_parse (text, secret) < 0) {
        errno = EINVAL;
        return errorf (err, "DL_SECRET is not 32 hexadecimal digits: unset it, or set it to the "
                            "output of `openssl rand -hex 16`, the same for all ranks");
    }
    derive_key (secret, purpose, key);
    handshake_forget (secret, sizeof (secret));
    return SECRET_FOUND;
}
