/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the space as JSON, as variables and in a command line. */
#ifndef LAUNCHER_CONFIG_HPARAMS_H
#define LAUNCHER_CONFIG_HPARAMS_H

#include <jansson.h>

#include "launcher/config/experiment.h"

/* The hyperparameters at point 'x' as a (nested) JSON object, without those
 * that are not active there.
 */
json_t *hparams_json (const struct experiment *e, const double *x);

/* The value of the hyperparameter 'path' in such an object; NULL if none. */
const json_t *hparams_value (const json_t *hparams, const char *path);

/* The value of the hyperparameter 'path' in such an object as text: strings
 * bare, all else as JSON.  The caller frees it; NULL if there is none.
 */
char *hparams_text (const json_t *hparams, const char *path);

/* Replace each {name} in 'text' by the hyperparameter of that name (by nothing
 * if it is not active), or by one of {length} {trial} {repeat} {seed}
 * {attempt_dir}.  'quote' for the shell.
 */
char *hparams_expand (const char *text,
                      const json_t *hparams,
                      const json_t *builtins,
                      bool quote);

/* Find the first {name} in 'text' that is neither a hyperparameter nor a
 * built-in; its name is written to buf.  Returns 1 if there is one, else 0.
 */
int hparams_unknown (const struct experiment *e,
                     const char *text,
                     char *buf,
                     size_t size);

/* "DL_HP_optimizer_lr" for "optimizer.lr". */
void hparams_variable (char *buf, size_t size, const char *path);

#endif
