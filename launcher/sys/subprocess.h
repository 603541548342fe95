/* SPDX-License-Identifier: Apache-2.0 */
/* Start other programs, and take what they print. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write the path of this program, "dl" if the system does not know it. */
void own_program (char path[PATH_MAX]);

/* ---- a child process ---- */

/* fork(): a child that gets 'death_signal' (0: none) when this process ends
 * and has no signal blocked.  What stdio holds is flushed before.
 */
pid_t subprocess_fork (int death_signal);

/* How a program is started. */
struct spawn {
    char *const *argv; /* NULL-ended; found by PATH */
    const char *dir;   /* where it runs; NULL: here */
    int io[3];         /* descriptors for its 0, 1 and 2; -1: /dev/null */
    bool new_group;    /* it leads a process group of its own */
    int death_signal;  /* as of subprocess_fork() */
    int *error;        /* gets the errno of exec(), 0 if it ran; may be NULL */
    /* called in the child, with the signals still blocked; NULL: nothing */
    void (*prepare) (const void *arg);
    const void *arg;
};

/* Start it.  If the program cannot be run, the child prints why on its
 * standard error; its exit status is 127 if there is no such program, else 126.
 *
 * Returns its pid, -1 with errno.
 */
pid_t subprocess_spawn (const struct spawn *s);

/* What execvp()'s errno means: ENOENT instead of EACCES if the only reason for
 * that is a folder of PATH that this user may not enter, and no other one has
 * the program.  A child of vfork() may call it.
 */
int exec_error (const char *name, int error);

/* Wait for a child (-1: there is none).  Returns its exit status, -1 if it did
 * not end by itself.
 */
int subprocess_wait (pid_t pid);

/* What a shell makes of the status of waitpid(): the exit status, or 128 + the signal. */
int shell_status (int status);

/* ---- a command that runs to its end ---- */

enum { COMMAND_ARGS = 260 };

struct command {
    const char *argv[COMMAND_ARGS];
    char *owned[COMMAND_ARGS];
    int n, nowned;
    unsigned timeout; /* s until it is killed, 0: never */
    bool keeps_job;   /* with the variables of the job or step */
    bool no_errors;   /* its standard error is dropped */
};

/* Add "option=value", or 'option' alone, which stays the caller's. */
void command_add (struct command *c, const char *option, const char *value);
void command_number (struct command *c, const char *option, long long value);
void command_free (struct command *c);

/* Run it without the variables SLURM_* of the job or step that this process
 * is in, SLURM_CONF excepted.  Its output, both streams, goes to buf, without
 * the last line's end; what does not fit is dropped.  Once that has the text
 * 'enough' (if given) it is ended.
 *
 * Returns its exit status; 127 if there is no such program; -1 on failure.
 */
int command_run (struct command *c, const char *enough, char *buf, size_t size);

/* ---- variables of the job ---- */

/* Whether "NAME=VALUE" describes the job or step that this process is in;
 * SLURM_CONF does not.
 */
bool variable_is_of_job (const char *variable);

/* Whether srun would take it for an option of a new step, because it describes
 * the step that the new one is started from.
 */
bool variable_is_of_step (const char *variable);

/* Remove from 'environ' the variables of which 'is' is true. */
void variables_drop (bool (*is) (const char *variable));
