/* SPDX-License-Identifier: Apache-2.0 */
/* Check the containers and environments of the steps of a flow. */
#include "launcher/flow/check_software.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "launcher/code/image.h"
#include "launcher/code/software_check.h"
#include "launcher/code/software_record.h"
#include "launcher/config/software_settings.h"
#include "launcher/sys/strings.h"

static bool is_given (const struct software *s)
{
    return s->image || s->runtime || s->binds || s->options || s->modules || s->conda || s->venv;
}

const struct software *flow_software_of (const struct flow *f, const struct flow_step *s)
{
    static const struct software none;

    return s->sweep ? &none : is_given (&s->exp.software) ? &s->exp.software : &f->base.software;
}

static void check_step (struct flow *f, struct flow_step *s, const config_t *cf, struct problems *p)
{
    bool is_own = is_given (&s->exp.software);
    struct software *from = is_own ? &s->exp.software : &f->base.software;
    struct experiment e = s->exp;
    config_setting_t *group = config_root_setting (cf);

    if (s->sweep && is_own)
        problem_at (p, s->origin,
                    "step '%s': 'container' and 'environment' (modules, conda, "
                    "venv) of a sweep are keys of its experiment file, '%s': "
                    "write them there",
                    s->name, s->sweep);
    if (s->sweep || !is_given (from))
        return;
    e.software = *from;
    if (is_own)
        group = config_setting_lookup (config_lookup (cf, "steps"), s->name);
    software_settings_check (&e, group, p);
    from->origins = e.software.origins;
}

void flow_check_software (struct flow *f, const config_t *cf, struct problems *p)
{
    /* a mistake that many steps share is told once */
    for (size_t i = 0; i < f->n && p->count == 0; i++)
        check_step (f, &f->steps[i], cf, p);
}

static void find (const struct flow *f, const struct software *s, bool local, bool loads,
                  struct problems *p)
{
    struct experiment e = { .dir = f->base.dir, .software = *s };

    software_check (&e, local, loads, p);
    strings_free (e.software.activated);
}

void flow_find_software (const struct flow *f, bool local, bool loads, struct problems *p)
{
    bool is_used = false;

    for (size_t i = 0; i < f->n; i++) {
        const struct software *s = flow_software_of (f, &f->steps[i]);
        if (s == &f->base.software)
            is_used = true;
        else
            find (f, s, local, loads, p);
    }
    if (is_used)
        find (f, &f->base.software, local, loads, p);
}

json_t *flow_software_key (const struct flow *f, const struct flow_step *s)
{
    const struct software *w = flow_software_of (f, s);
    char *text = is_given (w) ? software_text (w, NULL, true) : NULL;
    char *image = w->image ? container_image (w, f->base.dir) : NULL;
    json_t *key = text ? json_pack ("{s:s}", "settings", text) : NULL;
    struct stat st;

    if (key && image && *image == '/' && stat (image, &st) == 0) {
        json_object_set_new (key, "bytes", json_integer (st.st_size));
        json_object_set_new (key, "modified", json_integer (st.st_mtime));
    }
    free (image);
    free (text);
    return key;
}
