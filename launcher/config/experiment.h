/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment as described by its file. */
#pragma once

#include <libconfig.h>
#include <stddef.h>

#include "launcher/config/diagnostics.h"

/* Each part has a header of its own; include only those you use.  A shallow copy of the struct
 * shares the parts: to change a part of the copy, point it to a modified copy of that part.
 */
struct experiment {
    char *file;     /* as given, for messages */
    char *dir;      /* working directory of the command */
    char *file_dir; /* folder of the experiment file if 'dir' is its frozen copy, else NULL */
    char *text;     /* the edited text, or NULL if the file was not edited */
    char *name;
    char *description;
    char *entrypoint; /* a shell command; NULL: use 'argv' */
    char **argv;      /* a command and its arguments */
    struct origin entrypoint_origin;
    char **variables; /* NAME=VALUE, added to the command's environment */

    struct space *space;                   /* config/space.h */
    struct search_settings *search;        /* config/search_settings.h */
    struct metric_settings *metric;        /* config/metric_settings.h */
    struct resources *resources;           /* config/resources.h */
    struct plugin_settings *plugin;        /* config/plugin_settings.h */
    struct software *software;             /* config/software_settings.h */
    struct code_settings *code;            /* config/code_settings.h */
    struct checkpoint_policy *checkpoints; /* config/checkpoint_policy.h */
    struct failure_settings *failures;     /* config/failure_settings.h */
    struct notify_settings *notify;        /* config/notify_settings.h */
    struct worker_settings *worker;        /* config/worker_settings.h */
    struct job_settings *job;              /* config/job_settings.h */
    struct fork_origin *fork;              /* config/fork_origin.h */
};

/* Create an experiment with nothing set.  experiment_destroy() frees it with all its parts. */
struct experiment *experiment_create (void);

/* Read the experiment file 'path', edit it if 'edit' is not NULL, and check it.  Adds every problem
 * to 'p'.
 *
 * Returns NULL on failure, with errno EINVAL (see 'p'), ENOENT, etc.
 */
struct edit;
struct experiment *experiment_read_edited (const char *path, const struct edit *edit,
                                           struct problems *p);

/* The same for a text that the caller has already read from 'path'. */
struct experiment *experiment_read_text (const char *path, const char *text, size_t size,
                                         struct problems *p);
void experiment_destroy (struct experiment *e);

/* Parse 'path' as YAML if its name says so, else as libconfig.  '*parts' becomes the number of
 * included files, or 1 for YAML.  Pass NULL for an experiment's own copy, which is a single
 * libconfig file.
 */
int experiment_parse (config_t *cf, const char *path, int *parts, struct problems *p);

/* The folder of a file, or the current directory for a pipe.  The caller frees it.  Returns NULL
 * with errno set if there is no such file or its absolute path cannot be determined.
 */
char *file_folder (const char *path);
void file_folder_problem (struct problems *p, int e);

/* Read the group "environment". */
void experiment_read_environment (struct experiment *e, const config_setting_t *s,
                                  struct problems *p);
