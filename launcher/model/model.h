/* SPDX-License-Identifier: Apache-2.0 */
/* dl model, dl ckpt, and dl export to the formats of other tools. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"

struct command_line;

/* ---- dl model: a registry of named, versioned checkpoints ---- */

/* Options of dl model. */
struct model_options {
    const char *models; /* registry directory; NULL: next to the experiments */
    int64_t step;       /* -1: not given */
    bool force;
    bool trust;
    bool json;
};

/* Returns an exit status from launcher/sys/messages.h. */
int cmd_model (const struct command_line *line);

/* Print the words that may follow 'dl model', for shell completion. */
void model_words (void);

/* ---- dl ckpt ---- */

/* Options of dl ckpt. */
struct ckpt_options {
    const char *format;
    const char *output;
    const char *prefix; /* of the tensor names */
    int64_t step;       /* -1: not given */
    bool trust;
    bool json;
};

/* Print the subcommands of 'dl ckpt', one per line. */
void ckpt_words (void);

/* Returns an exit status from launcher/sys/messages.h. */
int cmd_ckpt (const struct command_line *line);

/* ---- dl export with the Python package ---- */

/* Return whether slurmdl.export supports the format. */
bool tool_has_format (const char *name);

/* Export to the directory 'output', or to EXPERIMENT.FORMAT in the working directory
 * if that is NULL.  dl creates the directory; an existing one must belong to this
 * user.  With 'every' > 0, export new data every so many seconds until the experiment
 * ends.  Runs DL_PYTHON, or python3.
 *
 * Existing data is kept and not written again.  Returns an exit status, after printing
 * an error unless it is 0.
 */
int tool_export (struct sweep *s, const char *format, const char *output, double every);
