/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a registry of models. */
#include "launcher/model/registry.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/model/model.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/take_file.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { ENTRY_MAX = 4 << 20, VERSIONS_MAX = 999999 };

/* ---- the folder ---- */

/* Another user's folder must have been named: what lies about in a folder that
 * all may write to is not taken for one's own.
 */
static int check_folder (const char *path, bool named, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (path, &st) < 0)
        return errorf (err, "%s: %s", path, strerror (errno));
    errno = EPERM;
    if (st.st_mode & S_IWOTH)
        return errorf (err,
                       "%s: everybody may write to this registry: chmod "
                       "o-w, or name another one with --models",
                       path);
    if (!named && st.st_uid != geteuid () && st.st_uid != 0)
        return errorf (err,
                       "%s: belongs to user %u: if you trust that user, "
                       "name it with --models",
                       path, (unsigned)st.st_uid);
    return 0;
}

int registry_open (struct registry *r, const struct command_line *line, bool make,
                   struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    bool named = opt->models && *opt->models;
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s%s", named ? opt->models : line->dir, named ? "" : "/models");
    if (make && mkdir (path, 0777) < 0 && errno != EEXIST)
        return errorf (err, "%s: cannot make: %s", path, strerror (errno));
    if (!realpath (path, r->dir)) {
        if (errno != ENOENT)
            return errorf (err, "%s: %s", path, strerror (errno));
        return errorf (err,
                       "%s: there is no registry; dl model register makes "
                       "one, --models or DL_MODELS names another folder",
                       path);
    }
    return check_folder (r->dir, named, err);
}

int registry_open_to_write (struct registry *r, const struct command_line *line, bool make,
                            struct slurmdl_error *err)
{
    int rv = registry_open (r, line, make, err);

    if (rv == 0)
        share_umask (r->dir);
    return rv;
}

/* ---- names ---- */

static bool is_model_name (const char *text)
{
    size_t n = strlen (text);

    return n >= 1 && n <= MODEL_NAME_MAX && *text != '.'
           && strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789._-")
                  == n;
}

int model_name_check (const char *name, struct slurmdl_error *err)
{
    if (is_model_name (name))
        return 0;
    errno = EINVAL;
    return errorf (err,
                   "'%.80s' is no name: 1 to 64 letters, digits, '.', '_' and "
                   "'-', not '.' first",
                   name);
}

static int split_reference (const char *text, struct model_reference *ref)
{
    size_t n = strcspn (text, "/@");
    char *end = NULL;

    *ref = (struct model_reference){ 0 };
    if (n > MODEL_NAME_MAX)
        return -1;
    memcpy (ref->name, text, n);
    if (text[n] == '/' && isdigit ((unsigned char)text[n + 1])) {
        ref->version = strtol (text + n + 1, &end, 10);
        if (*end || ref->version < 1 || ref->version > VERSIONS_MAX)
            return -1;
    } else if (text[n] == '@' && is_model_name (text + n + 1))
        strcpy (ref->stage, text + n + 1);
    else if (text[n])
        return -1;
    return is_model_name (ref->name) ? 0 : -1;
}

/* ---- entries ---- */

static int registry_entry_path (const struct registry *r, const char *name, const char *kind,
                                long number, char path[PATH_MAX])
{
    if (snprintf (path, PATH_MAX, "%s/%s/%s-%04ld.json", r->dir, name, kind, number) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int registry_entry (const struct registry *r, const char *name, const char *kind, long number,
                    struct model_entry *entry, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    json_error_t why;
    char *text;

    if (registry_entry_path (r, name, kind, number, path) < 0)
        return errorf (err, "%s: %s", r->dir, strerror (errno));
    text = file_read_now (path, ENTRY_MAX, NULL, &entry->owner, err);
    if (!text) {
        if (errno == ENOENT && err)
            *err->text = '\0';
        return errno == ENOENT ? 0 : -1;
    }
    entry->json = json_loads (text, JSON_REJECT_DUPLICATES, &why);
    free (text);
    if (json_is_object (entry->json))
        return 1;
    json_decref (entry->json);
    entry->json = NULL;
    errno = EBADMSG;
    return errorf (err, "%s: damaged: %.80s", path, why.text);
}

bool registry_has (const struct registry *r, const char *name, const char *kind, long number)
{
    char path[PATH_MAX];
    struct stat st;

    return registry_entry_path (r, name, kind, number, path) == 0 && lstat (path, &st) == 0;
}

static long last_entry_number (const struct registry *r, const char *name, const char *kind)
{
    char path[PATH_MAX];
    long n = 0;
    int fd;

    while (n < VERSIONS_MAX && registry_entry_path (r, name, kind, n + 1, path) == 0
           && (fd = inside_open (path, O_RDONLY, 0, NULL)) >= 0) {
        close (fd);
        n++;
    }
    return n;
}

long registry_put (const struct registry *r, const char *name, const char *kind, json_t *entry,
                   struct slurmdl_error *err)
{
    char path[PATH_MAX];
    int rv = 1;
    long n;

    snprintf (path, sizeof (path), "%s/%s", r->dir, name);
    if (folder_create (path, err) < 0)
        return -1;
    for (n = last_entry_number (r, name, kind); rv == 1 && n < VERSIONS_MAX;) {
        char *text = NULL;
        json_object_set_new (entry, "number", json_integer (++n));
        if (registry_entry_path (r, name, kind, n, path) < 0
            || !(text = json_dumps (entry, JSON_INDENT (2))))
            return errorf (err, "%s: cannot write an entry", r->dir);
        /* nobody could list the registry any more */
        if (strlen (text) > ENTRY_MAX) {
            free (text);
            snprintf (path, sizeof (path), "%s/%s", r->dir, name);
            rmdir (path); /* if it was made for this entry */
            errno = EFBIG;
            return errorf (err,
                           "%s: the entry has more than %d bytes: what "
                           "the experiment says of itself is too long",
                           r->dir, ENTRY_MAX);
        }
        rv = publish_if_absent (path, text, strlen (text), err);
        free (text);
    }
    return rv == 0 ? n : -1;
}

/* ---- stages ---- */

int registry_entries (const struct registry *r, const char *name, const char *kind,
                      void (*f) (const json_t *entry, void *arg), void *arg,
                      struct slurmdl_error *err)
{
    struct model_entry e = { .json = NULL };
    int rv;

    for (long n = 1; (rv = registry_entry (r, name, kind, n, &e, err)) == 1; n++) {
        f (e.json, arg);
        json_decref (e.json);
    }
    return rv;
}

/* The last entry of a stage counts. */
static void keep_stage (const json_t *entry, void *stages)
{
    const char *stage = entry_text (entry, NULL, "stage");

    if (stage && is_model_name (stage))
        json_object_set_new (stages, stage, json_integer (entry_int (entry, NULL, "version")));
}

static int read_stages (const struct registry *r, const char *name, json_t *stages,
                        struct slurmdl_error *err)
{
    return registry_entries (r, name, "stage", keep_stage, stages, err);
}

char *registry_stages (const struct registry *r, const char *name, long version,
                       struct slurmdl_error *err)
{
    json_t *stages = json_object (), *of;
    char *text;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);
    const char *stage;
    int rv = read_stages (r, name, stages, err);

    json_object_foreach (stages, stage, of)
        if (rv == 0 && json_integer_value (of) == version)
            fprintf (f, "%s%s", ftell (f) > 0 ? ", " : "", stage);
    json_decref (stages);
    xclose_memstream (f);
    if (rv == 0)
        return text;
    free (text);
    return NULL;
}

int registry_resolve (const struct registry *r, const char *text, struct model_reference *ref,
                      struct slurmdl_error *err)
{
    json_t *stages;
    long last;
    int rv = 0;

    if (split_reference (text, ref) < 0) {
        errno = EINVAL;
        return errorf (err, "'%.80s' is none of NAME, NAME/VERSION and NAME@STAGE", text);
    }
    if (*ref->stage) {
        stages = json_object ();
        rv = read_stages (r, ref->name, stages, err);
        ref->version = (long)json_integer_value (json_object_get (stages, ref->stage));
        json_decref (stages);
    }
    last = last_entry_number (r, ref->name, "version");
    if (!*ref->stage && !ref->version)
        for (ref->version = last; ref->version > 0; ref->version--)
            if (!registry_has (r, ref->name, "removed", ref->version))
                break;
    if (rv < 0
        || (ref->version >= 1 && ref->version <= last
            && !registry_has (r, ref->name, "removed", ref->version)))
        return rv;
    errno = ENOENT;
    return errorf (err, "%s: no model '%.80s' (dl model ls lists them)", r->dir, text);
}

/* ---- all names ---- */

static int is_listed_entry (const struct dirent *e)
{
    return is_model_name (e->d_name);
}

int registry_each (const struct registry *r, int (*f) (const char *name, void *arg), void *arg,
                   struct slurmdl_error *err)
{
    struct dirent **list;
    int n = scandir (r->dir, &list, is_listed_entry, alphasort);
    int rv = 0;

    if (n < 0)
        return errorf (err, "%s: %s", r->dir, strerror (errno));
    for (int i = 0; i < n; i++) {
        if (rv == 0)
            rv = f (list[i]->d_name, arg);
        free (list[i]);
    }
    free (list);
    return rv;
}

/* ---- checkpoints ---- */

static void copy_path (const struct registry *r, const char *digest, long copy, char path[PATH_MAX])
{
    char number[24] = "";

    if (copy > 0)
        snprintf (number, sizeof (number), ".%ld", copy);
    snprintf (path, PATH_MAX, "%s/.checkpoints/%s%s.h5", r->dir, digest, number);
}

int registry_checkpoint (const struct registry *r, const json_t *version, char path[PATH_MAX],
                         struct slurmdl_error *err)
{
    const char *digest = entry_text (version, "checkpoint", "sha256");

    if (digest && strlen (digest) == DIGEST_SIZE - 1
        && strspn (digest, "0123456789abcdef") == DIGEST_SIZE - 1) {
        copy_path (r, digest, entry_int (version, "checkpoint", "copy"), path);
        return 0;
    }
    errno = EBADMSG;
    return errorf (err, "%s: the entry names no checkpoint", r->dir);
}

/* The bytes that the digest is of are those that stay: it is computed from the
 * registry's own file.  No two versions share one, so that each may go.
 */
static json_t *settle_entry (const struct registry *r, const char *tmp, struct slurmdl_error *err)
{
    char path[PATH_MAX], digest[DIGEST_SIZE];
    int64_t step;
    int fd = inside_open (tmp, O_RDONLY, 0, NULL);
    int rv = fd < 0 ? -1 : inside_close (fd, digest_of_file (digest, fd));
    enum link_result linked = LINK_TAKEN;
    long copy;

    if (rv < 0)
        errorf (err, "%s: %s", tmp, inside_error (errno));
    if (rv < 0 || slurmdl_checkpoint_verify (tmp, &step, err) < 0)
        return NULL;
    for (copy = 0; linked == LINK_TAKEN && copy < VERSIONS_MAX; copy++) {
        copy_path (r, digest, copy, path);
        linked = link_if_absent (tmp, path);
    }
    if (linked == LINKED)
        return json_pack ("{s:s, s:I}", "sha256", digest, "copy", (json_int_t)copy - 1);
    errorf (err, "%s: %s", path, strerror (errno));
    return NULL;
}

json_t *registry_keep (const struct registry *r, const char *from, struct slurmdl_error *err)
{
    char path[PATH_MAX], tmp[PATH_MAX];
    json_t *kept;

    snprintf (path, sizeof (path), "%s/.checkpoints", r->dir);
    if (folder_create (path, err) < 0)
        return NULL;
    copy_path (r, "new", 0, path);
    link_tmp_name (tmp, sizeof (tmp), path);
    if (file_take (from, tmp) < 0) {
        errorf (err, "%s: cannot keep it in %s: %s", from, r->dir, inside_error (errno));
        return NULL;
    }
    kept = settle_entry (r, tmp, err);
    int e = errno;
    if (!kept)
        inside_unlink (tmp, 0);
    errno = e;
    return kept;
}

/* Whoever puts the entry removes the file: its name may then be that of another
 * version.
 */
int registry_remove (const struct registry *r, const char *name, long version, const json_t *entry,
                     struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct model_entry e = { .json = NULL };
    char *text = json_dumps (entry, JSON_INDENT (2));
    int rv = text ? registry_entry_path (r, name, "removed", version, path) : -1;

    if (rv == 0)
        rv = publish_if_absent (path, text, strlen (text), err);
    free (text);
    if (rv == 0 && registry_entry (r, name, "version", version, &e, NULL) == 1
        && registry_checkpoint (r, e.json, path, NULL) == 0 && inside_unlink (path, 0) < 0
        && errno != ENOENT)
        rv = errorf (err, "%s: %s", path, inside_error (errno));
    json_decref (e.json);
    return rv < 0 ? -1 : 0;
}

/* ---- values ---- */

static const json_t *entry_member (const json_t *entry, const char *group, const char *key)
{
    return json_object_get (group ? json_object_get (entry, group) : entry, key);
}

const char *entry_text (const json_t *entry, const char *group, const char *key)
{
    return json_string_value (entry_member (entry, group, key));
}

json_int_t entry_int (const json_t *entry, const char *group, const char *key)
{
    const json_t *v = entry_member (entry, group, key);

    return json_is_integer (v) ? json_integer_value (v) : -1;
}
