/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder for each unit test. */
#pragma once

#include "tests/unit.h"

static char dir[64];

static inline int make_dir (void **state)
{
    snprintf (dir, sizeof (dir), "/tmp/dl-unit.XXXXXX");
    return mkdtemp (dir) ? 0 : -1;
}

static inline int remove_dir (void **state)
{
    char cmd[128];

    snprintf (cmd, sizeof (cmd), "rm -rf %s", dir);
    return system (cmd);
}

/* Return the path of a file in the folder; valid until the next call. */
static inline const char *in_dir (const char *name)
{
    static char path[128];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return path;
}

#define FOLDER_CASE(f) CASE_WITH (f, make_dir, remove_dir)
