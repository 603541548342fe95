/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a rank is, and whether it has ended. */
#ifndef RUNTIME_BASE_PROCESS_ID_H
#define RUNTIME_BASE_PROCESS_ID_H

#include <stdbool.h>
#include <stdint.h>

struct member {
    uint64_t nonce; /* drawn by lot */
    uint64_t pidns, start;
    int64_t pid;
    char boot[40];
};

/* This process. */
void member_describe (struct member *m);

/* Only of a process that 'self' could see it can be told; else false. */
bool member_has_ended (const struct member *m, const struct member *self);

#endif
