/* SPDX-License-Identifier: Apache-2.0 */
/* Check the container and the environment that an experiment file names. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* In which software the trials run (launcher/code); NULL: not given. */
struct software {
    char *image;   /* of a container: a file, a folder or a reference */
    char *runtime; /* one of container_runtimes */
    char **binds;
    char **options; /* for the runtime */
    char **modules; /* to load */
    char *conda;    /* name or folder of an environment */
    char *venv;     /* folder */
    struct {
        struct origin image, modules, conda, venv;
    } origins;
    char **activated; /* all variables with modules, conda or venv, NULL-ended;
                         NULL: those of this process */
    bool by_srun;     /* srun itself starts the container (pyxis) */
};

/* Names of the container runtimes in the order in which they are looked for,
 * NULL-ended; the first is srun's own (pyxis).
 */
extern const char *const container_runtimes[];

/* Whether a variable of the trials may have this name: "environment" itself
 * takes what is no name for a shell, 'strict' does not.
 */
bool variable_name_fits (const char *name, bool strict);

/* Check what the keys of "container" and "environment" of a group (the file, or
 * a step of a flow) say, without a look at the file system, and note where they
 * stand.
 */
void software_settings_check (struct experiment *e, config_setting_t *group, struct problems *p);
