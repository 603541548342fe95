/* SPDX-License-Identifier: Apache-2.0 */
/* Check the container and the environment that an experiment file names. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* The software environment of the trials (launcher/code).  NULL: not given. */
struct software {
    char *image;   /* of the container: a file, a folder or a reference */
    char *runtime; /* one of container_runtimes */
    char **binds;
    char **options; /* for the runtime */
    char **modules; /* to load */
    char *conda;    /* name or folder of an environment */
    char *venv;     /* folder */
    struct {
        struct origin image, modules, conda, venv;
    } origins;
    char **activated; /* the whole environment after activating modules, conda or venv,
                         NULL-terminated; NULL: that of this process */
    bool by_srun;     /* srun itself starts the container (pyxis) */
};

/* Names of the container runtimes in the order in which dl tries them, NULL-terminated.  The first
 * is srun's own (pyxis).
 */
extern const char *const container_runtimes[];

/* Whether an environment variable of the trials may have this name.  Without 'strict', accept names
 * that are not valid in a shell, as the group "environment" does.
 */
bool variable_name_fits (const char *name, bool strict);

/* Check the keys of "container" and "environment" in a group (a whole file, or a step of a flow),
 * and record their origins.  Does not access the file system.
 */
void software_settings_check (struct experiment *e, config_setting_t *group, struct problems *p);
