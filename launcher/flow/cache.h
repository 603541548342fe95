/* SPDX-License-Identifier: Apache-2.0 */
/* Results of tasks by the digest of all that they depend on. */
#pragma once

#include "launcher/code/archive.h"
#include "launcher/flow/values.h"

/* .dl-flow-cache-UID/KEY.N beside the flows: results of this user's tasks. */

/* The digest of a task's command, code, inputs and parameters.  Returns 1 if it
 * is not to be cached, -1 with 'err' if an input is missing.
 */
int flow_key (const struct flow_scope *c, char key[DIGEST_SIZE], struct slurmdl_error *err);

/* The newest result of a key whose files are still what they were; NULL: there
 * is none.  The caller releases it.
 */
json_t *flow_cache_find (const struct flow_run *r, const char *key);
void flow_cache_put (const struct flow_run *r, const char *key, const json_t *done);

/* { "path": ..., "sha256": ..., "bytes": ..., "mtime": ... } of a regular file;
 * NULL with 'err'.
 */
json_t *flow_file (const char *path, struct slurmdl_error *err);

/* What programs and jobs leave beside the code: it does not count. */
bool flow_is_leftover (const char *path);

/* { "STEP": DIGEST }: of each step's part of the frozen code. */
json_t *flow_code_digests (const struct flow *f, const struct code_files *files,
                           const struct code_archive *a, struct slurmdl_error *err);
