/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs and values that the command of a step has left. */
#include "launcher/flow/results.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/flow/cache.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/resume_dir.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"

enum { VALUES_MAX = 1 << 20 };

/* A script that knows nothing of the attempt's folder writes into its working
 * folder.
 */
static json_t *take_from_work (const struct flow_scope *c, const char *path)
{
    size_t n = strlen (c->folder);
    json_t *file = NULL;
    char *own;

    if (strncmp (path, c->folder, n) || path[n] != '/'
        || asprintf (&own, "%s/" WORK_NAME "%s%s", c->folder, flow_code_below (c->r), path + n) < 0)
        return NULL;
    file = flow_file (own, NULL);
    free (own);
    return file;
}

json_t *flow_take_outputs (const struct flow_scope *c, struct slurmdl_error *err)
{
    json_t *all = json_object ();

    for (size_t i = 0; all && i < c->s->noutputs; i++) {
        const struct flow_output *o = &c->s->outputs[i];
        struct slurmdl_error why = { "" };
        char path[PATH_MAX];
        json_t *file = NULL;
        if (flow_output_path (c, o, path, err) == 0 && !(file = flow_file (path, &why))
            && !(file = take_from_work (c, path)))
            errorf (err, "it ended without its output '%s': %s", o->name, why.text);
        if (!file) {
            json_decref (all);
            return NULL;
        }
        json_object_set_new (all, o->name, file);
    }
    return all;
}

/* Numbers, truth values and lists as JSON has them, all else is a string. */
static json_t *value_of (const char *text)
{
    json_t *v = strchr ("-0123456789tf[", *text) ? json_loads (text, JSON_DECODE_ANY, NULL) : NULL;

    if (v && !json_is_object (v))
        return v;
    json_decref (v);
    return json_string (text);
}

static int add_value (const struct flow_scope *c, json_t *all, char *line,
                      struct slurmdl_error *err)
{
    char *eq = strchr (line, '=');
    json_t *v;

    errno = EINVAL;
    if (!*line)
        return 0;
    if (!eq || !is_utf8 (line))
        return errorf (err, "'%.80s' in $DL_VALUES is no NAME=VALUE", line);
    *eq = '\0';
    if (!strings_contain ((const char *const *)c->s->values, line))
        return errorf (err,
                       "its value '%.80s' is not declared: add it to 'values' "
                       "of the step",
                       line);
    if (!(v = value_of (eq + 1)))
        return errorf (err, "out of memory");
    if (json_array_size (v) > FLOW_WIDTH_MAX) {
        json_decref (v);
        return errorf (err, "its value '%.80s' is a list of more than %d elements", line,
                       FLOW_WIDTH_MAX);
    }
    return json_object_set_new (all, line, v);
}

static int read_values (const struct flow_scope *c, json_t *all, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    char path[PATH_MAX + 16];
    char *text, *save = NULL;
    int rv = 0;

    snprintf (path, sizeof (path), "%s/values", c->folder);
    if (!(text = file_read_now (path, VALUES_MAX, NULL, NULL, &why)))
        return errno == ENOENT ? 0 : errorf (err, "%s", why.text);
    for (char *line = strtok_r (text, "\n", &save); rv == 0 && line;
         line = strtok_r (NULL, "\n", &save))
        rv = add_value (c, all, line, err);
    free (text);
    return rv;
}

json_t *flow_take_values (const struct flow_scope *c, struct slurmdl_error *err)
{
    json_t *all = json_object ();

    errno = EINVAL;
    if (!all || read_values (c, all, err) < 0)
        goto fail;
    for (char **v = c->s->values; v && *v; v++)
        if (!json_object_get (all, *v)) {
            errorf (err, "it ended without its value '%s': echo %s=... >>$DL_VALUES", *v, *v);
            goto fail;
        }
    return all;
fail:
    json_decref (all);
    return NULL;
}
