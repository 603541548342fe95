/* SPDX-License-Identifier: Apache-2.0 */
/* dl model: a registry of named, versioned checkpoints. */
#include "launcher/model/model.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/subcommand.h"
#include "launcher/sys/take_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* ---- the files of a registry ---- */

/* Each model has a directory.  The entries NAME/version-0001.json, stage-0001.json,
 * note-0001.json and so on get the next free number and never change.  The last stage
 * entry with a stage's name decides which version has that stage, and the last note of
 * a version counts.  NAME/removed-0001.json marks version 1 as removed.
 *
 * The checkpoints are .checkpoints/DIGEST.h5, DIGEST.1.h5 and so on, one for each
 * version.
 */
struct registry {
    char dir[PATH_MAX]; /* canonical */
    bool is_new;        /* this command created it */
};

enum { MODEL_NAME_MAX = 64 };

struct model_entry {
    json_t *json;
    uid_t owner; /* the owner of the file */
};

/* "NAME", "NAME/3" or "NAME@production" */
struct model_reference {
    char name[MODEL_NAME_MAX + 1];
    char stage[MODEL_NAME_MAX + 1]; /* "" if not given */
    long version;                   /* 0 if not given */
};

enum { ENTRY_MAX = 4 << 20, VERSIONS_MAX = 999999 };

/* ---- the registry's directory ---- */

/* Another user's registry must be named explicitly, because anyone could create one in
 * a directory that everyone can write to.
 */
static int check_folder (const char *path, bool named, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (path, &st) < 0)
        return errorf (err, "%s: %s", path, strerror (errno));
    errno = EPERM;
    if (st.st_mode & S_IWOTH)
        return errorf (err,
                       "%s: this registry is world-writable: chmod "
                       "o-w, or name another one with --models",
                       path);
    if (!named && st.st_uid != geteuid () && st.st_uid != 0)
        return errorf (err, "%s: belongs to user %u: if you trust that user, name it with --models",
                       path, (unsigned)st.st_uid);
    return 0;
}

/* Open the registry of --models, or "models" in the directory of the experiments.  With
 * 'make', create it if it does not exist.  Returns -1 with 'err' on failure, also if
 * the registry is world-writable.
 */
static int registry_open (struct registry *r, const struct command_line *line, bool make,
                          struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    bool named = opt->models && *opt->models;
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s%s", named ? opt->models : line->dir, named ? "" : "/models");
    r->is_new = make && mkdir (path, 0777) == 0;
    if (make && !r->is_new && errno != EEXIST)
        return errorf (err, "%s: cannot create: %s", path, strerror (errno));
    if (!realpath (path, r->dir)) {
        if (errno != ENOENT)
            return errorf (err, "%s: %s", path, strerror (errno));
        return errorf (err,
                       "%s: there is no registry; dl model register creates "
                       "one, --models or DL_MODELS names another folder",
                       path);
    }
    return check_folder (r->dir, named, err);
}

/* Open the registry for writing.  New entries get the permissions of a shared group. */
static int registry_open_to_write (struct registry *r, const struct command_line *line, bool make,
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
           && strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
                  == n;
}

/* A name has letters, digits, '.', '_' and '-', and does not begin with '.'.  Fails
 * with EINVAL.
 */
static int model_name_check (const char *name, struct slurmdl_error *err)
{
    if (is_model_name (name))
        return 0;
    errno = EINVAL;
    return errorf (err,
                   "'%.80s' is not a valid name: use 1 to 64 letters, digits, '.', '_' "
                   "and '-', not '.' first",
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

/* ---- values ---- */

static const json_t *entry_member (const json_t *entry, const char *group, const char *key)
{
    return json_object_get (group ? json_object_get (entry, group) : entry, key);
}

/* Return a member of the entry or of an object in it, or NULL (or -1) if it does not
 * exist.
 */
static const char *entry_text (const json_t *entry, const char *group, const char *key)
{
    return json_string_value (entry_member (entry, group, key));
}

static json_int_t entry_int (const json_t *entry, const char *group, const char *key)
{
    const json_t *v = entry_member (entry, group, key);

    return json_is_integer (v) ? json_integer_value (v) : -1;
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

enum entry_read {
    ENTRY_DAMAGED, /* or it cannot be read; 'err' says why */
    ENTRY_MISSING,
    ENTRY_READ,
};

/* Read an entry.  'kind' is "version", "stage", "note" or "removed".  The caller owns entry->json.
 */
static enum entry_read registry_entry (const struct registry *r, const char *name, const char *kind,
                                       long number, struct model_entry *entry,
                                       struct slurmdl_error *err)
{
    char path[PATH_MAX];
    json_error_t why;
    char *text;

    if (registry_entry_path (r, name, kind, number, path) < 0) {
        errorf (err, "%s: %s", r->dir, strerror (errno));
        return ENTRY_DAMAGED;
    }
    text = file_read_now (path, ENTRY_MAX, NULL, &entry->owner, err);
    if (!text) {
        if (errno == ENOENT && err)
            *err->text = '\0';
        return errno == ENOENT ? ENTRY_MISSING : ENTRY_DAMAGED;
    }
    entry->json = json_loads (text, JSON_REJECT_DUPLICATES, &why);
    free (text);
    if (json_is_object (entry->json))
        return ENTRY_READ;
    json_decref (entry->json);
    entry->json = NULL;
    errno = EBADMSG;
    errorf (err, "%s: damaged: %.80s", path, why.text);
    return ENTRY_DAMAGED;
}

/* Whether a file of any type exists at the entry's path. */
static bool registry_has (const struct registry *r, const char *name, const char *kind, long number)
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

/* Add an entry under the next free number, which is stored in its "number" and
 * returned.  Returns -1 with 'err' on failure.  The caller keeps 'entry'.
 */
static long registry_put (const struct registry *r, const char *name, const char *kind,
                          json_t *entry, struct slurmdl_error *err)
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
        /* an entry that is too large would make the registry unreadable */
        if (strlen (text) > ENTRY_MAX) {
            free (text);
            errno = EFBIG;
            return errorf (
                err,
                "%s: the entry has more than %d bytes: the experiment's description is too long",
                r->dir, ENTRY_MAX);
        }
        rv = publish_if_absent (path, text, strlen (text), err);
        free (text);
    }
    return rv == 0 ? n : -1;
}

/* ---- stages ---- */

static int registry_entries (const struct registry *r, const char *name, const char *kind,
                             void (*f) (const json_t *entry, void *arg), void *arg,
                             struct slurmdl_error *err)
{
    struct model_entry e = { .json = NULL };
    enum entry_read got;

    for (long n = 1; (got = registry_entry (r, name, kind, n, &e, err)) == ENTRY_READ; n++) {
        f (e.json, arg);
        json_decref (e.json);
    }
    return got == ENTRY_DAMAGED ? -1 : 0;
}

/* The last entry of a stage wins. */
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

/* Return the stages of a version, as "staging, production".  The caller frees the text.
 * Returns NULL with 'err' on failure.
 */
static char *registry_stages (const struct registry *r, const char *name, long version,
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

/* Parse a reference and find the version that it means.  Fails with ENOENT if there is
 * none.
 */
static int registry_resolve (const struct registry *r, const char *text,
                             struct model_reference *ref, struct slurmdl_error *err)
{
    json_t *stages;
    long last;
    int rv = 0;

    if (split_reference (text, ref) < 0) {
        errno = EINVAL;
        return errorf (err, "'%.80s' is not one of NAME, NAME/VERSION and NAME@STAGE", text);
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

/* Call 'f' for each name, sorted, until it returns nonzero. */
static int registry_each (const struct registry *r, int (*f) (const char *name, void *arg),
                          void *arg, struct slurmdl_error *err)
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

/* Find the path of a version's checkpoint.  Fails with EBADMSG if the entry names none.
 */
static int registry_checkpoint (const struct registry *r, const json_t *version,
                                char path[PATH_MAX], struct slurmdl_error *err)
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

/* Give the temporary copy its final name.  The digest is computed from the registry's
 * own file, so that it matches the bytes that are kept.  No two versions share a file,
 * so each can be removed.
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

/* Keep a verified hard link to or copy of the checkpoint 'from' in the registry.
 * Returns an object with its "sha256" and "copy", or NULL with 'err'.
 */
static json_t *registry_keep (const struct registry *r, const char *from, struct slurmdl_error *err)
{
    char path[PATH_MAX], tmp[PATH_MAX];
    json_t *kept;

    snprintf (path, sizeof (path), "%s/.checkpoints", r->dir);
    if (folder_create (path, err) < 0)
        return NULL;
    copy_path (r, "new", 0, path);
    link_tmp_name (tmp, sizeof (tmp), path);
    if (file_take (from, tmp) < 0) {
        errorf (err, "%s: cannot copy it to %s: %s", from, r->dir, inside_error (errno));
        return NULL;
    }
    kept = settle_entry (r, tmp, err);
    int e = errno;
    if (!kept)
        inside_unlink (tmp, 0);
    errno = e;
    return kept;
}

/* Only the process that adds the entry removes the file, because later the path may
 * belong to another version.
 */
static int registry_remove (const struct registry *r, const char *name, long version,
                            const json_t *entry, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct model_entry e = { .json = NULL };
    char *text = json_dumps (entry, JSON_INDENT (2));
    int rv = text ? registry_entry_path (r, name, "removed", version, path) : -1;

    if (rv == 0)
        rv = publish_if_absent (path, text, strlen (text), err);
    free (text);
    if (rv == 0 && registry_entry (r, name, "version", version, &e, NULL) == ENTRY_READ
        && registry_checkpoint (r, e.json, path, NULL) == 0 && inside_unlink (path, 0) < 0
        && errno != ENOENT)
        rv = errorf (err, "%s: %s", path, inside_error (errno));
    json_decref (e.json);
    return rv < 0 ? -1 : 0;
}

/* ---- notes, stages and removal ---- */

/* A registry, the version that line->args[1] means, and a new entry about it. */
struct model_mark {
    struct registry r;
    struct model_reference ref;
    json_t *entry;
};

static int mark_open (struct model_mark *m, const struct command_line *line,
                      struct slurmdl_error *err)
{
    *m = (struct model_mark){ .entry = NULL };
    if (registry_open_to_write (&m->r, line, false, err) < 0
        || registry_resolve (&m->r, line->args[1], &m->ref, err) < 0)
        return -1;
    m->entry =
        json_pack ("{s:s, s:I, s:f, s:s}", "model", m->ref.name, "version",
                   (json_int_t)m->ref.version, "time", (double)time (NULL), "by", user_name ());
    return 0;
}

/* Add an entry that has 'text' under the name of its kind. */
static int mark_put (const struct command_line *line, const char *kind, const char *text,
                     struct model_mark *m, struct slurmdl_error *err)
{
    int rv = mark_open (m, line, err);
    json_t *value = rv < 0 ? NULL : json_string (text);

    if (rv == 0 && !value) {
        errno = EINVAL;
        rv = errorf (err, "the %s is not UTF-8", kind);
    }
    if (rv == 0) {
        json_object_set_new (m->entry, kind, value);
        rv = registry_put (&m->r, m->ref.name, kind, m->entry, err) < 0 ? -1 : 0;
    }
    json_decref (m->entry);
    return rv;
}

static int model_promote (const struct command_line *line)
{
    const char *stage = line->args[2];
    struct slurmdl_error err = { "" };
    struct model_mark m;

    if (model_name_check (stage, &err) < 0 || mark_put (line, "stage", stage, &m, &err) < 0)
        return fail (&err);
    printf ("%s/%ld is %s@%s\n", m.ref.name, m.ref.version, m.ref.name, stage);
    return EXIT_OK;
}

static int model_note (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct model_mark m;

    if (mark_put (line, "note", line->args[2], &m, &err) < 0)
        return fail (&err);
    printf ("%s/%ld: %s\n", m.ref.name, m.ref.version, *line->args[2] ? "noted" : "note removed");
    return EXIT_OK;
}

/* ---- rm ---- */

/* Refuse to remove a version that has a stage, because it may be in use. */
static int may_remove (const struct model_mark *m, long version, struct slurmdl_error *err)
{
    char *stages = registry_stages (&m->r, m->ref.name, version, err);
    int rv = stages ? 0 : -1;

    if (stages && *stages) {
        errno = EINVAL;
        rv = errorf (err, "%s/%ld is %s: promote another version, or --force removes it",
                     m->ref.name, version, stages);
    }
    int e = errno;
    free (stages);
    errno = e;
    return rv;
}

/* Without a version or a stage, remove all versions up to the newest one. */
static int remove_model (const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    bool all = !strpbrk (line->args[1], "/@");
    struct model_mark m;
    int rv = mark_open (&m, line, err);
    long last = m.ref.version, first = all ? 1 : last;

    for (long n = first; rv == 0 && !opt->force && n <= last; n++)
        if (!registry_has (&m.r, m.ref.name, "removed", n))
            rv = may_remove (&m, n, err);
    for (long n = last; rv == 0 && n >= first; n--) {
        if (registry_has (&m.r, m.ref.name, "removed", n))
            continue;
        json_object_set_new (m.entry, "version", json_integer (n));
        if ((rv = registry_remove (&m.r, m.ref.name, n, m.entry, err)) == 0)
            printf ("%s/%ld is removed\n", m.ref.name, n);
    }
    json_decref (m.entry);
    return rv;
}

static int model_rm (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return remove_model (line, &err) == 0 ? EXIT_OK : fail (&err);
}

/* ---- export ---- */

/* Copy a checkpoint and compare the digest of the written file, not of what was read.
 * 'written' is the digest of the file including the mark of who owns the data.
 */
static int put_model_checkpoint (const char *from, const char *digest, const char *path, bool trust,
                                 char written[DIGEST_SIZE], struct slurmdl_error *err)
{
    char got[DIGEST_SIZE] = "";
    int64_t bytes;
    int in, out, rv;

    if ((in = inside_open (from, O_RDONLY, 0, NULL)) < 0)
        return errorf (err, "%s: %s", from, inside_error (errno));
    out = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    rv = out < 0 ? -1 : digest_copy (in, out, got, &bytes);
    if (rv == 0)
        rv = digest_of_file (got, out);
    if (rv == 0 && !strcmp (got, digest))
        rv = file_keep_owner (in, out, path, trust);
    if (rv >= 0 && (rv = fsync (out)) == 0)
        rv = digest_of_file (written, out);
    rv = inside_close (in, inside_close (out, rv));
    if (rv < 0)
        return errorf (err, "%s: cannot write: %s", path, strerror (errno));
    if (!strcmp (got, digest))
        return 0;
    errno = EBADMSG;
    return errorf (err, "%s: damaged: its SHA-256 is %.64s", from, got);
}

static int put_model_text (const char *dir, const char *name, const char *text,
                           char digest[DIGEST_SIZE], struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    digest_of (digest, text, strlen (text));
    return publish_if_absent (path, text, strlen (text), err) < 0 ? -1 : 0;
}

static int put_model_json (const char *dir, const char *name, const json_t *o,
                           char digest[DIGEST_SIZE], struct slurmdl_error *err)
{
    char *text = json_string_of (o, JSON_INDENT (2));
    int rv = put_model_text (dir, name, text, digest, err);

    free (text);
    return rv;
}

/* Write SHA256SUMS last: a directory without it is incomplete. */
static int put_files (const struct registry *r, const char *dir, bool trust, json_t *entry,
                      struct slurmdl_error *err)
{
    const char *digest = entry_text (entry, "checkpoint", "sha256");
    json_t *hparams = json_object_get (json_object_get (entry, "experiment"), "hyperparameters");
    char of_model[DIGEST_SIZE], of_hparams[DIGEST_SIZE];
    char of_manifest[DIGEST_SIZE], unused[DIGEST_SIZE];
    char from[PATH_MAX], path[PATH_MAX], sums[4 * DIGEST_SIZE + 200];

    snprintf (path, sizeof (path), "%s/model.h5", dir);
    if (registry_checkpoint (r, entry, from, err) < 0
        || put_model_checkpoint (from, digest, path, trust, of_model, err) < 0
        || put_model_json (dir, "hparams.json", hparams, of_hparams, err) < 0)
        return -1;
    json_object_set_new (
        entry, "files", json_pack ("{s:s, s:s}", "model.h5", of_model, "hparams.json", of_hparams));
    if (put_model_json (dir, "manifest.json", entry, of_manifest, err) < 0)
        return -1;
    snprintf (sums, sizeof (sums), "%s  model.h5\n%s  hparams.json\n%s  manifest.json\n", of_model,
              of_hparams, of_manifest);
    return put_model_text (dir, "SHA256SUMS", sums, unused, err);
}

static int make_model_folder (const char *path, char dir[PATH_MAX], struct slurmdl_error *err)
{
    if (mkdir (path, 0777) < 0) {
        int e = errno;
        errorf (err, "%s: %s%s", path, strerror (e), e == EEXIST ? "; name a new folder" : "");
        errno = e == EEXIST ? EINVAL : e;
        return -1;
    }
    return realpath (path, dir) ? 0 : errorf (err, "%s: %s", path, strerror (errno));
}

/* After a failure, leave no directory that looks like a model. */
static void remove_model_folder (const char *dir)
{
    static const char *const names[] = { "SHA256SUMS", "manifest.json", "hparams.json",
                                         "model.h5" };
    char path[PATH_MAX];
    int e = errno;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++) {
        snprintf (path, sizeof (path), "%s/%s", dir, names[i]);
        unlink (path);
    }
    rmdir (dir);
    errno = e;
}

static int export_model (const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct model_reference ref;
    struct model_entry e;
    struct registry r;
    char dir[PATH_MAX];
    int rv;

    if (registry_open (&r, line, false, err) < 0
        || registry_resolve (&r, line->args[1], &ref, err) < 0
        || registry_entry (&r, ref.name, "version", ref.version, &e, err) != ENTRY_READ)
        return -1;
    if ((rv = make_model_folder (line->args[2], dir, err)) == 0
        && (rv = put_files (&r, dir, opt->trust, e.json, err)) < 0)
        remove_model_folder (dir);
    json_decref (e.json);
    if (rv == 0)
        printf ("%s/%ld: %s, all digests match\n", ref.name, ref.version, line->args[2]);
    return rv;
}

static int model_export (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return export_model (line, &err) == 0 ? EXIT_OK : fail (&err);
}

/* ---- lists ---- */

/* The owner of the file wrote the entry, whatever its content claims. */
static void model_value_text (const json_t *entry, char *buf, size_t size)
{
    const json_t *v = json_object_get (json_object_get (entry, "metric"), "value");

    if (json_is_number (v))
        snprintf (buf, size, "%.6g", json_number_value (v));
    else
        snprintf (buf, size, "%.20s", json_is_string (v) ? json_string_value (v) : "");
}

static const char *shown_or_empty (const char *text)
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
        last->text = xstrdup (text);
    }
}

/* Return the last note of a version, or "".  The caller frees it. */
static char *note_of (const struct registry *r, const char *name, long version,
                      struct slurmdl_error *err)
{
    struct last_note last = { version, xstrdup ("") };

    if (registry_entries (r, name, "note", keep_note, &last, err) == 0)
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

static void add_model_line (const struct model_listing *l, const char *name,
                            const struct model_entry *e, const char *stages)
{
    struct libscols_line *line = table_line (l->tb);
    char value[32], when[32];
    char *note = note_of (l->r, name, entry_int (e->json, NULL, "number"), NULL);

    model_value_text (e->json, value, sizeof (value));
    time_text (when, sizeof (when), json_number_value (json_object_get (e->json, "time")));
    table_set (line, 0, "%s", name);
    table_set (line, 1, "%lld", (long long)entry_int (e->json, NULL, "number"));
    table_set (line, 2, "%s", stages);
    table_set (line, 3, "%s", shown_or_empty (entry_text (e->json, "metric", "name")));
    table_set (line, 4, "%s", value);
    table_set (line, 5, "%lld", (long long)entry_int (e->json, "checkpoint", "step"));
    table_set (line, 6, "%s", shown_or_empty (entry_text (e->json, "experiment", "name")));
    table_set (line, 7, "%lld", (long long)entry_int (e->json, "experiment", "trial"));
    table_set (line, 8, "%s", when);
    table_set (line, 9, "%s", user_name_of (e->owner));
    table_set (line, 10, "%s", note ? note : "?");
    free (note);
}

static void complain_damaged_entry (struct model_listing *l, const struct slurmdl_error *err)
{
    complain ("%s", err->text);
    l->damaged = true;
}

/* A damaged entry, which anyone in the group might have created, must not hide the
 * others.
 */
static int list_versions (const char *name, void *arg)
{
    struct model_listing *l = arg;
    struct slurmdl_error err = { "" };
    struct model_entry e;
    bool more = true;

    for (long n = 1; more; n++) {
        char *stages;
        if (registry_has (l->r, name, "removed", n))
            continue;
        switch (registry_entry (l->r, name, "version", n, &e, &err)) {
        case ENTRY_DAMAGED:
            complain_damaged_entry (l, &err);
            more = registry_has (l->r, name, "version", n);
            break;
        case ENTRY_MISSING:
            more = false;
            break;
        case ENTRY_READ:
            if (!(stages = registry_stages (l->r, name, n, &err)))
                complain_damaged_entry (l, &err);
            add_model_line (l, name, &e, stages ? stages : "?");
            free (stages);
            json_decref (e.json);
        }
    }
    return 0;
}

static int list_models (const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct registry r;
    struct model_listing l = { &r, NULL, false };
    int rv;

    if (registry_open (&r, line, false, err) < 0
        || (line->args[1] && model_name_check (line->args[1], err) < 0))
        return -1;
    l.tb = table_create ("versions", version_columns, opt->json);
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

static int model_ls (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    int rv = list_models (line, &err);

    return rv < 0 ? fail (&err) : rv > 0 ? EXIT_DAMAGED : EXIT_OK;
}

/* Format a value as dl best does.  The caller frees the text. */
static char *shown_text (const char *name, const json_t *v)
{
    char text[64];

    if (!strcmp (name, "metric.value") && json_is_real (v))
        snprintf (text, sizeof (text), "%.6g", json_real_value (v));
    else if (!strcmp (name, "time") && json_is_number (v))
        time_text (text, sizeof (text), json_number_value (v));
    else
        return json_text (v);
    return xstrdup (text);
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
        printf ("%-36s %s\n", name, shown_or_empty (text));
        free (text);
    }
}

static void print_model_entry (const struct model_options *opt, const struct model_entry *e,
                               const char *stages, const char *note)
{
    json_object_set_new (e->json, "stages", json_string (stages));
    json_object_set_new (e->json, "note", json_string (note));
    json_object_set_new (e->json, "owner", json_string (user_name_of (e->owner)));
    if (!opt->json)
        print_values (e->json, "");
    else if (json_put (e->json, stdout, JSON_INDENT (2)) == 0)
        puts ("");
}

static int show_models (const struct command_line *line, struct slurmdl_error *err)
{
    struct model_reference ref;
    struct model_entry e;
    struct registry r;
    char *stages, *note = NULL;
    int rv = -1;

    if (registry_open (&r, line, false, err) < 0
        || registry_resolve (&r, line->args[1], &ref, err) < 0
        || registry_entry (&r, ref.name, "version", ref.version, &e, err) != ENTRY_READ)
        return -1;
    if ((stages = registry_stages (&r, ref.name, ref.version, err))
        && (note = note_of (&r, ref.name, ref.version, err))) {
        print_model_entry (line->options, &e, stages, note);
        rv = 0;
    }
    free (stages);
    free (note);
    json_decref (e.json);
    return rv;
}

static int model_show (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return show_models (line, &err) == 0 ? EXIT_OK : fail (&err);
}

/* ---- registration ---- */

enum { RECORD_MAX = 16 << 20 };

/* ---- choose the checkpoint ---- */

struct chosen {
    char *path;
    int64_t step;
    double metric; /* at this step; NaN if unknown */
};

struct value_search {
    const char *name;
    int64_t step;
    double value;
};

static int find_value (const struct slurmdl_row *row, void *arg)
{
    struct value_search *v = arg;

    if (!row->superseded && row->step == v->step && !strcmp (row->name, v->name))
        v->value = row->value;
    return 0;
}

/* Return the metric that was logged at the checkpoint's step.  Retention uses the same
 * value.
 */
static double metric_at (const struct sweep *s, const char *dir, int64_t step)
{
    struct value_search v = { sweep_metric (s, 0), step, NAN };

    slurmdl_trial_read (dir, find_value, &v, NULL);
    return v.value;
}

/* Choose the checkpoint of the best result if it still exists, or else the newest. */
static int choose_checkpoint (const struct sweep *s, long trial, int64_t step, struct chosen *c,
                              struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    int64_t best = step >= 0 ? step : trial_result (s, trial, 0).length;
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, trial);
    c->path = slurmdl_checkpoint_find (dir, best, trial_milestone (t, best), &c->step);
    if (step < 0 && (!c->path || c->step != best)) {
        free (c->path);
        c->path = slurmdl_checkpoint_find (dir, INT64_MAX, trial_last (t).attempt, &c->step);
    }
    if (!c->path || (step >= 0 && c->step != step)) {
        errno = ENOENT;
        errorf (err, "%s: no valid checkpoint%s; dl ckpt ls lists them", dir,
                step >= 0 ? " of this step" : "");
        free (c->path);
        return -1;
    }
    c->metric = metric_at (s, dir, c->step);
    return 0;
}

/* ---- the entry ---- */

/* Return what the first entry of the decision log records about the code. */
static json_t *code_json (const struct sweep *s)
{
    static const char *const keys[] = { "code", "root", "provenance", "data" };
    json_t *code = json_object (), *first, *value;
    char path[PATH_MAX];
    char *text;

    snprintf (path, sizeof (path), "%s/log/000000/00000001", s->dir);
    if (!(text = file_read_now (path, RECORD_MAX, NULL, NULL, NULL)))
        return code;
    first = json_loads (text, JSON_DISABLE_EOF_CHECK, NULL);
    for (size_t i = 0; i < sizeof (keys) / sizeof (*keys); i++)
        if ((value = json_object_get (first, keys[i])))
            json_object_set (code, keys[i], value);
    json_decref (first);
    free (text);
    return code;
}

static json_t *origin_json (const struct sweep *s, long trial)
{
    return json_pack ("{s:s, s:s, s:s?, s:s, s:I, s:O?, s:o}", "name", sweep_folder_name (s),
                      "folder", s->dir, "id", s->id, "experiment.conf", s->digest, "trial",
                      (json_int_t)trial, "hyperparameters",
                      trial_hparams (s, sweep_trial (s, trial)), "record", code_json (s));
}

static json_t *version_json (const struct sweep *s, long trial, const struct chosen *c,
                             json_t *kept, const char *name)
{
    json_object_set_new (kept, "step", json_integer (c->step));
    json_object_set_new (kept, "path", json_string (c->path));
    return json_pack ("{s:s, s:O, s:{s:s, s:o, s:b}, s:o, s:f, s:s}", "model", name, "checkpoint",
                      kept, "metric", "name", sweep_metric (s, 0), "value",
                      number_to_json (c->metric), "smaller_is_better",
                      (int)s->exp->search->config.smaller_is_better, "experiment",
                      origin_json (s, trial), "time", (double)time (NULL), "by", user_name ());
}

/* Return an existing version with the same checkpoint, or 0. */
static long find_same (const struct registry *r, const char *name, json_t *entry)
{
    const char *digest = entry_text (entry, "checkpoint", "sha256");
    struct model_entry old;
    long found = 0;

    for (long n = 1; !found; n++) {
        const char *other;
        if (registry_entry (r, name, "version", n, &old, NULL) != ENTRY_READ)
            break;
        other = entry_text (old.json, "checkpoint", "sha256");
        if (other && !strcmp (other, digest) && !registry_has (r, name, "removed", n))
            found = n;
        json_decref (old.json);
    }
    return found;
}

/* Remove the second copy of a checkpoint, unless both entries use the same file. */
static void drop_copy (const struct registry *r, const char *name, long same, const json_t *entry)
{
    char kept[PATH_MAX], other[PATH_MAX];
    struct model_entry old;

    if (registry_entry (r, name, "version", same, &old, NULL) != ENTRY_READ)
        return;
    if (registry_checkpoint (r, entry, kept, NULL) == 0
        && registry_checkpoint (r, old.json, other, NULL) == 0 && strcmp (kept, other))
        inside_unlink (kept, 0);
    json_decref (old.json);
}

static int put_version (const struct registry *r, const char *name, json_t *entry,
                        struct slurmdl_error *err)
{
    long same = entry ? find_same (r, name, entry) : 0;
    long n = same;
    char kept[PATH_MAX];

    if (!entry)
        return errorf (err, "cannot create the entry: a name is not UTF-8");
    if (same)
        drop_copy (r, name, same, entry);
    else if ((n = registry_put (r, name, "version", entry, err)) < 0) {
        int e = errno;
        /* no version uses the file, unless the entry was added in spite of the error */
        if (find_same (r, name, entry) == 0 && registry_checkpoint (r, entry, kept, NULL) == 0)
            inside_unlink (kept, 0);
        errno = e;
        return -1;
    }
    printf ("%s/%ld%s\n", name, n, same ? " (already registered)" : "");
    return 0;
}

/* Remove the folders that registering a version created before it failed.  A folder that has
 * entries stays, because rmdir() fails.
 */
static void remove_new_folders (const struct registry *r, const char *name)
{
    const char *const folders[] = { name, ".checkpoints", "" };
    char path[PATH_MAX];
    int e = errno;

    for (size_t i = 0; i < sizeof (folders) / sizeof (*folders) - !r->is_new; i++)
        if (snprintf (path, sizeof (path), "%s/%s", r->dir, folders[i]) < (int)sizeof (path))
            rmdir (path);
    errno = e;
}

/* Choose the checkpoint first, so that no registry is created without one. */
static int register_trial (const struct sweep *s, long trial, const struct command_line *line,
                           struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct chosen c = { NULL };
    struct registry r;
    json_t *kept = NULL, *entry;
    bool opened;
    int rv = -1;

    if (choose_checkpoint (s, trial, opt->step, &c, err) < 0)
        return -1;
    opened = registry_open_to_write (&r, line, true, err) == 0;
    if (opened)
        kept = registry_keep (&r, c.path, err);
    if (kept) {
        entry = version_json (s, trial, &c, kept, line->args[3]);
        rv = put_version (&r, line->args[3], entry, err);
        json_decref (entry);
    }
    json_decref (kept);
    if (opened && rv < 0)
        remove_new_folders (&r, line->args[3]);
    int e = errno;
    free (c.path);
    errno = e;
    return rv;
}

static int find_trial (const struct sweep *s, const char *text, long *trial)
{
    *trial = sweep_best (s);
    if (strcmp (text, "best"))
        return parse_trial (s, text, trial);
    if (*trial)
        return EXIT_OK;
    complain ("%s: there is no best trial: no trial has a result", s->dir);
    return EXIT_NOT_FOUND;
}

static int model_register (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct sweep *s;
    long trial;
    int rv;

    if (model_name_check (line->args[3], &err) < 0)
        return fail (&err);
    if ((rv = open_experiment (line, line->args[1], &s)))
        return rv;
    if ((rv = find_trial (s, line->args[2], &trial)) == EXIT_OK
        && register_trial (s, trial, line, &err) < 0)
        rv = fail (&err);
    sweep_close (s);
    return rv;
}

/* ---- the command ---- */

static const struct subcommand model_subcommands[] = {
    { "register", "EXPERIMENT TRIAL NAME", 3, 3, model_register },
    { "ls", "[NAME]", 0, 1, model_ls },
    { "show", "NAME[/VERSION|@STAGE]", 1, 1, model_show },
    { "promote", "NAME[/VERSION|@STAGE] STAGE", 2, 2, model_promote },
    { "note", "NAME[/VERSION|@STAGE] TEXT", 2, 2, model_note },
    { "rm", "NAME[/VERSION|@STAGE]", 1, 1, model_rm },
    { "export", "NAME[/VERSION|@STAGE] FOLDER", 2, 2, model_export },
    { 0 },
};

void model_words (void)
{
    subcommand_words (model_subcommands);
}

int cmd_model (const struct command_line *line)
{
    int rv = subcommand_run ("model", model_subcommands, line);

    if (rv >= 0)
        return rv;
    complain ("no command 'dl model %s'; there are register, ls, show, "
              "promote, note, rm and export",
              line->args[0]);
    return EXIT_USAGE;
}
