/* SPDX-License-Identifier: Apache-2.0 */
/* The code of an experiment and the working folder of its trials. */
#pragma once

#include <stdbool.h>

/* Who uses the working folder of an attempt. */
enum working_folder {
    WORK_ATTEMPT, /* only this attempt */
    WORK_TRIAL,   /* only this attempt, which starts with the files of the previous one */
    WORK_SHARED,  /* all trials */
};

struct code_settings {
    bool freeze, local;
    char *path;
    char **include, **exclude;
    char *working_folder; /* as written in the file */
    enum working_folder work;

    /* Set only for a new experiment.  Borrowed; may be NULL. */
    const struct frozen_code *frozen;
};
