/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of ranks: "chief:1,ps:2,worker:*". */
#pragma once

#include <stddef.h>

/* Pure functions over libc, without allocation. */

/* clang-format off */
enum role { ROLE_CHIEF, ROLE_MASTER, ROLE_WORKER, ROLE_PS, ROLE_SERVER,
            ROLE_SCHEDULER, ROLE_EVALUATOR, ROLES };
/* clang-format on */

extern const char *const role_names[]; /* by enum role, ended by NULL */

/* In the order in which they were written, which is that of the ranks. */
struct rank_roles {
    int n;
    struct {
        enum role role;
        long count; /* -1: '*', what the others leave */
    } row[ROLES];
};

/* Read ROLE:COUNT[,ROLE:COUNT]...  A role is written once; chief, master,
 * scheduler and evaluator have one rank; one count may be '*'.  Returns 0, or
 * -1 with errno EINVAL and why in 'why' (NULL allowed).
 */
int roles_parse (const char *text, struct rank_roles *r, char *why, size_t size);

/* Put the number of ranks in the place of '*'.  Returns -1 with errno EINVAL,
 * and why, if the roles are not those of 'ranks' ranks.
 */
int roles_resolve (struct rank_roles *r, long ranks, char *why, size_t size);

/* The role of a rank and its index among the ranks that have it. */
enum role roles_of (const struct rank_roles *r, long rank, long *index);

/* How many ranks have the role; in *first, if not NULL, the first of them. */
long roles_count (const struct rank_roles *r, enum role role, long *first);
