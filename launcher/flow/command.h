/* SPDX-License-Identifier: Apache-2.0 */
/* dl flow: steps that wait for each other. */
#pragma once

#include "launcher/sys/settings.h"

/* The command, which returns an exit status, and its words for completion. */
int cmd_flow (const struct settings *st);
void flow_words (void);

/* Its subcommands; each returns an exit status. */
int flow_run (const struct settings *st);
int flow_resume (const struct settings *st);
int flow_stop (const struct settings *st);
int flow_ls (const struct settings *st);
int flow_show (const struct settings *st);
int flow_graph (const struct settings *st);

/* In a job, with the arguments of job.sh: a task, the rest of the submission,
 * and the next run of one that recurs.
 */
int flow_step (const struct settings *st);
int flow_rest (const struct settings *st);
int flow_next (const struct settings *st);

/* flow_read() of a file that the user names; NULL with errno, after a line for
 * each mistake.  With 'st' its containers and environments must be there.
 */
struct flow;
struct flow *flow_file_read (const char *path, char *const *given, const struct settings *st);
