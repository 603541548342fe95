/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of ranks: "chief:1,ps:2,worker:*". */
#pragma once

#include <stddef.h>

/* Pure functions that use only libc and do not allocate memory. */

/* clang-format off */
enum role { ROLE_CHIEF, ROLE_MASTER, ROLE_WORKER, ROLE_PS, ROLE_SERVER,
            ROLE_SCHEDULER, ROLE_EVALUATOR, ROLES };
/* clang-format on */

extern const char *const role_names[]; /* by enum role, ended by NULL */

/* The roles in the order given, which is that of the ranks. */
struct rank_roles {
    int n;
    struct {
        enum role role;
        long count; /* -1: '*', the remaining ranks */
    } row[ROLES];
};

/* Read ROLE:COUNT[,ROLE:COUNT]...  Each role may occur once; chief, master, scheduler and evaluator
 * have one rank; one count may be '*'.  Returns 0, or -1 with errno EINVAL and the reason in 'why'
 * (may be NULL).
 */
int roles_parse (const char *text, struct rank_roles *r, char *why, size_t size);

/* Replace '*' by the number of remaining ranks.  Returns -1 with errno EINVAL and the reason if the
 * roles do not add up to 'ranks' ranks.
 */
int roles_resolve (struct rank_roles *r, long ranks, char *why, size_t size);

/* The role of a rank, and its index among the ranks with this role. */
enum role roles_of (const struct rank_roles *r, long rank, long *index);

/* The number of ranks with a role; sets *first, unless NULL, to the first one. */
long roles_count (const struct rank_roles *r, enum role role, long *first);
