/* SPDX-License-Identifier: Apache-2.0 */
/* Network variables of NCCL, UCX, libfabric and Open MPI: site profiles, and checks of the
 * variables that a user exported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/network/fabric.h"

/* This folder: the network of a node, and the variables that tune it.  It uses only libc and does
 * not allocate memory, because the plugin includes it.
 */

enum nccl_class {
    NCCL_UNKNOWN, /* not in the table */
    NCCL_SYSTEM,  /* system configuration: a profile may set it */
    NCCL_DEBUG,   /* documented under "Debugging" */
    NCCL_GONE     /* has no effect: removed, or never existed */
};

struct nccl_variable {
    const char *name;
    enum nccl_class class;
    const char *what; /* its effect; DEBUG: its cost; GONE: its replacement */
};

/* The documented variables of NCCL 2.30, and a few of other libraries; ended by a NULL name. */
extern const struct nccl_variable nccl_variables[];

/* Names that NCCL reads and that are never reported: its manual does not list them, or
 * (NCCL_RAS_ADDR) the jobs of a node must differ in it.  Ended by NULL.
 */
extern const char *const nccl_undocumented[];

/* The row of 'name', which may end at '='; NULL if there is none. */
const struct nccl_variable *nccl_find (const char *name);

/* Whether a nonempty value of the variable is invalid; 'name' may end at '='.  Unknown variables
 * are never invalid.
 */
enum { NCCL_WHY = 128 };
bool nccl_value_is_wrong (const char *name, const char *value, char why[static NCCL_WHY]);

/* The variable of which 'name' may be a misspelling, or NULL. */
const char *nccl_nearest (const char *name);

/* ---- profiles ---- */

enum { NCCL_NAME = 48, NCCL_VALUE = 256, NCCL_SETTINGS = 48 };
enum { NCCL_PROFILE_BYTES = 16384, NCCL_PROFILE_NAME = 32, NCCL_LINE = 320 };

struct nccl_setting {
    char name[NCCL_NAME];
    char value[NCCL_VALUE];
};

struct nccl_profile {
    struct nccl_setting settings[NCCL_SETTINGS];
    int n;
};

/* Called with one line for each setting that is rejected. */
typedef void nccl_say_f (void *arg, const char *line);

/* Returns 0 if 'name' is valid for a profile: 1 to 32 letters, digits, '_', '-' and '.', not
 * beginning with '.'; otherwise -1 with errno EINVAL.
 */
int nccl_check_name (const char *name);

/* Add the lines NAME=VALUE of a file to 'p'.  '#' begins a comment line; white space around name
 * and value, and double quotes around the value, are removed.  A line is reported as "FILE:LINE:
 * why" and skipped if its variable is not for system configuration or is set twice, if its value is
 * invalid, or if it has bytes other than printable ASCII.  Returns the number of lines skipped, or
 * -1 with errno if the file cannot be read, is not a regular file (EINVAL), has more than
 * NCCL_PROFILE_BYTES (EFBIG), or is world-writable (EPERM).
 */
int nccl_read (const char *path, struct nccl_profile *p, nccl_say_f *say, void *arg);

/* Choose the profile for --dl-nccl=NAME on a node with the fabric f.  "auto" is the profile in the
 * folder 'dir' with the name of the fabric, or else nccl_defaults() without the variables that NCCL
 * itself reads from the file 'conf' (/etc/nccl.conf).  'say' may be NULL.
 */
void nccl_choose (const char *dir, const char *conf, const char *name, const struct fabric *f,
                  struct nccl_profile *p, nccl_say_f *say, void *arg);

/* DIR/NAME.conf */
enum { NCCL_PATH = 320 };
void nccl_path (char path[static NCCL_PATH], const char *dir, const char *name);

/* Set its variables, and list their names in DL_NCCL_SET. */
struct variables;
void nccl_set (const struct variables *v, const struct nccl_profile *p);

/* The settings if the site has configured nothing; dl-spank(7) explains them. */
void nccl_defaults (const struct fabric *f, struct nccl_profile *p);

/* ---- lint ---- */

enum { NCCL_LINES = 5 };

/* Report problems in the NAME=VALUE of 'env' (ended by NULL): first values that contradict the
 * fabric, then names without effect, then variables for debugging.  Names in the list 'skip'
 * ("A,B") are ignored.  Returns the number of lines; if there are too many, the last one says how
 * many more.
 */
int nccl_lint (char *const *env, const char *skip, const struct fabric *f,
               char lines[static NCCL_LINES][NCCL_LINE]);
