/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment, as its file describes it. */
#pragma once

#include <libconfig.h>
#include <stddef.h>

#include "launcher/config/diagnostics.h"

/* Its parts are structs with a header each, which only those include who look
 * into one.  A copy of the struct shares the parts: to change a part of the
 * copy, point it to a changed copy of that part.
 */
struct experiment {
    char *file;     /* as given, for messages */
    char *dir;      /* folder in which the command runs */
    char *file_dir; /* of the experiment file, where 'dir' is its frozen copy;
                       else NULL */
    char *text;     /* what it says if it was edited, else NULL */
    char *name;
    char *description;
    char *entrypoint; /* a shell command, or NULL and ... */
    char **argv;      /* ... a command with its arguments */
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

/* An experiment of which nothing is set; experiment_destroy() frees it, its
 * parts and all that is in them.
 */
struct experiment *experiment_create (void);

/* Read the experiment file 'path', edit it if 'edit' is not NULL, and check it.
 * All problems are added to 'p'.
 *
 * Returns NULL on failure with errno EINVAL (see 'p'), ENOENT, ....
 */
struct edit;
struct experiment *experiment_read_edited (const char *path, const struct edit *edit,
                                           struct problems *p);

/* The same, with a text that was read from 'path'. */
struct experiment *experiment_read_text (const char *path, const char *text, size_t size,
                                         struct problems *p);
void experiment_destroy (struct experiment *e);

/* Parse a file in libconfig's syntax or, by its name, in YAML.  '*parts'
 * becomes how many files beside libconfig's own there were; NULL: it is an
 * experiment's own copy, where there may be none.
 */
int experiment_parse (config_t *cf, const char *path, int *parts, struct problems *p);

/* The folder of a file, free() it; of a pipe, the one where this process is.
 * NULL with errno: there is no such file, or its whole path cannot be found.
 */
char *file_folder (const char *path);
void file_folder_problem (struct problems *p, int e);

/* The group "environment". */
void experiment_read_environment (struct experiment *e, const config_setting_t *s,
                                  struct problems *p);
