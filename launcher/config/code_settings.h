/* SPDX-License-Identifier: Apache-2.0 */
/* The code of an experiment, and the folder in which its trials run. */
#pragma once

#include <stdbool.h>

/* Whose the folder is in which an attempt runs. */
enum working_folder {
    WORK_ATTEMPT, /* its own */
    WORK_TRIAL,   /* its own, with the files of the attempt before */
    WORK_SHARED,  /* that of all trials */
};

struct code_settings {
    bool freeze, local;
    char *path;
    char **include, **exclude;
    char *working_folder; /* as the file has it */
    enum working_folder work;

    /* Of a new experiment; borrowed, NULL: none. */
    const struct frozen_code *frozen;
};
