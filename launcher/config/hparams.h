/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the space as JSON, as variables and in a command line. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>
#include <stddef.h>

#include "launcher/config/diagnostics.h"

struct experiment;
struct hparam;

/* The hyperparameters at point 'x' as a (nested) JSON object, without those
 * that are not active there.
 */
json_t *hparams_json (const struct experiment *e, const double *x);

/* One of them; NULL if it is not active there. */
json_t *hparam_json (const struct experiment *e, const struct hparam *h, const double *x);

/* The value of the hyperparameter 'path' in such an object; NULL if none. */
const json_t *hparams_value (const json_t *hparams, const char *path);

/* A value as text: strings bare, all else as JSON.  The caller frees it; NULL
 * for none.
 */
char *hparam_text (const json_t *value);

/* The same of the hyperparameter 'path' in such an object. */
char *hparams_text (const json_t *hparams, const char *path);

/* What the {names} of a command stand for. */
struct command_values {
    const struct experiment *exp;
    const json_t *hparams;
    const json_t *builtins; /* {length} {trial} {repeat} {seed} {trial_dir}
                               {attempt_dir} */
    /* {resume_dir}: a folder that has the file (NULL: any file), NULL if there
     * is none; the caller frees it. */
    char *(*resume_dir) (void *arg, const char *file);
    void *arg;
};

/* Replace each {name} in 'text' by its value (by nothing if it has none), and
 * leave out the groups (group_length()) in which one has no value.  'quote'
 * for the shell.
 */
char *hparams_expand (const char *text, const struct command_values *v, bool quote);

/* The same of an argument of a list: 'put' takes each word, none for a group
 * that is left out.
 */
int hparams_arguments (const char *text, const struct command_values *v,
                       int (*put) (void *arg, char *word), void *arg);

/* 'text' without the groups in which a hyperparameter of 'e' has no value in
 * 'hparams'; the caller frees it, NULL if out of memory.
 */
char *hparams_drop_groups (const struct experiment *e, const char *text, const json_t *hparams);

/* Find the first {name} in 'text' that is neither a hyperparameter nor a
 * built-in; its name is written to buf.  Returns 1 if there is one, else 0.
 */
int hparams_unknown (const struct experiment *e, const char *text, char *buf, size_t size);

/* "DL_HP_optimizer_lr" for "optimizer.lr". */
void hparams_variable (char *buf, size_t size, const char *path);

/* ---- values, as users write them ---- */

/* JSON as a text for the user, who frees it. */
char *json_text (const json_t *v);

/* The hyperparameter of that path; NULL: there is none. */
struct hparam *hparam_find (const struct experiment *e, const char *path);

/* "'PATH' is not a hyperparameter; did you mean ...", with 'where' before it.
 */
void hparam_unknown (const struct experiment *e, const config_setting_t *s, const char *where,
                     const char *path, struct problems *p);

/* The coordinate of 'v' in the dimension of 'h'.  Returns -1 if it has no
 * such value; setting_value() then says so, with 'where' before it.
 */
int json_value (const struct experiment *e, const struct hparam *h, const json_t *v, double *x);
int setting_value (const struct experiment *e, const struct hparam *h, const config_setting_t *s,
                   const char *where, double *x, struct problems *p);

/* ---- groups that may be left out ---- */

/* Add a problem for each hyperparameter that may be absent and stands outside
 * a group, and for a file in {resume_dir} that does, with the group that it
 * should be.
 */
void groups_check (const struct experiment *e, struct problems *p);

/* ---- where a {name} stands ---- */

#define RESUME_DIR "resume_dir"

/* Length of the "{name}" that 'text' begins with, 0 if it does not; 'start' is
 * the beginning of the whole text.  Neither ${VARIABLE} nor awk's { print } is
 * one.
 */
size_t placeholder_length (const char *start, const char *text);

/* Whether {NAME} is in the entrypoint. */
bool experiment_has_placeholder (const struct experiment *e, const char *name);
