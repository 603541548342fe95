/* SPDX-License-Identifier: Apache-2.0 */
/* What lines in a failed attempt's log mean: log_policies. */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

enum log_policy_action {
    POLICY_LABEL, /* only name what is found */
    POLICY_EXCLUDE_NODE,
    POLICY_CANCEL_RETRIES,
};

struct log_policy {
    char *name;
    char *pattern; /* POSIX extended regular expression; "": switched off */
    enum log_policy_action action;
};

enum { POLICY_LINE = 128 };

/* Returns -1 with 'err' filled if the expression is not valid. */
int policy_check (const char *pattern, struct slurmdl_error *err);

/* Search the last 64 MiB of the log at 'path', of each line the first 8 KiB;
 * after 10 s only its last MiB is still looked at.
 * found[i] is then an excerpt, as printable text, of the first line that
 * list[i] matches, "" where there is none.
 *
 * Returns how many policies matched, -1 if the log cannot be read.
 */
int policies_search (const struct log_policy *list, size_t n, const char *path,
                     char (*found)[POLICY_LINE]);

/* Make printable UTF-8 of 'text', as the decision log needs it. */
void policy_text (char *text);
