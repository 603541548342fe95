/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of an experiment that `dl fork` creates. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Stored in the first entry of the decision log. */
struct fork_origin {
    char *folder;     /* prefix of the new folder's name FOLDER-0001; NULL: use the name */
    char *experiment; /* the original; NULL: this is not a fork */
    long trial;       /* of the original; 0: none */
    int64_t length;   /* of the checkpoint */
    char *file;       /* the checkpoint to copy; NULL once it is there */
    char **files;     /* files and folders that a training script left in its attempt's folder,
                         instead of a checkpoint; NULL-terminated, or NULL */
    char **shared;    /* the same in {trial_dir} */
    uid_t owner;      /* who may own these files (file_take_of()) */
};
