/* SPDX-License-Identifier: Apache-2.0 */
/* dl model ls, show: what is in the registry. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/values.h"
#include "launcher/model/model.h"
#include "launcher/model/registry.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "runtime/base/error.h"

/* The owner of the file wrote the entry, whatever it says itself. */
static void owner_name (uid_t owner, char *buf, size_t size)
{
    const struct passwd *pw = getpwuid (owner);

    if (pw)
        snprintf (buf, size, "%s", pw->pw_name);
    else
        snprintf (buf, size, "%u", (unsigned)owner);
}

static void value_text (const json_t *entry, char *buf, size_t size)
{
    const json_t *v = json_object_get (json_object_get (entry, "metric"), "value");

    if (json_is_number (v))
        snprintf (buf, size, "%.6g", json_number_value (v));
    else
        snprintf (buf, size, "%.20s", json_is_string (v) ? json_string_value (v) : "");
}

static const char *or_empty (const char *text)
{
    return text ? text : "";
}

struct last_note {
    long version;
    char *text;
};

static void keep_note (const json_t *entry, void *arg)
{
    struct last_note *last = arg;
    const char *text = entry_text (entry, NULL, "note");

    if (text && entry_int (entry, NULL, "version") == last->version) {
        free (last->text);
        last->text = strdup (text);
    }
}

/* The last one of a version, "" if it has none; the caller frees it. */
static char *note_of (const struct registry *r, const char *name, long version,
                      struct slurmdl_error *err)
{
    struct last_note last = { version, strdup ("") };

    int rv = registry_entries (r, name, "note", keep_note, &last, err);

    if (rv == 0 && !last.text)
        rv = errorf (err, "out of memory");
    if (rv == 0)
        return last.text;
    free (last.text);
    return NULL;
}

static const struct table_column version_columns[] = {
    { "model", false }, { "version", true }, { "stage", false },      { "metric", false },
    { "value", true },  { "step", true },    { "experiment", false }, { "trial", true },
    { "time", false },  { "by", false },     { "note", false },       { NULL, false },
};

struct model_listing {
    const struct registry *r;
    struct libscols_table *tb;
    bool damaged;
};

static void add_line (const struct model_listing *l, const char *name, const struct model_entry *e,
                      const char *stages)
{
    struct libscols_line *line = scols_table_new_line (l->tb, NULL);
    char value[32], when[32], by[64];
    char *note = note_of (l->r, name, entry_int (e->json, NULL, "number"), NULL);

    value_text (e->json, value, sizeof (value));
    time_text (when, sizeof (when), json_number_value (json_object_get (e->json, "time")));
    owner_name (e->owner, by, sizeof (by));
    table_set (line, 0, "%s", name);
    table_set (line, 1, "%lld", (long long)entry_int (e->json, NULL, "number"));
    table_set (line, 2, "%s", stages);
    table_set (line, 3, "%s", or_empty (entry_text (e->json, "metric", "name")));
    table_set (line, 4, "%s", value);
    table_set (line, 5, "%lld", (long long)entry_int (e->json, "checkpoint", "step"));
    table_set (line, 6, "%s", or_empty (entry_text (e->json, "experiment", "name")));
    table_set (line, 7, "%lld", (long long)entry_int (e->json, "experiment", "trial"));
    table_set (line, 8, "%s", when);
    table_set (line, 9, "%s", by);
    table_set (line, 10, "%s", note ? note : "?");
    free (note);
}

static void say_damaged (struct model_listing *l, const struct slurmdl_error *err)
{
    complain ("%s", err->text);
    l->damaged = true;
}

/* An entry that somebody has planted keeps no other one out of the list. */
static int list_versions (const char *name, void *arg)
{
    struct model_listing *l = arg;
    struct slurmdl_error err = { "" };
    struct model_entry e;
    int rv = 1;

    for (long n = 1; rv != 0; n++) {
        char *stages;
        if (registry_has (l->r, name, "removed", n))
            continue;
        rv = registry_entry (l->r, name, "version", n, &e, &err);
        if (rv < 0) {
            say_damaged (l, &err);
            rv = registry_has (l->r, name, "version", n);
        } else if (rv == 1) {
            if (!(stages = registry_stages (l->r, name, n, &err)))
                say_damaged (l, &err);
            add_line (l, name, &e, stages ? stages : "?");
            free (stages);
            json_decref (e.json);
        }
    }
    return 0;
}

static int list (const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct registry r;
    struct model_listing l = { &r, NULL, false };
    int rv;

    if (registry_open (&r, line, false, err) < 0
        || (line->args[1] && model_name_check (line->args[1], err) < 0))
        return -1;
    if (!(l.tb = table_create ("versions", version_columns, opt->json)))
        return errorf (err, "out of memory");
    rv = line->args[1] ? list_versions (line->args[1], &l)
                       : registry_each (&r, list_versions, &l, err);
    if (rv == 0 && line->args[1] && !l.damaged && scols_table_get_nlines (l.tb) == 0) {
        errno = ENOENT;
        rv = errorf (err, "no model '%s' (dl model ls lists them)", line->args[1]);
    }
    if (rv == 0)
        scols_print_table (l.tb);
    scols_unref_table (l.tb);
    return rv < 0 ? -1 : l.damaged;
}

int model_ls (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    int rv = list (line, &err);

    return rv < 0 ? fail (&err) : rv > 0 ? EXIT_DAMAGED : EXIT_OK;
}

/* As dl best prints the same values; the caller frees it. */
static char *shown_text (const char *name, const json_t *v)
{
    char text[64];

    if (!strcmp (name, "metric.value") && json_is_real (v))
        snprintf (text, sizeof (text), "%.6g", json_real_value (v));
    else if (!strcmp (name, "time") && json_is_number (v))
        time_text (text, sizeof (text), json_number_value (v));
    else
        return json_text (v);
    return strdup (text);
}

static void print_values (const json_t *o, const char *prefix)
{
    const char *key;
    const json_t *v;

    json_object_foreach ((json_t *)o, key, v) {
        char name[256];
        char *text;
        snprintf (name, sizeof (name), "%s%s%s", prefix, *prefix ? "." : "", key);
        if (json_is_object (v)) {
            print_values (v, name);
            continue;
        }
        text = shown_text (name, v);
        printf ("%-36s %s\n", name, or_empty (text));
        free (text);
    }
}

static int print_entry (const struct model_options *opt, const struct model_entry *e,
                        const char *stages, const char *note)
{
    char by[64];

    owner_name (e->owner, by, sizeof (by));
    json_object_set_new (e->json, "stages", json_string (stages));
    json_object_set_new (e->json, "note", json_string (note));
    json_object_set_new (e->json, "owner", json_string (by));
    if (!opt->json)
        print_values (e->json, "");
    else if (json_put (e->json, stdout, JSON_INDENT (2)) == 0)
        puts ("");
    return 0;
}

static int show (const struct command_line *line, struct slurmdl_error *err)
{
    struct model_reference ref;
    struct model_entry e;
    struct registry r;
    char *stages, *note = NULL;
    int rv = -1;

    if (registry_open (&r, line, false, err) < 0
        || registry_resolve (&r, line->args[1], &ref, err) < 0
        || registry_entry (&r, ref.name, "version", ref.version, &e, err) != 1)
        return -1;
    if ((stages = registry_stages (&r, ref.name, ref.version, err))
        && (note = note_of (&r, ref.name, ref.version, err)))
        rv = print_entry (line->options, &e, stages, note);
    free (stages);
    free (note);
    json_decref (e.json);
    return rv;
}

int model_show (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return show (line, &err) == 0 ? EXIT_OK : fail (&err);
}
