/* SPDX-License-Identifier: Apache-2.0 */
/* Find the experiments and files that the user names. */
#pragma once

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

/* Open the experiment that the user means: a folder, a name below --dir, or, without a number, the
 * newest of that name; NULL means the newest of all.  On failure complains and returns an exit
 * status, else 0.
 */
int open_experiment (const struct command_line *line, const char *name, struct sweep **sweep);

/* Whether there is one; prints nothing. */
bool experiment_is_there (const struct command_line *line, const char *name);

/* The folder of the experiment that is meant; prints nothing.  -1 if there is none, with errno 0
 * unless the folder of experiments cannot be read.
 */
int experiment_find (const struct command_line *line, const char *name, char *dir, size_t size);

/* Open one in order to run its trials.  If others may write to it, and this user has not run it in
 * its present form, the user must agree on the terminal or by --trust.
 */
int open_to_run (const struct command_line *line, bool trust, const char *name,
                 struct sweep **sweep);

/* Only ask: 0, or an exit status after complaining.  In a job, and in processes that dl starts,
 * DL_PIN has the answer.
 */
int ask_trust (struct sweep *sweep, bool trust);

/* Call 'f', until it returns nonzero, for each folder under 'root' that has the file 'mark', by
 * name; return what it returned, or -1 if 'root' cannot be read.
 */
int each_folder (const char *root, const char *mark, int (*f) (const char *dir, void *arg),
                 void *arg);

/* Find such a folder as experiment_find() does. */
int find_folder (const char *root, const char *mark, const char *name, char *dir, size_t size);

/* The same for experiments. */
int each_experiment (const char *root, int (*f) (const char *dir, void *arg), void *arg);

/* Read an experiment file, edited if 'edit' is not NULL, and the earlier experiment that it names.
 * On failure complains and returns an exit status, else 0.
 */
struct edit;
int read_experiment (const char *path, const struct edit *edit, struct experiment **e);

/* Whether 'path', which should be an experiment file, is an existing experiment; if so, prints the
 * command that resumes it.
 */
bool refuse_experiment (const struct command_line *line, const char *path);

/* Parse the number of a trial; on failure complains and returns an exit status. */
int parse_trial (const struct sweep *s, const char *text, long *n);

/* Files that dl creates in a folder that a group shares are the group's, too: adapt the umask to
 * 'dir'.
 */
void share_umask (const char *dir);

/* As fail(), for a change to the experiment; if permission is denied, it names the owner. */
int fail_on (const struct sweep *s, const struct slurmdl_error *err);
