/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that a process of a step posts at srun for the others. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/notice.h"

/* The plugin's process beside srun (spank/rollcall.c) keeps a line for each
 * name, for processes that cannot see the poster's notice.  SLURM_DL_BOARD and
 * SLURM_LAUNCH_NODE_IPADDR say where it listens.  The lines are not secret, and
 * nothing depends on its honesty: each line carries a MAC under the step's key,
 * and a line without a valid one is rejected.
 */
bool board_is_there (void);

enum { BOARD_LINE = NOTICE_TEXT + 128 };

struct board_place {
    char address[64], token[40];
    int port;
};

/* A line that stays posted as long as the connection, which is remade if it
 * ends.  All zero: none.
 */
struct board_post {
    struct board_place at;
    bool is_on, is_posted;
    int fd; /* -1: not connected */
    double again;
    struct slurmdl_error why; /* not posted yet */
    char line[BOARD_LINE];
};

/* Post 'text', a line, replacing the previous one. */
void board_post (struct board_post *b, const unsigned char *key, const char *name,
                 const char *text);

/* For poll(2); call the next function after it, at least once a second. */
struct pollfd board_poll (const struct board_post *b);
void board_serve (struct board_post *b);

/* Wait until it is posted. */
void board_wait (struct board_post *b, double deadline);

/* Remove it; keeps errno. */
void board_end (struct board_post *b);

/* Post a line for 30 s, or until another one of that name. */
int board_keep (const unsigned char *key, const char *name, const char *text, double deadline);

/* Read a posted line.  Returns -1: ENOENT, there is none yet; EBADMSG, it has
 * no valid MAC; or srun does not answer.
 */
int board_get (const unsigned char *key, const char *name, char text[NOTICE_TEXT], double deadline,
               struct slurmdl_error *err);
