/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#ifndef LAUNCHER_SYS_USER_H
#define LAUNCHER_SYS_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* Name of the user, the number of one that has none; good until the next call.
 */
const char *user_name (void);

/* Whether the group has nobody else: many systems give each user one of his
 * own, of his name.
 */
bool user_has_group_alone (gid_t gid);

#endif
