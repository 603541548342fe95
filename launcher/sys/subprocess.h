/* SPDX-License-Identifier: Apache-2.0 */
/* Run another program and take what it prints. */
#ifndef LAUNCHER_SYS_SUBPROCESS_H
#define LAUNCHER_SYS_SUBPROCESS_H

#include <stddef.h>

enum { COMMAND_ARGS = 260 };

struct command {
    const char *argv[COMMAND_ARGS];
    char *owned[COMMAND_ARGS];
    int n, nowned;
    unsigned patience; /* s until it is killed, 0: for ever */
};

/* Add "option=value", or 'option' alone, which stays the caller's. */
void command_add (struct command *c, const char *option, const char *value);
void command_number (struct command *c, const char *option, long long value);
void command_free (struct command *c);

/* Run it without the variables SLURM_* of the job or step that this process
 * is in, SLURM_CONF excepted.  Its output, both streams, goes to buf, without
 * the last line's end.  Once that has the text 'enough' (if given) it is
 * ended.
 *
 * Returns its exit status; 127 if there is no such program; -1 on failure.
 */
int command_run (struct command *c, const char *enough, char *buf, size_t size);

/* Whether a variable tells of the job or the step that the process is in. */
int command_is_of_job (const char *variable);

#endif
