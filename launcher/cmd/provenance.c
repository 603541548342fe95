/* SPDX-License-Identifier: Apache-2.0 */
/* Print the recorded provenance of an experiment. */
#include "launcher/cmd/commands.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"

enum { RECORD_MAX = 8 << 20 };

static json_t *read_provenance_record (const struct sweep *s)
{
    struct slurmdl_error err = { "" };
    char digest[DIGEST_SIZE] = "";
    char path[PATH_MAX];
    size_t size = 0;
    json_t *v = NULL;
    char *text;

    snprintf (path, sizeof (path), "%s/provenance.json", s->dir);
    if ((text = file_read_now (path, RECORD_MAX, &size, NULL, &err)))
        digest_of (digest, text, size);
    if (!text)
        complain ("%s", err.text);
    else if (strcmp (digest, s->provenance) || !(v = json_loadb (text, size, 0, NULL)))
        complain ("%s: this is not the experiment's original record", path);
    free (text);
    return v;
}

json_t *provenance_read (const struct sweep *s)
{
    if (s->provenance)
        return read_provenance_record (s);
    complain ("%s: there is no record of its code and packages", s->dir);
    return NULL;
}

static void print_provenance_text (const json_t *v, const char *name)
{
    const char *text = json_string_value (json_object_get (v, name));

    if (text)
        printf ("%s: %s\n", name, text);
}

static void print_words (const json_t *v, const char *name)
{
    const json_t *list = json_object_get (v, name);
    const json_t *word;
    size_t i;

    if (json_array_size (list) == 0)
        return;
    printf ("%s:", name);
    json_array_foreach (list, i, word)
        printf (" %s", json_string_value (word) ?: "");
    putchar ('\n');
}

static void print_git (const json_t *git)
{
    const char *commit = json_string_value (json_object_get (git, "commit"));
    const char *branch = json_string_value (json_object_get (git, "branch"));
    const char *diff = json_string_value (json_object_get (git, "diff"));

    if (!commit)
        return;
    printf ("git: %s (%s)%s\n", commit, branch ? branch : "no branch",
            diff ? ", and this difference:" : "");
    if (diff)
        printf ("%s\n", diff);
}

static void print_python (json_t *python)
{
    json_t *packages = json_object_get (python, "packages");
    const char *name;
    json_t *v;
    void *next;

    if (!python)
        return;
    printf ("python: %s, %s\n", json_string_value (json_object_get (python, "version")) ?: "?",
            json_string_value (json_object_get (python, "executable")) ?: "?");
    json_object_foreach_safe (packages, next, name, v)
        printf ("  %s %s\n", name, json_string_value (v) ?: "?");
}

int provenance_print (const struct sweep *s, bool as_json)
{
    json_t *v = provenance_read (s);

    if (!v)
        return s->provenance ? EXIT_DAMAGED : EXIT_NOT_FOUND;
    if (s->code) {
        json_object_set_new (v, "code", json_string (s->code));
        json_object_set_new (v, "root", json_string (s->root));
    }
    if (as_json) {
        json_put (v, stdout, JSON_INDENT (1) | JSON_SORT_KEYS);
        putchar ('\n');
        json_decref (v);
        return EXIT_OK;
    }
    printf ("experiment: %s\n", s->dir);
    if (s->code)
        printf ("code: %s of %s, in code.tar.zst\n", s->code, s->root);
    else
        printf ("code: not frozen, in %s\n", s->exp->dir);
    print_words (v, "command");
    print_provenance_text (v, "folder");
    print_provenance_text (v, "user");
    print_provenance_text (v, "host");
    print_provenance_text (v, "dl");
    print_words (v, "modules");
    software_record_print (v);
    print_provenance_text (v, "cuda");
    print_provenance_text (v, "driver");
    print_python (json_object_get (v, "python"));
    print_git (json_object_get (v, "git"));
    json_decref (v);
    return EXIT_OK;
}
