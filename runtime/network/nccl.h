/* SPDX-License-Identifier: Apache-2.0 */
/* Network variables of NCCL, UCX, libfabric and Open MPI: site profiles, and
 * what is wrong with those that a user exported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/network/fabric.h"

/* This folder: which network a node has, and the variables that tune it.  Libc
 * only and without allocation, as the plugin needs it.
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
    const char *what; /* what it does; DEBUG: what it costs; GONE: instead */
};

/* NCCL 2.30's documented variables and the few of others; name NULL ends. */
extern const struct nccl_variable nccl_variables[];

/* Names that NCCL's code reads and of which there is nothing to say: its manual
 * does not list them, or (NCCL_RAS_ADDR) the jobs of a node must differ in it.
 * NULL ends.
 */
extern const char *const nccl_undocumented[];

/* The row of 'name', which may end at '='; NULL if there is none. */
const struct nccl_variable *nccl_find (const char *name);

/* The variable, not empty, has a value that nobody takes; 'name' may end at
 * '='.  Of what is not known nothing is wrong.
 */
enum { NCCL_WHY = 128 };
bool nccl_value_is_wrong (const char *name, const char *value, char why[static NCCL_WHY]);

/* One that 'name' may be a misspelling of, or NULL. */
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

/* Called with one line for each thing that is refused. */
typedef void nccl_say_f (void *arg, const char *line);

/* 0 if 'name' can be a profile's: 1 to 32 letters, digits, '_', '-', '.', and
 * no '.' at its beginning; else -1 with errno EINVAL.
 */
int nccl_check_name (const char *name);

/* Add the lines NAME=VALUE of a file to 'p'; '#' begins a comment line, white
 * space around both sides and a pair of double quotes around the value are
 * dropped.  What is no variable of system configuration, has a value that is
 * wrong, is set twice, or has other bytes than printable ASCII is reported as
 * "FILE:LINE: why" and skipped.  Returns how many lines were refused, or -1
 * with errno if the file cannot be read, is no plain file (EINVAL), has more
 * than NCCL_PROFILE_BYTES (EFBIG), or everybody may write to it (EPERM).
 */
int nccl_read (const char *path, struct nccl_profile *p, nccl_say_f *say, void *arg);

/* What a node with the fabric f gets for --dl-nccl=NAME.  "auto": the profile
 * in the folder 'dir' that has the fabric's name, else nccl_defaults() without
 * what the file 'conf' (/etc/nccl.conf) gives NCCL itself.  'say' may be NULL.
 */
void nccl_choose (const char *dir, const char *conf, const char *name, const struct fabric *f,
                  struct nccl_profile *p, nccl_say_f *say, void *arg);

/* DIR/NAME.conf */
enum { NCCL_PATH = 320 };
void nccl_path (char path[static NCCL_PATH], const char *dir, const char *name);

/* Set its variables, and say which in DL_NCCL_SET. */
struct variables;
void nccl_set (const struct variables *v, const struct nccl_profile *p);

/* What is set where the site has configured nothing: dl-spank(7) says why. */
void nccl_defaults (const struct fabric *f, struct nccl_profile *p);

/* ---- lint ---- */

enum { NCCL_LINES = 5 };

/* What is wrong with the NAME=VALUE of 'env' (ended by NULL): values that
 * contradict the fabric first, then names without effect, then variables for
 * debugging.  Names in the list 'skip' ("A,B") are not looked at.  Returns the
 * number of lines; if there would be more, the last one says how many.
 */
int nccl_lint (char *const *env, const char *skip, const struct fabric *f,
               char lines[static NCCL_LINES][NCCL_LINE]);
