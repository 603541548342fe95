/* SPDX-License-Identifier: Apache-2.0 */
/* Where an experiment that `dl fork` makes comes from. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The first entry of the decision log has it. */
struct fork_origin {
    char *folder;     /* its folder's name is FOLDER-0001; NULL: NAME */
    char *experiment; /* NULL: it is no fork, ... */
    long trial;       /* ... 0: none, ... */
    int64_t length;   /* ... of the checkpoint ... */
    char *file;       /* ... that is to be taken; NULL when it is there */
    char **files;     /* or paths of files and folders that a script has left;
                         NULL-ended, or NULL */
    char **shared;    /* and of those in {trial_dir} */
    uid_t owner;      /* of whom they may be (file_take_of()) */
};
