/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a registry of models. */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launcher/sys/command_line.h"
#include "launcher/sys/digest.h"
#include "runtime/base/error.h"

/* NAME/version-0001.json, ... and stage-0001.json, note-0001.json, ...: entries
 * that are put under the next free number and never change; .checkpoints/
 * DIGEST.h5, DIGEST.1.h5, ...: the checkpoints, each of one version.  A stage
 * is that of the version that its last entry names, and the last note of a
 * version counts.  With NAME/removed-0001.json version 1 is none any more.
 */
struct registry {
    char dir[PATH_MAX]; /* canonical */
};

enum { MODEL_NAME_MAX = 64 };

struct model_entry {
    json_t *json;
    uid_t owner; /* of the file */
};

/* "NAME", "NAME/3" or "NAME@production" */
struct model_reference {
    char name[MODEL_NAME_MAX + 1];
    char stage[MODEL_NAME_MAX + 1]; /* "": none */
    long version;                   /* 0: not given */
};

/* --models, else 'models' in the folder of the experiments.  With 'make' it is
 * made where it is absent, and must be one to which not everybody may write.
 * Returns -1 with 'err' set.
 */
int registry_open (struct registry *r, const struct command_line *line, bool make,
                   struct slurmdl_error *err);

/* The same to put entries into it, which get a sharing group's permissions. */
int registry_open_to_write (struct registry *r, const struct command_line *line, bool make,
                            struct slurmdl_error *err);

/* Letters, digits, '.', '_' and '-', no '.' first; EINVAL. */
int model_name_check (const char *name, struct slurmdl_error *err);

/* Split a text, and find the version that is meant.  ENOENT if there is none.
 */
int registry_resolve (const struct registry *r, const char *text, struct model_reference *ref,
                      struct slurmdl_error *err);

/* The entry of a number: 1, 0 if there is none, or -1 with 'err'.  'kind' is
 * "version", "stage", "note" or "removed".  The caller owns entry->json.
 */
int registry_entry (const struct registry *r, const char *name, const char *kind, long number,
                    struct model_entry *entry, struct slurmdl_error *err);

/* Call 'f' with each entry of a kind, the oldest first, up to the first number
 * without one.  -1 with 'err' at one that cannot be read.
 */
int registry_entries (const struct registry *r, const char *name, const char *kind,
                      void (*f) (const json_t *entry, void *arg), void *arg,
                      struct slurmdl_error *err);

/* Whether there is something in its place, be it what it may. */
bool registry_has (const struct registry *r, const char *name, const char *kind, long number);

/* Put one under the next free number, which is returned and in its "number";
 * -1 with 'err'.  'entry' stays the caller's.
 */
long registry_put (const struct registry *r, const char *name, const char *kind, json_t *entry,
                   struct slurmdl_error *err);

/* Remove a version, and its checkpoint. */
int registry_remove (const struct registry *r, const char *name, long version, const json_t *entry,
                     struct slurmdl_error *err);

/* The stages that a version has, "staging, production"; the caller frees it.
 * NULL with 'err'.
 */
char *registry_stages (const struct registry *r, const char *name, long version,
                       struct slurmdl_error *err);

/* Call 'f' for each name, sorted, until it returns nonzero. */
int registry_each (const struct registry *r, int (*f) (const char *name, void *arg), void *arg,
                   struct slurmdl_error *err);

/* Where the checkpoint of a version is; EBADMSG if it names none. */
int registry_checkpoint (const struct registry *r, const json_t *version, char path[PATH_MAX],
                         struct slurmdl_error *err);

/* Keep the checkpoint 'from' as a file of its own, a hard link or a copy,
 * verified.  Returns an object with its "sha256" and "copy", NULL with 'err'.
 */
json_t *registry_keep (const struct registry *r, const char *from, struct slurmdl_error *err);

/* Of an object in an entry; NULL or -1 where it is not there. */
const char *entry_text (const json_t *entry, const char *group, const char *key);
json_int_t entry_int (const json_t *entry, const char *group, const char *key);
