/* SPDX-License-Identifier: Apache-2.0 */
/* What one process of a step posts for the others with srun. */
#pragma once

#include <poll.h>
#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/notice.h"

/* The plugin's process beside srun (spank/rollcall.c) keeps a line for each
 * name, for processes that do not see a notice of the poster's.  SLURM_DL_BOARD and
 * SLURM_LAUNCH_NODE_IPADDR say where it is.  It is no secret, and nothing
 * depends on its honesty: a line carries a code under the step's key, and what
 * has none is not taken.
 */
bool board_is_there (void);

enum { BOARD_LINE = NOTICE_TEXT + 128 };

struct board_place {
    char address[64], token[40];
    int port;
};

/* A line that stays posted as long as the connection, which is made again if it
 * ends.  All zero: none.
 */
struct board_post {
    struct board_place at;
    bool is_on, is_posted;
    int fd; /* -1: not connected */
    double again;
    struct slurmdl_error why; /* it is not posted */
    char line[BOARD_LINE];
};

/* Post 'text', a line, instead of what was posted before. */
void board_post (struct board_post *b, const unsigned char *key, const char *name,
                 const char *text);

/* For poll(2); and after it, at least once a second. */
struct pollfd board_poll (const struct board_post *b);
void board_serve (struct board_post *b);

/* Wait until it is posted. */
void board_wait (struct board_post *b, double deadline);

/* Take it back; errno is kept. */
void board_end (struct board_post *b);

/* Post it for 30 s, or until something else is posted. */
int board_keep (const unsigned char *key, const char *name, const char *text, double deadline);

/* Read what was posted.  -1: ENOENT, there is nothing yet; EBADMSG, it is not
 * of whoever has the key; or srun does not answer.
 */
int board_get (const unsigned char *key, const char *name, char text[NOTICE_TEXT], double deadline,
               struct slurmdl_error *err);
