/* SPDX-License-Identifier: Apache-2.0 */
/* dl model and dl ckpt, and dl export for other tools. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

/* ---- dl model: a registry of named, versioned checkpoints ---- */

/* Options of dl model. */
struct model_options {
    const char *models; /* folder of the registry, NULL: beside the experiments */
    int64_t step;       /* -1: not given */
    bool force;
    bool trust;
    bool json;
};

/* The command, which returns an exit status, and its words for completion. */
int cmd_model (const struct command_line *line);

/* Print the words that may follow, for completion. */
void model_words (void);

/* ---- dl ckpt ---- */

/* Options of dl ckpt. */
struct ckpt_options {
    const char *format;
    const char *output;
    const char *prefix; /* of the names of tensors */
    int64_t step;       /* -1: not given */
    bool trust;
    bool json;
};

/* Print the subcommands of 'dl ckpt', a line each. */
void ckpt_words (void);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_ckpt (const struct command_line *line);

/* ---- dl export with the Python package ---- */

/* Whether slurmdl.export has the format. */
bool tool_has_format (const char *name);

/* Export to the folder 'output', which is made, or is this user's own; NULL:
 * EXPERIMENT.FORMAT here.  With 'every' > 0 look for what is new in so many
 * seconds until the experiment has ended.  DL_PYTHON or python3 does it.
 *
 * What is there already is kept, and not written again.  Returns an exit
 * status, after a line if it is not 0.
 */
int tool_export (struct sweep *s, const char *format, const char *output, double every);
