/* SPDX-License-Identifier: Apache-2.0 */
/* The options of all commands: the only list of them. */
#pragma once

#include <stddef.h>

/* A WORD is kept as it was written, "--nodes=2". */
enum opt_type {
    OPT_STRING,
    OPT_LIST,
    OPT_WORD,
    OPT_INT,
    OPT_COUNT, /* an integer that is not 0 */
    OPT_REAL,
    OPT_FLAG
};

/* Parsing, the environment, --help and completion are made from it, and
 * tests/launcher/options.t compares the manual with it.
 */
struct opt {
    const char *name;    /* NULL: the end of a group */
    const char *arginfo; /* NULL: a flag */
    const char *env;     /* variable that gives a default, or NULL */
    const char *help;
    enum opt_type type;
    size_t offset; /* in struct settings */
    char letter;   /* a short name, 0: none */
};

/* The options of a command are several groups, NULL-ended: 'sweep' of those
 * that only need to find an experiment, 'mark' of archive, label and exclude.
 */
extern const struct opt *const options_run[];
extern const struct opt *const options_preview[];
extern const struct opt *const options_try[];
extern const struct opt *const options_fork[];
extern const struct opt *const options_import[];
extern const struct opt *const options_flow[];
extern const struct opt *const options_elastic[];
extern const struct opt *const options_shell[];
extern const struct opt *const options_notebook[];
extern const struct opt *const options_tensorboard[];
extern const struct opt *const options_search_server[];
extern const struct opt *const options_worker[];
extern const struct opt *const options_ls[];
extern const struct opt *const options_watch[];
extern const struct opt *const options_show[];
extern const struct opt *const options_best[];
extern const struct opt *const options_failures[];
extern const struct opt *const options_compare[];
extern const struct opt *const options_plot[];
extern const struct opt *const options_top[];
extern const struct opt *const options_logs[];
extern const struct opt *const options_wait[];
extern const struct opt *const options_monitor[];
extern const struct opt *const options_debug[];
extern const struct opt *const options_resume[];
extern const struct opt *const options_retry[];
extern const struct opt *const options_continue[];
extern const struct opt *const options_sweep[];
extern const struct opt *const options_scale[];
extern const struct opt *const options_mark[];
extern const struct opt *const options_export[];
extern const struct opt *const options_report[];
extern const struct opt *const options_ckpt[];
extern const struct opt *const options_model[];
extern const struct opt *const options_gc[];
extern const struct opt *const options_reproduce[];
extern const struct opt *const options_rm[];
extern const struct opt *const options_log[];
extern const struct opt *const options_check[];
extern const struct opt *const options_doctor[];
extern const struct opt *const options_env[];
