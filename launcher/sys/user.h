/* SPDX-License-Identifier: Apache-2.0 */
/* The user that runs this process. */
#ifndef LAUNCHER_SYS_USER_H
#define LAUNCHER_SYS_USER_H

/* Name of the user, the number of one that has none; good until the next call.
 */
const char *user_name (void);

#endif
