/* SPDX-License-Identifier: Apache-2.0 */
/* Read a flow file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/edit.h"
#include "launcher/config/key_values.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/flow/check_software.h"
#include "launcher/flow/load.h"
#include "launcher/sys/small_file.h"

enum { FILE_SIZE_MAX = 8 << 20 };

static const char *const root_groups[] = { "name",        "description", "parameters",
                                           "steps",       "code",        "resources",
                                           "environment", "container",   "working_folder",
                                           NULL };

static void read_steps (struct flow *f, const config_t *cf, const config_setting_t *s,
                        struct problems *p)
{
    const config_setting_t *resources = config_lookup (cf, "resources");
    int n = config_setting_length (s);

    if (!config_setting_is_group (s) || n == 0) {
        key_wrong_type (p, s, "steps", "a group of steps NAME { ... }");
        return;
    }
    if (n > FLOW_STEPS_MAX) {
        problem_at (p, origin_of (s),
                    "%d steps: at most %d; 'foreach' runs one step for each "
                    "element of a list",
                    n, FLOW_STEPS_MAX);
        return;
    }
    /* its mistakes are told once */
    if (resources)
        flow_read_group (&f->base, resources, "resources", "resources", p);
    if (p->count > 0 || !(f->steps = calloc ((size_t)n, sizeof (*f->steps))))
        return;
    for (f->n = 0; f->n < (size_t)n; f->n++)
        flow_read_step (&f->steps[f->n], config_setting_get_elem (s, (unsigned)f->n), resources, p);
}

static void read_root (struct flow *f, const config_t *cf, struct problems *p)
{
    const config_setting_t *root = config_root_setting (cf);
    const config_setting_t *steps = config_lookup (cf, "steps");

    bool misspelt = false;

    if (steps)
        read_steps (f, cf, steps, p);
    for (int i = 0; i < config_setting_length (root); i++) {
        config_setting_t *s = config_setting_get_elem (root, (unsigned)i);
        const char *name = config_setting_name (s);
        if (!strcmp (name, "name") || !strcmp (name, "description")
            || !strcmp (name, "working_folder"))
            key_set (&f->base, key_find (experiment_keys, name), s, p);
        else if (!strcmp (name, "code"))
            flow_read_group (&f->base, s, "code", "code", p);
        else if (!strcmp (name, "environment"))
            experiment_read_environment (&f->base, s, p);
        else if (!strcmp (name, "container"))
            flow_read_container (&f->base, s, name, p);
        else if (!strcmp (name, "parameters"))
            flow_read_parameters (f, s, p);
        else if (strcmp (name, "steps") && strcmp (name, "resources")) {
            flow_unknown_key (p, s, name, root_groups, NULL);
            misspelt = true;
        }
    }
    flow_read_working_folder (f, cf, p);
    if (!steps && !misspelt)
        problem_at (p, NO_ORIGIN, "'steps' is missing: steps { NAME { ... } }");
    if (!f->base.name && !misspelt)
        problem_at (p, NO_ORIGIN, "'name' is missing: the name of the flow");
    else if (f->base.name && !flow_is_name (f->base.name))
        problem_at (p, origin_of_key (cf, "name"),
                    "'name' is '%s': 1 to 64 letters, digits, '_' and '-', not "
                    "'-' first",
                    f->base.name);
}

struct flow *flow_read (const char *path, const char *dir, char *const *given, const json_t *values,
                        struct problems *p)
{
    struct flow *f = calloc (1, sizeof (*f));
    int parts = 0;
    config_t cf;

    config_init (&cf);
    p->file = path;
    if (!f || experiment_parse (&cf, path, dir ? NULL : &parts, p) < 0) {
        config_destroy (&cf);
        free (f);
        return NULL;
    }
    f->file = strdup (path);
    f->params = json_object ();
    flow_set_defaults (&f->base);
    f->base.dir = dir ? strdup (dir) : file_folder (path);
    if (!f->base.dir)
        file_folder_problem (p, errno);
    if (parts == 0)
        f->text = file_read_named (path, FILE_SIZE_MAX, NULL, NULL);
    if (!f->text) /* of several files, or of a pipe */
        f->text = edit_text (&cf);
    f->is_frozen = dir != NULL;
    setting_check_texts (config_root_setting (&cf), p);
    if (p->count == 0)
        read_root (f, &cf, p);
    if (p->count == 0)
        flow_check_software (f, &cf, p);
    for (; p->count == 0 && given && *given; given++)
        flow_set_parameter (f, *given, p);
    json_object_update (f->params, (json_t *)values);
    if (p->count == 0)
        flow_check (f, &cf, p);
    config_destroy (&cf);
    if (p->count == 0 && f->text && f->base.dir)
        return f;
    flow_free (f);
    errno = EINVAL;
    return NULL;
}

void flow_free (struct flow *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++)
        flow_step_free (&f->steps[i]);
    flow_free_settings (&f->base);
    json_decref (f->params);
    free (f->steps);
    free (f->order);
    free (f->file);
    free (f->text);
    free (f);
}
