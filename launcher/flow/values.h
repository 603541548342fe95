/* SPDX-License-Identifier: Apache-2.0 */
/* What the {names} of a step stand for. */
#pragma once

#include "launcher/flow/state.h"

/* One task of a step. */
struct flow_scope {
    const struct flow_run *r;
    const struct flow_step *s;
    long task;
    long start;          /* the number of its intent */
    long attempt;        /* its number */
    const char *folder;  /* of its attempt */
    const char *outcome; /* of on_exit: "completed" or "failed" ... */
    const char *failed;  /* ... and the steps that failed, "a b" */
};

/* 'text' with the values in it, lists with blanks between; the caller frees
 * it.  NULL with 'err'.
 */
char *flow_text (const struct flow_scope *c, const char *text, struct slurmdl_error *err);

/* The command and the variables that it needs, NULL-ended lists that the caller
 * frees (strings_free()).  No value is ever text of a shell: there it is the
 * value of a variable.  Returns -1 with 'err'.
 */
int flow_command (const struct flow_scope *c, char ***argv, char ***variables,
                  struct slurmdl_error *err);

/* Whether the step's condition holds: 1, 0, or -1 with 'err'. */
int flow_condition (const struct flow_scope *c, struct slurmdl_error *err);

/* The file of an output, absolute; -1 with 'err'. */
int flow_output_path (const struct flow_scope *c, const struct flow_output *o, char path[PATH_MAX],
                      struct slurmdl_error *err);
