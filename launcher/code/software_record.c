/* SPDX-License-Identifier: Apache-2.0 */
/* The container and environment of an experiment as JSON. */
#include "launcher/code/software_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/code/activate.h"
#include "launcher/code/container.h"
#include "launcher/code/image.h"
#include "launcher/sys/strings.h"

/* clang-format off */
static const struct member {
    const char *name;
    size_t offset;
    bool is_list, is_of_container;
} members[] = {
    { "image",   offsetof (struct software, image),   false, true },
    { "runtime", offsetof (struct software, runtime), false, true },
    { "binds",   offsetof (struct software, binds),   true,  true },
    { "options", offsetof (struct software, options), true,  true },
    { "modules", offsetof (struct software, modules), true,  false },
    { "conda",   offsetof (struct software, conda),   false, false },
    { "venv",    offsetof (struct software, venv),    false, false },
    { NULL },
};
/* clang-format on */

static void put_list (json_t *o, const char *name, char *const *list)
{
    json_t *v = list ? json_array () : NULL;

    for (; list && *list; list++)
        json_array_append_new (v, json_string (*list));
    if (v)
        json_object_set_new (o, name, v);
}

static void put_members (json_t *o, const struct software *s, bool container)
{
    for (const struct member *m = members; m->name; m++) {
        const void *at = (const char *)s + m->offset;
        if (m->is_of_container != container)
            continue;
        if (m->is_list)
            put_list (o, m->name, *(char *const *const *)at);
        else if (*(char *const *)at)
            json_object_set_new (o, m->name, json_string (*(char *const *)at));
    }
}

char *software_text (const struct software *s, char *const *folders, bool all)
{
    json_t *o = json_object ();
    char *text;

    put_members (o, s, true);
    if (all)
        put_members (o, s, false);
    put_list (o, "folders", folders);
    text = json_dumps (o, JSON_COMPACT);
    json_decref (o);
    return text;
}

static char **list_of (const json_t *v)
{
    const json_t *item;
    char **list = NULL;
    size_t i;

    json_array_foreach (v, i, item)
        if (json_is_string (item))
            strings_add (&list, json_string_value (item));
    return list;
}

int software_parse (const char *text, struct software *s, char ***folders)
{
    json_t *o = json_loads (text, 0, NULL);

    *s = (struct software){ .image = NULL };
    *folders = NULL;
    if (!json_is_object (o)) {
        json_decref (o);
        return -1;
    }
    for (const struct member *m = members; m->name; m++) {
        void *at = (char *)s + m->offset;
        const json_t *v = json_object_get (o, m->name);
        if (m->is_list)
            *(char ***)at = list_of (v);
        else if (json_is_string (v))
            *(char **)at = strdup (json_string_value (v));
    }
    *folders = list_of (json_object_get (o, "folders"));
    json_decref (o);
    return 0;
}

void software_free (struct software *s)
{
    for (const struct member *m = members; m->name; m++) {
        void *at = (char *)s + m->offset;
        if (m->is_list)
            strings_free (*(char ***)at);
        else
            free (*(char **)at);
    }
    strings_free (s->activated);
}

static void put_file (json_t *o, const char *path)
{
    struct stat st;

    if (*path != '/' || stat (path, &st) < 0)
        return;
    json_object_set_new (o, "path", json_string (path));
    if (S_ISREG (st.st_mode))
        json_object_set_new (o, "bytes", json_integer (st.st_size));
    json_object_set_new (o, "modified", json_integer (st.st_mtime));
}

static json_t *container_json (const struct software *s, const char *dir)
{
    const char *runtime = container_runtime (s, dir, software_variable (s, "PATH"), NULL);
    char *path = container_image (s, dir);
    json_t *o = json_object ();

    put_members (o, s, true);
    if (path)
        put_file (o, path);
    if (runtime && !s->runtime)
        json_object_set_new (o, "found", json_string (runtime));
    free (path);
    return o;
}

static void put_environment (json_t *o, const struct software *s)
{
    json_t *v = json_object ();

    put_members (v, s, false);
    if (json_object_size (v) > 0)
        json_object_set (o, "environment", v);
    json_decref (v);
}

void software_record (const struct software *s, const char *dir, json_t *o)
{
    if (s->image)
        json_object_set_new (o, "container", container_json (s, dir));
    put_environment (o, s);
}

static void print_object (const char *title, const json_t *o)
{
    const char *name;
    const json_t *v, *item;
    size_t i;

    if (!json_is_object (o))
        return;
    printf ("%s:", title);
    json_object_foreach ((json_t *)o, name, v) {
        printf (" %s", name);
        json_array_foreach (v, i, item)
            printf ("%s%s", i ? ", " : " ", json_string_value (item) ?: "?");
        if (json_is_integer (v))
            printf (" %lld", (long long)json_integer_value (v));
        else if (json_is_string (v))
            printf (" %s", json_string_value (v));
        putchar (json_object_iter_next ((json_t *)o, json_object_iter_at ((json_t *)o, name))
                     ? ';'
                     : '\n');
    }
}

void software_record_print (const json_t *record)
{
    print_object ("container", json_object_get (record, "container"));
    print_object ("environment", json_object_get (record, "environment"));
}

bool software_image_differs (const json_t *record)
{
    static const char *const names[] = { "bytes", "modified", NULL };
    const json_t *then = json_object_get (record, "container");
    const char *path = json_string_value (json_object_get (then, "path"));
    json_t *now = json_object ();
    bool differs = false;

    put_file (now, path ? path : "");
    for (const char *const *n = names; *n; n++)
        differs |= json_object_get (then, *n)
                   && !json_equal (json_object_get (then, *n), json_object_get (now, *n));
    json_decref (now);
    return differs;
}

void software_print (const struct software *s)
{
    json_t *o = json_object ();
    json_t *container = json_object ();

    put_members (container, s, true);
    if (s->image)
        json_object_set (o, "container", container);
    json_decref (container);
    put_environment (o, s);
    software_record_print (o);
    json_decref (o);
}
