/* SPDX-License-Identifier: Apache-2.0 */
/* log_policies: what to do if a line in a failed attempt's log matches a pattern. */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

enum log_policy_action {
    POLICY_LABEL, /* only report the name of the policy */
    POLICY_EXCLUDE_NODE,
    POLICY_CANCEL_RETRIES,
};

struct log_policy {
    char *name;
    char *pattern; /* POSIX extended regular expression; "": disabled */
    enum log_policy_action action;
};

enum { POLICY_LINE = 128 };

/* Returns -1 with 'err' if the expression is invalid. */
int log_policy_check (const char *pattern, struct slurmdl_error *err);

/* Search the last 64 MiB of the log at 'path', and the first 8 KiB of each line.  After 10 s, skip
 * to the last MiB.  Writes to found[i] a printable excerpt of the first line that matches list[i],
 * or "" if no line does.
 *
 * Returns the number of policies that matched, or -1 if the log cannot be read.
 */
int policies_search (const struct log_policy *list, size_t n, const char *path,
                     char (*found)[POLICY_LINE]);

/* Turn 'text' into printable UTF-8 in place, as the decision log requires. */
void policy_text (char *text);
