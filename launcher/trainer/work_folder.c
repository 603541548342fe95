/* SPDX-License-Identifier: Apache-2.0 */
/* The working folder of an attempt, and where its files go. */
#include "launcher/trainer/trainer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { IGNORE_MAX = 64 << 10 };

static bool work_is_copied (const struct trial_attempt *a)
{
    const struct experiment *e = a->sweep->exp;
    const char *below = sweep_code_below (a->sweep);
    size_t whole = strlen (e->dir);

    return e->code->work != WORK_SHARED && a->sweep->root && e->file_dir && strlen (below) <= whole
           && !strcmp (e->dir + whole - strlen (below), below);
}

/* The copy of the code, and that of one attempt; -1: the attempt has none. */
static int copy_folders_of (const struct trial_attempt *a, long number, char from[PATH_MAX],
                            char to[PATH_MAX])
{
    const struct experiment *e = a->sweep->exp;
    size_t whole;

    if (!work_is_copied (a))
        return -1;
    whole = strlen (e->dir) - strlen (sweep_code_below (a->sweep));
    if (snprintf (from, PATH_MAX, "%.*s", (int)whole, e->dir) >= PATH_MAX - 64)
        return -1;
    snprintf (to, PATH_MAX, "%.*s.%04ld.%ld", PATH_MAX - 64, from, a->trial, number);
    return 0;
}

void work_folder_name (struct trial_attempt *a)
{
    char from[PATH_MAX];
    char to[PATH_MAX];

    *a->work = '\0';
    if (copy_folders_of (a, a->number, from, to) == 0
        && snprintf (a->work, sizeof (a->work), "%s%s", to, sweep_code_below (a->sweep))
               >= (int)sizeof (a->work))
        *a->work = '\0';
}

/* ---- at its end ---- */

/* rename() fails if the folder is on another file system (the node's, or the home directory), or if
 * a trainer created a folder of that name: copy then.
 */
static int move_work (const char *from, int folder, const char *dir)
{
    char path[PATH_MAX];

    if (renameat (AT_FDCWD, from, folder, WORK_NAME) == 0)
        return 0;
    if ((errno != EXDEV && errno != EEXIST && errno != ENOTEMPTY)
        || (mkdirat (folder, WORK_NAME, 0777) < 0 && errno != EEXIST)
        || snprintf (path, sizeof (path), "%s/" WORK_NAME, dir) >= (int)sizeof (path)
        || working_copy_add (from, path, NULL) < 0)
        return -1;
    return remove_tree (from);
}

/* Call this when nothing runs in the copy 'to' of 'from' any more.  Moves what was written there to
 * the folder 'work' in 'dir'.
 */
static void take_work_folder (const char *from, const char *to, const char *dir)
{
    int folder = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);

    if (folder < 0)
        return;
    /* the link goes first: if we are killed in between, it must not lead to a folder that is gone
     */
    unlinkat (folder, WORK_NAME, 0);
    if (access (to, F_OK) == 0 && working_copy_prune (from, to) == COPY_WRITTEN)
        move_work (to, folder, dir);
    close (folder);
}

void work_folder_settle_earlier (const struct trial_attempt *a, long number)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    char dir[PATH_MAX];

    if (copy_folders_of (a, number, from, to) < 0)
        return;
    snprintf (dir, sizeof (dir), "%.*s/a.%ld", (int)(strrchr (a->dir, '/') - a->dir), a->dir,
              number);
    take_work_folder (from, to, dir);
}

static void unlink_work_link (const struct trial_attempt *a)
{
    int folder = inside_open (a->dir, O_RDONLY | O_DIRECTORY, 0, NULL);

    if (folder >= 0)
        unlinkat (folder, WORK_NAME, 0);
    inside_close (folder, 0);
}

/* The spare folder gets a name that only its worker knows, because whoever takes over a trial
 * cleans up the folder of its attempt.
 */
static bool keep_spare_folder (const struct trial_attempt *a)
{
    char from[PATH_MAX];
    char to[PATH_MAX];

    if (!a->spare || *a->spare || copy_folders_of (a, a->number, from, to) < 0
        || !working_copy_is_clean (from, to))
        return false;
    unlink_work_link (a);
    link_tmp_name (a->spare, SPARE_SIZE, from);
    if (rename (to, a->spare) == 0)
        return true;
    *a->spare = '\0';
    return false;
}

void work_folder_settle (const struct trial_attempt *a, bool keep)
{
    shared_files_note (a);
    if (*a->work && (!keep || !keep_spare_folder (a)))
        work_folder_settle_earlier (a, a->number);
}

/* ---- at its start ---- */

static char **excluded_patterns (const struct experiment *e, const char *root)
{
    char path[PATH_MAX];
    char **list = NULL;
    char *text;

    strings_add_all (&list, e->code->exclude);
    if (snprintf (path, sizeof (path), "%s/.dlignore", root) < (int)sizeof (path)
        && (text = file_text (path, IGNORE_MAX))) {
        pattern_list_read (&list, text);
        free (text);
    }
    return list;
}

/* Make 'to' a working copy of the frozen code in 'from'.  Files named by code.exclude or .dlignore
 * there are symbolic links instead.
 */
static int copy_work_folder (const struct experiment *e, const char *from, const char *to,
                             struct slurmdl_error *err)
{
    char **exclude = excluded_patterns (e, from);
    int rv = working_copy_make (from, to, exclude, err);

    strings_free (exclude);
    return rv;
}

void work_folder_show (const struct trial_attempt *a)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    int folder;

    if (!*a->work || copy_folders_of (a, a->number, from, to) < 0
        || (folder = inside_open (a->dir, O_RDONLY | O_DIRECTORY, 0, NULL)) < 0)
        return;
    /* the link is for people only */
    if (symlinkat (to, folder, WORK_NAME) < 0)
        errno = 0;
    close (folder);
}

static bool take_spare_folder (const struct trial_attempt *a, const char *to)
{
    bool took = a->spare && *a->spare && rename (a->spare, to) == 0;

    if (a->spare && *a->spare && !took)
        remove_tree (a->spare);
    if (a->spare)
        *a->spare = '\0';
    return took;
}

int work_folder_make (const struct trial_attempt *a, struct slurmdl_error *err)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    char last[PATH_MAX];
    int rv = 0;

    if (!*a->work && work_is_copied (a)) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: no working folder: its path would be longer than %d bytes",
                       a->sweep->exp->dir, PATH_MAX);
    }
    if (!*a->work || copy_folders_of (a, a->number, from, to) < 0)
        return 0;
    if (a->number > 1 && !a->own) /* its worker may have been killed */
        work_folder_settle_earlier (a, a->number - 1);
    if (!take_spare_folder (a, to))
        rv = copy_work_folder (a->sweep->exp, from, to, err);
    if (rv == 0 && a->sweep->exp->code->work == WORK_TRIAL
        && attempt_with_work (a, last, sizeof (last)) == 0)
        rv = working_copy_add (last, to, err);
    return rv;
}

/* ---- its command ---- */

static const char word_ends[] = " \t\n;|&()<>\"'=";

/* Whether it is a script of the frozen folder that is in the copy. */
static bool is_frozen_script (const char *from, const char *name, size_t len)
{
    char path[PATH_MAX];
    struct stat st;

    return code_is_script (name, len)
           && snprintf (path, sizeof (path), "%s%.*s", from, (int)len, name) < (int)sizeof (path)
           && lstat (path, &st) == 0 && S_ISREG (st.st_mode);
}

char *work_folder_command (const struct trial_attempt *a, const char *text)
{
    const char *root = a->sweep->root;
    char from[PATH_MAX];
    char to[PATH_MAX];
    char *out = NULL;
    size_t size;
    FILE *f;

    if (!*a->work || copy_folders_of (a, a->number, from, to) < 0)
        return xstrdup (text);
    f = xopen_memstream (&out, &size);
    while (*text) {
        size_t gap = strspn (text, word_ends);
        size_t len = strcspn (text + gap, word_ends);
        size_t n = strlen (root);
        fwrite (text, 1, gap, f);
        text += gap;
        if (len > n && !strncmp (text, root, n) && text[n] == '/'
            && is_frozen_script (from, text + n, len - n))
            fprintf (f, "%s%.*s", to, (int)(len - n), text + n);
        else
            fwrite (text, 1, len, f);
        text += len;
    }
    xclose_memstream (f);
    return out;
}
