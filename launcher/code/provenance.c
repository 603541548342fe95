/* SPDX-License-Identifier: Apache-2.0 */
/* Record where an experiment comes from, so that somebody can run it again. */
#include "launcher/code/code.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/git.h"
#include "launcher/config/experiment.h"
#include "launcher/config/software_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"
#include "launcher/version.h"
#include "runtime/base/utf8.h"

enum {
    PYTHON_SECONDS = 20,
    PYTHON_MAX = 1 << 20,
    DIFF_MAX = 1 << 20,
};

/* Convert a text to a JSON string.  If it is not UTF-8, replace each non-ASCII byte with '?'. */
static json_t *json_of_any_text (const char *text)
{
    char *copy = xstrdup (text);
    json_t *v;

    if (copy && !is_utf8 (copy))
        for (char *c = copy; *c; c++)
            if (*c & 0x80)
                *c = '?';
    v = copy ? json_string (copy) : NULL;
    free (copy);
    return v;
}

static void put_text (json_t *o, const char *name, const char *text)
{
    json_t *v = text && *text ? json_of_any_text (text) : NULL;

    if (v)
        json_object_set_new (o, name, v);
}

/* ---- the command ---- */

/* Variables that --set passes to trials may contain secrets. */
static void hide_value (char *arg)
{
    char *variable = strstr (arg, "environment");
    char *value = variable ? strchr (variable, '=') : NULL;

    if (value && value[1])
        strcpy (value + 1, "*");
}

/* A program that runs dl for the user passes its own command as a list of words. */
static json_t *caller_json (void)
{
    const char *text = getenv ("DL_STARTED_BY");
    json_t *given = text ? json_loads (text, 0, NULL) : NULL;
    json_t *list = json_is_array (given) ? json_array () : NULL;
    const json_t *word;
    size_t i;

    json_array_foreach (given, i, word)
        if (json_is_string (word)) {
            char *arg = xstrdup (json_string_value (word));
            hide_value (arg);
            json_array_append_new (list, json_of_any_text (arg));
            free (arg);
        }
    json_decref (given);
    return list;
}

static json_t *command_json (void)
{
    char path[] = "/proc/self/cmdline";
    FILE *f = fopen (path, "re");
    json_t *list = json_array ();
    char *arg = NULL;
    size_t size = 0;

    while (f && getdelim (&arg, &size, '\0', f) > 0) {
        hide_value (arg);
        json_array_append_new (list, json_of_any_text (arg));
    }
    free (arg);
    if (f)
        fclose (f);
    return list;
}

/* ---- git ---- */

static void put_git (json_t *o, const char *name, const char *root, char *const *args)
{
    char *text = git_output (root, args, DIFF_MAX);

    put_text (o, name, text);
    free (text);
}

/* The diff must not show others what freezing leaves out: files closed to the group while others
 * are open, and files that the user excludes.
 */
static bool is_kept_private (const struct code_files *c, const char *name)
{
    mode_t mask = umask (077);
    char path[PATH_MAX];
    struct stat st;

    umask (mask);
    snprintf (path, sizeof (path), "%s/%s", c->root, name);
    if (lstat (path, &st) < 0 || !S_ISREG (st.st_mode))
        return false;
    for (size_t i = 0; i < c->n; i++) {
        size_t n = strlen (c->list[i].path);
        if (!strcmp (name, c->list[i].path))
            return c->list[i].target;
        if (c->list[i].target && !strncmp (name, c->list[i].path, n) && name[n] == '/')
            return true;
    }
    return !(st.st_mode & S_IRGRP) && !(mask & S_IRGRP);
}

/* Append the pathspecs that exclude them; -1 if git had to quote a name. */
static int keep_out (const struct code_files *c, char *names, char ***args)
{
    char path[PATH_MAX];

    for (char *name; (name = strsep (&names, "\n"));) {
        if (*name == '"')
            return -1;
        snprintf (path, sizeof (path), ":(top,exclude,literal)%s", name);
        if (*name && is_kept_private (c, name))
            strings_add (args, path);
    }
    return 0;
}

/* Do not ask how submodules differ: git would start another git in each, without the options that
 * keep this one from running other programs.
 */
static void put_diff (json_t *o, const struct code_files *c)
{
    static char *const list[] = { (char *)"diff",          (char *)"--name-only",
                                  (char *)"--no-ext-diff", (char *)"--no-textconv",
                                  (char *)"--no-renames",  (char *)"--ignore-submodules=dirty",
                                  (char *)"HEAD",          NULL };
    static const char *const diff[] = { "diff",
                                        "--no-ext-diff",
                                        "--no-textconv",
                                        "--no-color",
                                        "--no-renames",
                                        "--ignore-submodules=dirty",
                                        "HEAD",
                                        "--",
                                        ":/" };
    char *names = git_output (c->root, list, DIFF_MAX);
    char **args = NULL;

    for (size_t i = 0; i < sizeof (diff) / sizeof (*diff); i++)
        strings_add (&args, diff[i]);
    if (names && *names && keep_out (c, names, &args) == 0)
        put_git (o, "diff", c->root, args);
    strings_free (args);
    free (names);
}

static json_t *git_json (const struct code_files *c)
{
    static char *const commit[] = { (char *)"rev-parse", (char *)"HEAD", NULL };
    static char *const branch[] = { (char *)"rev-parse", (char *)"--abbrev-ref", (char *)"HEAD",
                                    NULL };
    json_t *o = json_object ();

    put_git (o, "commit", c->root, commit);
    put_git (o, "branch", c->root, branch);
    put_diff (o, c);
    return o;
}

/* ---- Python ---- */

/* The folders' names contain name and version of each package.  Reading the metadata inside would
 * take far longer.
 */
static const char list_packages[] = "import sys\n"
                                    "sys.path.pop(0)\n"
                                    "import json, os\n"
                                    "found = {}\n"
                                    "for folder in sys.path:\n"
                                    "    if os.path.isdir(folder):\n"
                                    "        for name in os.listdir(folder):\n"
                                    "            if name.endswith(('.dist-info', '.egg-info')):\n"
                                    "                part = name.rsplit('.', 1)[0].split('-')\n"
                                    "                if len(part) > 1:\n"
                                    "                    found.setdefault(part[0], part[1])\n"
                                    "print(json.dumps({'executable': sys.executable,\n"
                                    "                  'version': sys.version.split()[0],\n"
                                    "                  'packages': found}))\n";

/* Find the word of a command that is a Python interpreter; "" if there is none. */
static void find_python (const char *text, char *buf, size_t size)
{
    static const char between[] = " \t\n;|&()<>\"'";

    while (*(text += strspn (text, between))) {
        size_t n = strcspn (text, between);
        const char *base;
        if (*buf || n >= size)
            return;
        snprintf (buf, size, "%.*s", (int)n, text);
        base = strrchr (buf, '/') ? strrchr (buf, '/') + 1 : buf;
        if (fnmatch ("python", base, 0) && fnmatch ("python[0-9]*", base, 0))
            *buf = '\0';
        text += n;
    }
}

static bool has_python_script (const struct experiment *e)
{
    for (char **a = e->argv; a && *a; a++)
        if (strstr (*a, ".py"))
            return true;
    return e->entrypoint && strstr (e->entrypoint, ".py");
}

/* A relative path is inside the folder, as with a virtual environment. */
static void python_of (const struct experiment *e, char *buf, size_t size)
{
    char word[PATH_MAX] = "";

    if (e->entrypoint)
        find_python (e->entrypoint, word, sizeof (word));
    for (char **a = e->argv; a && *a && !*word; a++)
        find_python (*a, word, sizeof (word));
    if (!*word && has_python_script (e))
        strcpy (word, "python3");
    if (strchr (word, '/') && *word != '/')
        snprintf (buf, size, "%s/%s", e->dir, word);
    else
        snprintf (buf, size, "%s", word);
}

/* The variables that decide which packages Python finds. */
static void add_environment (struct command *c, const struct software *s)
{
    static const char *const names[] = { "PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
                                         NULL };

    command_add (c, "env", NULL);
    for (const char *const *n = names; *n; n++)
        if (software_variable (s, *n))
            command_add (c, *n, software_variable (s, *n));
}

static json_t *python_json (const struct experiment *e)
{
    struct command c = { .timeout = PYTHON_SECONDS, .keeps_job = true, .no_errors = true };
    char python[2 * PATH_MAX] = "";
    char *buf = xmalloc (PYTHON_MAX);
    json_t *v = NULL;

    python_of (e, python, sizeof (python));
    if (*python) {
        if (e->software->activated)
            add_environment (&c, e->software);
        command_add (&c, python, NULL);
        command_add (&c, "-c", NULL);
        command_add (&c, list_packages, NULL);
        if (command_run (&c, NULL, buf, PYTHON_MAX) == 0)
            v = json_loads (buf, 0, NULL);
        command_free (&c);
    }
    free (buf);
    return v;
}

/* ---- the machine ---- */

static json_t *modules_json (const struct experiment *e)
{
    const char *loaded = software_variable (e->software, "LOADEDMODULES");
    json_t *list = json_array ();

    while (loaded && *loaded) {
        size_t n = strcspn (loaded, ":");
        char *name = xstrndup (loaded, n);
        if (*name)
            json_array_append_new (list, json_of_any_text (name));
        free (name);
        loaded += n + (loaded[n] == ':');
    }
    return list;
}

/* The version of the CUDA toolkit; libraries that a program brings are among its packages. */
static void put_cuda (json_t *o)
{
    const char *home = getenv ("CUDA_HOME");
    const char *version = NULL;
    char path[PATH_MAX];
    json_t *v;

    snprintf (path, sizeof (path), "%s/version.json", home ? home : "/usr/local/cuda");
    v = json_load_file (path, 0, NULL);
    json_unpack (v, "{s:{s:s}}", "cuda", "version", &version);
    put_text (o, "cuda", version);
    json_decref (v);
}

static void put_driver (json_t *o)
{
    char *text = file_text ("/proc/driver/nvidia/version", 4096);

    if (text)
        text[strcspn (text, "\n")] = '\0';
    put_text (o, "driver", text);
    free (text);
}

char *provenance_collect (const struct experiment *e, const struct code_files *c)
{
    json_t *o = json_object ();
    json_t *python = e->software->image ? NULL : python_json (e);
    char text[PATH_MAX] = "";
    char *json;

    put_text (o, "dl", DL_VERSION);
    put_text (o, "user", user_name ());
    gethostname (text, sizeof (text) - 1);
    put_text (o, "host", text);
    put_text (o, "folder", getcwd (text, sizeof (text)));
    json_object_set_new (o, "command", caller_json () ?: command_json ());
    json_object_set_new (o, "modules", modules_json (e));
    software_record (e->software, e->dir, o);
    put_cuda (o);
    put_driver (o);
    if (c->is_git)
        json_object_set_new (o, "git", git_json (c));
    if (python)
        json_object_set_new (o, "python", python);
    json = json_dumps (o, JSON_INDENT (1) | JSON_SORT_KEYS);
    json_decref (o);
    return json;
}
