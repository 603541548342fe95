/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read an experiment share. */
#ifndef LAUNCHER_CONFIG_PRIVATE_H
#define LAUNCHER_CONFIG_PRIVATE_H

#include <libconfig.h>

#include "launcher/config/experiment.h"
#include "launcher/sys/strings.h"

/* "FILE:LINE: TEXT", without the line if that is 0: the key is not given */
void setting_problem (struct problems *p,
                      const struct experiment *e,
                      int line,
                      const char *text);

/* The value of a number of any type.  Returns -1 if it is none. */
int setting_number (const config_setting_t *s, double *v);

/* It as JSON, and JSON as a text for the user; the caller frees both. */
json_t *setting_json (const config_setting_t *s);
char *json_text (const json_t *v);

/* ---- the text of a file (syntax.c) ---- */

/* Parse the file 'path', or a text.  Integers may have 64 bits without an L,
 * @include is refused, and so is what has no end.
 *
 * syntax_read() returns -1 with errno EINVAL (see 'p'), ENOENT, ....
 * syntax_parse() returns what is wrong in 'line', for the caller to free, or
 * NULL.
 */
int syntax_read (config_t *cf, const char *path, struct problems *p);
char *syntax_parse (config_t *cf, const char *text, int *line);

/* ---- editing a file (edit.c) ---- */

struct edit {
    const char *dir; /* where the command runs, NULL: the file's folder */
    void (*f) (config_t *cf, const void *arg); /* NULL: no change, else ... */
    const void *arg;                           /* ... this one first */
    char *const *sets; /* "KEY=VALUE", NULL-ended, or NULL */
};

/* Returns 1 if there was something to do, else 0; mistakes are problems. */
int edit_apply (const struct edit *edit, config_t *cf, struct problems *p);

/* Replace or add the value of 'key' by a copy of 'value'; NULL if the key
 * cannot be.
 */
config_setting_t *
edit_put (config_t *cf, const char *key, const config_setting_t *value);

/* Add 'v' to a group under 'name' (in a list: NULL). */
void edit_add_json (config_setting_t *to, const char *name, const json_t *v);

/* All of it as text with all digits; the caller frees it. */
char *edit_text (config_t *cf);

/* "FILE:LINE: " at the start of a problem: the option instead, if the line
 * stands for one.
 */
void edit_name_option (char **text, char *const *sets);

/* ---- the space ---- */

/* Read the group "hyperparameters" into e->hparams and e->params. */
void space_read (struct experiment *e,
                 config_setting_t *group,
                 struct problems *p);
void space_free (struct experiment *e);

/* Read the keys "when" and "default" of all, once the space is known. */
void when_read (struct experiment *e,
                config_setting_t *group,
                struct problems *p);
void presets_read (struct experiment *e,
                   config_setting_t *group,
                   struct problems *p);

struct hparam *hparam_find (const struct experiment *e, const char *path);

/* "'PATH' is no hyperparameter; did you mean ...", with 'where' before it. */
void hparam_unknown (const struct experiment *e,
                     const config_setting_t *s,
                     const char *where,
                     const char *path,
                     struct problems *p);

/* ---- values and points ---- */

/* The coordinate of 'v' in the dimension of 'h'.  Returns -1 if it has no
 * such value; setting_value() then says so, with 'where' before it.
 */
int json_value (const struct experiment *e,
                const struct hparam *h,
                const json_t *v,
                double *x);
int setting_value (const struct experiment *e,
                   const struct hparam *h,
                   const config_setting_t *s,
                   const char *where,
                   double *x,
                   struct problems *p);

/* Is parameter 'i' active, given the values of those that it waits for? */
bool point_active (const struct experiment *e, size_t i, const double *x);

/* Whether it is a list of one group at least, and nothing else. */
bool is_list_of_groups (const config_setting_t *s);

/* Fill search.points from the defaults and searcher.try_first. */
void points_read (struct experiment *e, config_t *cf, struct problems *p);

/* ---- the whole ---- */

/* Fill e->policies from log_policies. */
void policies_read (struct experiment *e, config_t *cf, struct problems *p);
void policies_free (struct experiment *e);

/* Line of a key, 0: it is not given. */
int line_of (config_t *cf, const char *path);

/* Check the group "searcher" and finish e->search. */
void search_check (struct experiment *e, config_t *cf, struct problems *p);

/* Check what depends on several keys, and finish the struct. */
void experiment_check (struct experiment *e, config_t *cf, struct problems *p);

void known_free (struct experiment *e);

#endif
