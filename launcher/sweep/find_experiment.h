/* SPDX-License-Identifier: Apache-2.0 */
/* Open the experiments, files and trials that the user names, and ask whether to trust them. */
#pragma once

#include "launcher/sweep/sweep.h"

struct command_line;
struct edit;
struct experiment;
struct problems;

/* Open the experiment that the user means: a folder, a name below --dir or, without a number, the
 * newest one of that name; NULL means the newest of all.  Returns 0; on failure complains and
 * returns an exit status.
 */
int open_experiment (const struct command_line *line, const char *name, struct sweep **sweep);

/* Whether that experiment exists; prints nothing. */
bool experiment_is_there (const struct command_line *line, const char *name);

/* Write the path of that experiment's folder; prints nothing.  Returns -1 with errno if the folder
 * of experiments cannot be read, or -1 with errno 0 if the experiment does not exist.
 */
int experiment_find (const struct command_line *line, const char *name, char *dir, size_t size);

/* Open an experiment in order to run its trials.  If others can write to it, and this user has not
 * run it in its present form, the user must agree on the terminal or with --trust.
 */
int open_to_run (const struct command_line *line, bool trust, const char *name,
                 struct sweep **sweep);

/* Ask that question about an open experiment.  Returns 0 if the user agrees; otherwise complains
 * and returns an exit status.  In a job, and in processes that dl starts, DL_PIN holds the answer.
 */
int ask_trust (struct sweep *sweep, bool trust);

/* Call 'f' for each folder below 'root' that contains the file 'mark', ordered by name, until 'f'
 * returns nonzero.  Returns what 'f' returned last, or -1 if 'root' cannot be read.
 */
int each_folder (const char *root, const char *mark, int (*f) (const char *dir, void *arg),
                 void *arg);

/* Find one of these folders by the rules of experiment_find(). */
int find_folder (const char *root, const char *mark, const char *name, char *dir, size_t size);

/* each_folder() for experiments. */
int each_experiment (const char *root, int (*f) (const char *dir, void *arg), void *arg);

/* Read an experiment file, apply 'edit' unless NULL, and read the earlier experiment that the file
 * names.  Returns 0; on failure complains and returns an exit status.
 */
int read_experiment (const char *path, const struct edit *edit, struct experiment **e);

/* Whether the user passed an existing experiment as 'path' where an experiment file is expected. If
 * so, prints the command that resumes it.
 */
bool refuse_experiment (const struct command_line *line, const char *path);

/* Parse the number of a trial.  Returns 0; on failure complains and returns an exit status. */
int parse_trial (const struct sweep *s, const char *text, long *n);

/* Adapt the umask to 'dir', so that in a folder that a group shares the group can also write the
 * files that dl creates.
 */
void share_umask (const char *dir);

/* fail() for a command that changes the experiment.  If permission was denied, name the owner. */
int fail_on (const struct sweep *s, const struct slurmdl_error *err);

/* If searcher.warm_start is set, add results from there to search.known: the finished trials of an
 * earlier experiment, or the results in a JSON file, as far as their points lie in this search
 * space.  Returns -1 after adding to 'p'.
 *
 * Reading an experiment file does not do this, because the other folder may be gone later: the
 * first log entry keeps a copy of the results.
 */
int warm_start (struct experiment *e, struct problems *p);
