/* SPDX-License-Identifier: Apache-2.0 */
/* Which files an experiment freezes. */
#include "launcher/code/code.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/git.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

enum {
    FILE_MAX = 1 << 20, /* larger files are data, unless git tracks them */
    BYTES_MAX = 64 << 20,
    FILES_MAX = 20000,
    FOLDER_MAX = 1000, /* most entries; a folder with more is data */
    OUTPUTS_MAX = 200,
    OUTPUT_BYTES = 16 << 20,
    DEPTH_MAX = 40,
    IGNORE_MAX = 64 << 10,
};

/* ---- whether the trials run what is in the folder ---- */

bool code_is_script (const char *path, size_t len)
{
    static const char *const ends[] = { ".py", ".sh", ".R", ".jl", ".pl" };

    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++) {
        size_t n = strlen (ends[i]);
        if (len > n && !strncmp (path + len - n, ends[i], n))
            return true;
    }
    return false;
}

static bool word_is_file_in (const char *dir, const char *name, size_t len)
{
    char path[PATH_MAX];

    while (len > 2 && !strncmp (name, "./", 2)) {
        name += 2;
        len -= 2;
    }
    if (len > strlen (dir) && !strncmp (name, dir, strlen (dir)) && name[strlen (dir)] == '/'
        && code_is_script (name, len)) {
        len -= strlen (dir) + 1;
        name += strlen (dir) + 1;
    }
    if (len == 0 || *name == '/' || *name == '-' || (len == 1 && *name == '.'))
        return false;
    snprintf (path, sizeof (path), "%s/%.*s", dir, (int)len, name);
    if (access (path, F_OK) == 0)
        return true;
    /* python -m package.module */
    snprintf (path, sizeof (path), "%s/%.*s.py", dir, (int)strcspn (name, ". \t"), name);
    return access (path, F_OK) == 0;
}

static const char word_breaks[] = " \t\n;|&()<>\"'=";

/* In NAME.MODULE, NAME may be a folder. */
static bool is_named (const char *dir, const char *text)
{
    while (*(text += strspn (text, word_breaks))) {
        size_t len = strcspn (text, word_breaks);
        size_t first = strcspn (text, " \t\n;|&()<>\"'=./");
        if (word_is_file_in (dir, text, len) || (first > 0 && word_is_file_in (dir, text, first)))
            return true;
        text += len;
    }
    return false;
}

/* Note the first script that is named by an absolute path: no copy takes its place. */
static void note_absolute (struct code_files *c, const char *text)
{
    while (!*c->absolute && *(text += strspn (text, word_breaks))) {
        size_t len = strcspn (text, word_breaks);
        if (*text == '/' && len < sizeof (c->absolute) && code_is_script (text, len)) {
            snprintf (c->absolute, sizeof (c->absolute), "%.*s", (int)len, text);
            if (access (c->absolute, F_OK) < 0)
                *c->absolute = '\0';
        }
        text += len;
    }
}

/* Whether the command names files of the folder. */
static bool command_uses_folder (const struct experiment *e, struct code_files *c)
{
    const char *const texts[] = { e->entrypoint, e->search->command };
    bool used = false;

    for (char **a = e->argv; a && *a; a++) {
        used |= is_named (e->dir, *a);
        note_absolute (c, *a);
    }
    for (size_t i = 0; i < sizeof (texts) / sizeof (*texts); i++)
        if (texts[i]) {
            used |= is_named (e->dir, texts[i]);
            note_absolute (c, texts[i]);
        }
    return used;
}

/* ---- the root ---- */

static bool is_home (const char *path)
{
    const struct passwd *pw = getpwuid (geteuid ());
    const char *const homes[] = { getenv ("HOME"), pw ? pw->pw_dir : NULL };
    char own[PATH_MAX];

    for (size_t i = 0; i < sizeof (homes) / sizeof (*homes); i++)
        if (homes[i] && *homes[i] && realpath (homes[i], own) && !strcmp (own, path))
            return true;
    return !strcmp (path, "/") || !*path;
}

/* 'path' is 'root', or below it. */
static bool is_root_or_below (const char *path, const char *root)
{
    size_t n = strlen (root);

    return !strncmp (path, root, n) && (!path[n] || path[n] == '/');
}

static char *git_root (const char *dir)
{
    char *const args[] = { (char *)"rev-parse", (char *)"--show-toplevel", NULL };
    char *text = git_output (dir, args, PATH_MAX);
    char own[PATH_MAX];
    bool is_good = text && realpath (text, own) && !is_home (own) && is_root_or_below (dir, own);

    free (text);
    return is_good ? xstrdup (own) : NULL;
}

static int given_root (const struct experiment *e, char *own, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    path_from (path, e->dir, e->code->path);
    if (!realpath (path, own))
        return errorf (err, "'code.path': %s: %s", e->code->path, strerror (errno));
    errno = EINVAL;
    return is_root_or_below (e->dir, own)
               ? 0
               : errorf (err,
                         "'code.path' %s must be the folder of the experiment "
                         "file, or one above it",
                         own);
}

static int find_code_root (const struct experiment *e, struct code_files *c,
                           struct slurmdl_error *err)
{
    char own[PATH_MAX];
    char *top;

    if (e->code->path) {
        if (given_root (e, own, err) < 0)
            return -1;
        c->root = xstrdup (own);
        top = git_root (own);
        c->is_git = top && !strcmp (top, own);
        free (top);
    } else {
        c->root = git_root (e->dir);
        c->is_git = c->root != NULL;
        if (!c->root)
            c->root = xstrdup (e->dir);
    }
    return 0;
}

/* ---- the files ---- */

struct walk {
    struct code_files *c;
    const struct experiment *e;
    const char *experiments; /* the folder where the experiment will be created */
    struct git_files git;
    char **exclude;
    mode_t mask; /* umask(2) */
    bool text;   /* freeze only text */
    bool linked; /* inside a folder that git ignores */
    size_t capacity;
};

static bool folder_has (const char *dir, const char *name)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return access (path, F_OK) == 0;
}

/* Python environments, and the folders of version control. */
static bool is_environment (const char *full, const char *name)
{
    static const char *const names[] = { ".git", ".hg", ".svn", "node_modules", NULL };

    return strings_contain (names, name) || folder_has (full, "pyvenv.cfg")
           || folder_has (full, "conda-meta");
}

static int add_code_file (struct walk *w, const char *path, const char *target,
                          const struct stat *st)
{
    struct code_files *c = w->c;
    struct code_file *f;

    if (array_reserve (&c->list, &w->capacity, c->n, 1, sizeof (*c->list)) < 0)
        out_of_memory ();
    f = &c->list[c->n++];
    *f = (struct code_file){ .path = xstrdup (path),
                             .target = xstrdup (target),
                             .size = target || S_ISDIR (st->st_mode) ? 0 : st->st_size,
                             .mode = st->st_mode };
    c->bytes += f->size;
    c->nlinks += target != NULL;
    c->nfolders += !target && S_ISDIR (st->st_mode);
    return 0;
}

/* Whether the target of a link at 'path' stays below the root. */
static bool stays_inside (const char *path, const char *target)
{
    int depth = 0;

    for (const char *s = path; (s = strchr (s, '/')); s++)
        depth++;
    if (*target == '/')
        return false;
    while (*target) {
        size_t n = strcspn (target, "/");
        if (n == 2 && !strncmp (target, "..", 2) && --depth < 0)
            return false;
        depth += n > 0 && !(n <= 2 && strspn (target, ".") >= n);
        target += n + (target[n] == '/');
    }
    return true;
}

static int add_code_link (struct walk *w, const char *path, const char *full, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n;

    if (!S_ISLNK (st->st_mode))
        return add_code_file (w, path, full, st);
    n = readlink (full, target, sizeof (target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return add_code_file (w, path, n > 0 && stays_inside (path, target) ? target : full, st);
}

/* If files are group-readable by default, one that is not may be a key, which readers of the
 * experiment must not see.
 */
static bool is_closed_to_group (const struct walk *w, const struct stat *st)
{
    return !(st->st_mode & S_IRGRP) && !(w->mask & S_IRGRP);
}

static bool is_text (const char *path)
{
    static const char *const ends[] = {
        ".py",   ".pyx",  ".ipynb", ".sh",  ".bash", ".R",   ".r",   ".jl", ".pl", ".lua",  ".m",
        ".c",    ".h",    ".cc",    ".cpp", ".hpp",  ".cu",  ".cuh", ".rs", ".go", ".yaml", ".yml",
        ".toml", ".json", ".ini",   ".cfg", ".conf", ".gin", ".j2",  ".md", NULL
    };
    const char *end = strrchr (path, '.');

    return end && strings_contain (ends, end);
}

static bool is_frozen_file (const struct walk *w, const char *path, const struct stat *st)
{
    char kind = w->c->is_git ? git_files_kind (&w->git, path) : '?';

    if (!S_ISREG (st->st_mode) || pattern_list_has (w->exclude, path, false) || w->linked)
        return false;
    if (w->text)
        return is_text (path) && st->st_size <= FILE_MAX && kind != ' '
               && !is_closed_to_group (w, st);
    if (pattern_list_has (w->e->code->include, path, false))
        return true;
    if (is_closed_to_group (w, st))
        return false;
    return kind == 'H' || (kind == '?' && st->st_size <= FILE_MAX);
}

static int count_entries (const char *dir)
{
    DIR *d = opendir (dir);
    int n = 0;

    while (d && n <= FOLDER_MAX && readdir (d))
        n++;
    if (d)
        closedir (d);
    return n;
}

static bool is_frozen_folder (const struct walk *w, const char *path, const char *full,
                              const char *name)
{
    char kind = w->c->is_git ? git_files_kind (&w->git, path) : '?';

    if (is_environment (full, name) || pattern_list_has (w->exclude, path, true))
        return false;
    if (pattern_list_has (w->e->code->include, path, true) || kind == 'H')
        return true;
    return kind == '?' && count_entries (full) <= FOLDER_MAX;
}

/* A folder that git ignores holds data or what scripts write.  In the second case each attempt gets
 * its own folder, with links to what is there.
 */
static bool is_mirrored (const struct walk *w, const char *path, const char *full, const char *name)
{
    return w->e->code->work != WORK_SHARED && w->c->is_git && !is_environment (full, name)
           && !pattern_list_has (w->exclude, path, true) && fnmatch ("*data*", name, FNM_CASEFOLD)
           && count_entries (full) <= FOLDER_MAX;
}

/* Files of dl and Python: left out, so that the same code has the same digest. */
static bool is_made_by_tools (const char *full, const char *name)
{
    return !strcmp (name, "__pycache__") || !strcmp (name, ".dl-code")
           || !strncmp (name, ".dl-flow-cache", 14) || folder_has (full, "experiment.conf")
           || folder_has (full, "flow.json");
}

static int walk_code_folder (struct walk *w, const char *path, int depth);

static void forget_files (struct walk *w, size_t before)
{
    struct code_files *c = w->c;

    while (c->n > before) {
        struct code_file *f = &c->list[--c->n];
        c->bytes -= f->size;
        c->nlinks -= f->target != NULL;
        c->nfolders -= !f->target && S_ISDIR (f->mode);
        free (f->path);
        free (f->target);
    }
}

/* Whether scripts may write into a folder, so that each attempt should get its own: it contains
 * little but checkpoints, and is not called data.
 */
static bool may_be_output_folder (const struct walk *w, const char *path, size_t before)
{
    const char *name = strrchr (path, '/') ? strrchr (path, '/') + 1 : path;
    const struct code_files *c = w->c;
    int64_t bytes = 0;
    struct stat st;

    if (w->e->code->work == WORK_SHARED || c->n - before > OUTPUTS_MAX
        || fnmatch ("*data*", name, FNM_CASEFOLD) == 0)
        return false;
    for (size_t i = before; i < c->n; i++)
        if (c->list[i].target && !is_checkpoint_name (c->list[i].path)
            && stat (c->list[i].target, &st) == 0 && S_ISREG (st.st_mode))
            bytes += st.st_size;
    return bytes <= OUTPUT_BYTES;
}

/* An empty folder is copied as well.  If only text is frozen, a folder without any is data and
 * linked as a whole.
 */
static int walk_whole (struct walk *w, const char *path, const char *full, const struct stat *st,
                       int depth)
{
    struct code_files *c = w->c;
    size_t before = c->n, links = c->nlinks + c->nfolders;

    if (walk_code_folder (w, path, depth) < 0)
        return -1;
    if (w->text && c->n > before && c->n - before == c->nlinks + c->nfolders - links
        && !may_be_output_folder (w, path, before)) {
        forget_files (w, before);
        return add_code_link (w, path, full, st);
    }
    return c->n == before ? add_code_file (w, path, NULL, st) : 0;
}

static int walk_linked (struct walk *w, const char *path, const struct stat *st, int depth)
{
    bool before = w->linked;
    size_t n = w->c->n;
    int rv;

    w->linked = true;
    rv = walk_code_folder (w, path, depth);
    w->linked = before;
    return rv == 0 && w->c->n == n ? add_code_file (w, path, NULL, st) : rv;
}

static int walk_entry (struct walk *w, const char *folder, const char *name, int depth)
{
    char path[PATH_MAX];
    char full[PATH_MAX];
    struct stat st;

    path_join (path, folder, name);
    if (snprintf (full, sizeof (full), "%s/%s", w->c->root, path) >= (int)sizeof (full))
        return 0;
    if (lstat (full, &st) < 0 || is_made_by_tools (full, name))
        return 0;
    if (is_frozen_file (w, path, &st))
        return add_code_file (w, path, NULL, &st);
    if (!S_ISDIR (st.st_mode) || depth >= DEPTH_MAX)
        return add_code_link (w, path, full, &st);
    if (is_root_or_below (w->experiments, full)
        || (!w->linked && is_frozen_folder (w, path, full, name)))
        return walk_whole (w, path, full, &st, depth + 1);
    if (is_mirrored (w, path, full, name))
        return walk_linked (w, path, &st, depth + 1);
    return add_code_link (w, path, full, &st);
}

static int no_dots (const struct dirent *d)
{
    return strcmp (d->d_name, ".") && strcmp (d->d_name, "..");
}

static bool is_too_much (const struct code_files *c)
{
    return c->n > FILES_MAX || c->bytes > BYTES_MAX;
}

/* A folder that cannot be read is linked as a whole. */
static int walk_code_folder (struct walk *w, const char *path, int depth)
{
    char full[PATH_MAX];
    struct dirent **list;
    struct stat st;
    int rv = 0;
    int n;

    path_join (full, w->c->root, path);
    if ((n = scandir (full, &list, no_dots, alphasort)) < 0)
        return *path && lstat (full, &st) == 0 ? add_code_file (w, path, full, &st) : -1;
    for (int i = 0; i < n; i++) {
        if (rv == 0 && !is_too_much (w->c))
            rv = walk_entry (w, path, list[i]->d_name, depth);
        free (list[i]);
    }
    free (list);
    return rv;
}

static void read_excluded (struct walk *w)
{
    char path[PATH_MAX];
    char *text;

    strings_add_all (&w->exclude, w->e->code->exclude);
    snprintf (path, sizeof (path), "%s/.dlignore", w->c->root);
    if ((text = file_text (path, IGNORE_MAX)))
        pattern_list_read (&w->exclude, text);
    free (text);
}

/* If the folder has too much, freeze only text, which is what a user edits. */
static int list_files (const struct experiment *e, const char *experiments, struct code_files *c)
{
    char own[PATH_MAX];
    struct walk w = { .c = c, .e = e, .experiments = realpath (experiments, own) ? own : "" };
    int rv;

    w.mask = umask (077);
    umask (w.mask);
    if (c->is_git && git_files_read (c->root, &w.git) < 0)
        c->is_git = false;
    read_excluded (&w);
    rv = walk_code_folder (&w, "", 0);
    if (rv == 0 && is_too_much (c)) {
        forget_files (&w, 0);
        w.text = c->is_text = true;
        rv = walk_code_folder (&w, "", 0);
    }
    git_files_free (&w.git);
    strings_free (w.exclude);
    return rv;
}

/* ---- all of it ---- */

static enum code_selection not_frozen (struct code_files *c, const char *why)
{
    snprintf (c->why, sizeof (c->why), "%.120s %s", c->root, why);
    return CODE_NONE;
}

/* DL_FREEZE switches freezing off for a user's experiments without editing each file. */
static bool freezing_is_off (void)
{
    const char *text = getenv ("DL_FREEZE");

    return text && (!strcmp (text, "false") || !strcmp (text, "0"));
}

static bool path_is_frozen (const struct code_files *c, const char *path)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp (c->list[i].path, path))
            return !c->list[i].target;
    return false;
}

enum code_selection code_select (const struct experiment *e, const char *experiments,
                                 struct code_files *c, struct slurmdl_error *err)
{
    *c = (struct code_files){ .root = NULL };
    if (!e->code->freeze || freezing_is_off ()) {
        c->is_off = command_uses_folder (e, c);
        *c->absolute = '\0';
        return CODE_NONE;
    }
    if (!command_uses_folder (e, c) && !e->code->path)
        return CODE_NONE;
    if (find_code_root (e, c, err) < 0)
        return CODE_INVALID;
    if (is_home (c->root))
        return not_frozen (c, "is a home folder: put the experiment file and its "
                              "code into a folder of their own");
    if (list_files (e, experiments, c) < 0)
        return not_frozen (c, "cannot be read");
    if (is_too_much (c))
        return not_frozen (c, "has more than 64 MiB or 20000 files: list what is not code in "
                              ".dlignore or code.exclude");
    if (*c->absolute && is_root_or_below (c->absolute, c->root)
        && path_is_frozen (c, c->absolute + strlen (c->root) + 1))
        *c->absolute = '\0';
    return c->n > c->nlinks + c->nfolders ? CODE_FROZEN : CODE_NONE;
}

void code_files_free (struct code_files *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free (c->list[i].path);
        free (c->list[i].target);
    }
    free (c->list);
    free (c->root);
    *c = (struct code_files){ .root = NULL };
}
