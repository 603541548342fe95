/* SPDX-License-Identifier: Apache-2.0 */
/* dl model, dl ckpt, and dl export to the formats of other tools. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launcher/sweep/sweep.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

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

/* ---- read and write safetensors files (safetensors.c) ---- */

/* A file starts with the length of its header in 8 bytes.  The header is a JSON
 * object with the type, shape and offsets of each tensor.  The data follows without
 * gaps.
 */
struct safetensors {
    int fd;
    struct slurmdl_tensor *list; /* in the order of the data */
    uint64_t *offsets;           /* in the file */
    size_t n;
    int64_t step;   /* recorded by dl; -1 in files of other programs */
    bool own;       /* the file and its data belong to this user or root */
    uint32_t owner; /* user ID of the owner; see origin.h */
};

/* Open a file and validate all of its header; every byte of data must belong to
 * exactly one tensor.  Fails with EBADMSG if the file is invalid, or with ENOTSUP if a
 * checkpoint cannot represent a type, name or shape.
 */
int safetensors_open (struct safetensors *s, const char *path, struct slurmdl_error *err);
int safetensors_read (const struct safetensors *s, size_t i, void *data, struct slurmdl_error *err);
void safetensors_close (struct safetensors *s);

/* Write the tensors whose names begin with 'prefix', and strip the prefix.  The file
 * appears at 'path' only when it is complete.  Fails with ENOENT if no tensor matches.
 */
int safetensors_write (struct slurmdl_checkpoint *c, const char *prefix, const char *path,
                       struct slurmdl_error *err);
