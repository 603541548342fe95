/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments and files that the user names. */
#pragma once

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

/* Open the experiment that the user means: a folder, or its name under
 * --dir, or without a number the newest of that name; NULL means the newest
 * of all.  On failure says so and returns an exit status, else 0.
 */
int open_experiment (const struct command_line *line, const char *name, struct sweep **sweep);

/* Whether there is one, without a word. */
bool experiment_is_there (const struct command_line *line, const char *name);

/* The folder of the experiment that is meant, without a word: -1 if there is
 * none, with errno 0, unless the folder of all cannot be read.
 */
int experiment_find (const struct command_line *line, const char *name, char *dir, size_t size);

/* To open one to run its trials: where others may write to it, and this user
 * does not work at it already as it is, a question on the terminal or --trust
 * must say that he wants that.
 */
int open_to_run (const struct command_line *line, bool trust, const char *name,
                 struct sweep **sweep);

/* The question alone: 0, or an exit status after a line.  In a job, and in what
 * a command starts, DL_PIN has the answer.
 */
int ask_trust (struct sweep *sweep, bool trust);

/* Call 'f' for each experiment folder under 'root', by name. */
int each_experiment (const char *root, int (*f) (const char *dir, void *arg), void *arg);

/* Read an experiment file, edited if 'edit' is not NULL, and the earlier
 * experiment that it names.  On failure says so and returns an exit status,
 * else 0.
 */
struct edit;
int read_experiment (const char *path, const struct edit *edit, struct experiment **e);

/* Whether 'path', which should be an experiment file, is an experiment that was
 * made: then says what goes on with it.
 */
bool refuse_experiment (const struct command_line *line, const char *path);

/* The number of a trial that 'text' is; else says so and returns an exit
 * status.
 */
int parse_trial (const struct sweep *s, const char *text, long *n);

/* What dl makes in a folder that a group shares is the group's, too: adapt the
 * process's umask to 'dir'.
 */
void share_umask (const char *dir);

/* As fail(), of a change to the experiment; where permission is denied it names
 * the owner.
 */
int fail_on (const struct sweep *s, const struct slurmdl_error *err);
