/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the search space as JSON, as environment variables and in a command line. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>

#include "launcher/config/diagnostics.h"

struct experiment;
struct hparam;

/* The hyperparameters at point 'x' as a nested JSON object.  Inactive ones are omitted. */
json_t *hparams_json (const struct experiment *e, const double *x);

/* The value of one hyperparameter at 'x'; NULL if it is inactive there. */
json_t *hparam_json (const struct experiment *e, const struct hparam *h, const double *x);

/* Look up the hyperparameter 'path' in such an object.  Returns NULL if it has no value. */
const json_t *hparams_value (const json_t *hparams, const char *path);

/* A value as text: strings without quotes, anything else as JSON.  Returns NULL for NULL.  The
 * caller frees it.
 */
char *hparam_text (const json_t *value);

/* The same for the hyperparameter 'path' of such an object. */
char *hparams_text (const json_t *hparams, const char *path);

/* The values of the {name} placeholders in a command. */
struct command_values {
    const struct experiment *exp;
    const json_t *hparams;
    const json_t *builtins; /* {length} {trial} {repeat} {seed} {trial_dir}
                               {attempt_dir} */
    /* Value of {resume_dir}: a folder that contains 'file' (NULL: any file), or NULL if there is
     * none.  The caller frees it.
     */
    char *(*resume_dir) (void *arg, const char *file);
    void *arg;
};

/* Replace each {name} in 'text' with its value, or with nothing if it has none.  Omit each optional
 * group [ ... ] in which a name has no value.  With 'quote', quote the values for the shell.  The
 * caller frees the result.
 */
char *hparams_expand (const char *text, const struct command_values *v, bool quote);

/* The same for one argument of a list.  Calls 'put' for each resulting word, and not at all for an
 * omitted group.
 */
int hparams_arguments (const char *text, const struct command_values *v,
                       int (*put) (void *arg, char *word), void *arg);

/* Copy 'text' without the optional groups in which a hyperparameter of 'e' has no value in
 * 'hparams'.  The caller frees it.
 */
char *hparams_drop_groups (const struct experiment *e, const char *text, const json_t *hparams);

/* Find the first {name} in 'text' that is neither a hyperparameter nor built in, and write the name
 * to 'buf'.  Returns whether there is one.
 */
bool hparams_unknown (const struct experiment *e, const char *text, char *buf, size_t size);

/* Write the name of the environment variable: "DL_HP_optimizer_lr" for "optimizer.lr". */
void hparams_variable (char *buf, size_t size, const char *path);

/* ---- values as users write them ---- */

/* JSON as text for a message.  The caller frees it. */
char *json_text (const json_t *v);

/* Find a hyperparameter by its path.  Returns NULL if there is none. */
struct hparam *hparam_find (const struct experiment *e, const char *path);

/* Add the problem "WHERE: 'PATH' is not a hyperparameter; did you mean ...". */
void hparam_unknown (const struct experiment *e, const config_setting_t *s, const char *where,
                     const char *path, struct problems *p);

/* Convert the value 'v' of 'h' to a coordinate '*x' of its dimension.  Returns -1 if 'h' cannot
 * have that value; setting_value() then adds a problem that begins with 'where'.
 */
int json_value (const struct experiment *e, const struct hparam *h, const json_t *v, double *x);
int setting_value (const struct experiment *e, const struct hparam *h, const config_setting_t *s,
                   const char *where, double *x, struct problems *p);

/* ---- optional groups ---- */

/* Add a problem for each hyperparameter that may be inactive but is used outside an optional group,
 * and for each file in {resume_dir} used outside one.  The message suggests the group to write.
 */
void groups_check (const struct experiment *e, struct problems *p);

/* ---- placeholders ---- */

#define RESUME_DIR "resume_dir"

/* Length of the "{name}" at the beginning of 'text', or 0 if there is none.  'start' is the
 * beginning of the whole text.  ${VARIABLE} and awk's { print } are not placeholders.
 */
size_t placeholder_length (const char *start, const char *text);

/* Whether the entrypoint uses {NAME}. */
bool experiment_has_placeholder (const struct experiment *e, const char *name);
