/* SPDX-License-Identifier: Apache-2.0 */
/* Run other programs, and capture their output. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Write the path of this executable, or "dl" if it cannot be determined. */
void own_program (char path[PATH_MAX]);

/* ---- a child process ---- */

/* Flush stdio and fork().  The child has no signals blocked, and gets 'death_signal' (0: none) when
 * this process ends.
 */
pid_t subprocess_fork (int death_signal);

/* Close all descriptors above 2, except 'kept' (-1: none). */
void subprocess_close_inherited (int kept);

/* How to start a program. */
struct spawn {
    char *const *argv; /* NULL-terminated; PATH is searched */
    const char *dir;   /* working directory; NULL: that of this process */
    int io[3];         /* descriptors that become its 0, 1 and 2; -1: /dev/null */
    bool new_group;    /* make it the leader of a new process group */
    int death_signal;  /* see subprocess_fork() */
    int *error;        /* gets the errno of exec(), or 0 if it succeeded; may be NULL */
    /* called in the child while signals are still blocked; may be NULL */
    void (*prepare) (const void *arg);
    const void *arg;
};

/* Start a program.  If it cannot be run, the child prints why to its standard error and exits with
 * 127 (no such program) or 126.
 *
 * Returns the pid, or -1 with errno.
 */
pid_t subprocess_spawn (const struct spawn *s);

/* Correct the errno of execvp().  It fails with EACCES if PATH contains a folder that this user may
 * not enter, even if no other folder has the program; this function then returns ENOENT.  Safe in a
 * child of vfork().
 */
int exec_error (const char *name, int error);

/* Wait for a child (-1: there is none).  Returns its exit status, or -1 if it did not exit. */
int subprocess_wait (pid_t pid);

/* Convert a wait status as a shell does: the exit status, or 128 + the signal. */
int shell_status (int status);

/* ---- run a command and wait for it ---- */

enum { COMMAND_ARGS = 260 };

struct command {
    const char *argv[COMMAND_ARGS];
    char *owned[COMMAND_ARGS];
    int n, nowned;
    unsigned timeout; /* seconds until it is killed; 0: never */
    bool keeps_job;   /* keep the environment variables of the job or step */
    bool no_errors;   /* discard its standard error */
};

/* Append "option=value", or just 'option' if 'value' is NULL.  In the latter case 'option' is not
 * copied, and must live as long as the command.
 */
void command_add (struct command *c, const char *option, const char *value);
void command_number (struct command *c, const char *option, long long value);
void command_free (struct command *c);

/* Run a command without the SLURM_* variables of the job or step that this process runs in, except
 * SLURM_CONF.  Captures standard output and standard error in 'buf', without the last newline; what
 * does not fit is dropped.  Kills the command once its output contains 'enough' (may be NULL).
 *
 * Returns its exit status, 127 if there is no such program, or -1 on failure.
 */
int command_run (struct command *c, const char *enough, char *buf, size_t size);

/* ---- environment variables of the job ---- */

/* Whether "NAME=VALUE" describes the job or step that this process runs in.  False for SLURM_CONF.
 */
bool variable_is_of_job (const char *variable);

/* Whether "NAME=VALUE" describes the step that this process runs in, and srun would read it as an
 * option for a new step.
 */
bool variable_is_of_step (const char *variable);

/* Remove the variables for which 'is' returns true from the environment. */
void variables_drop (bool (*is) (const char *variable));
