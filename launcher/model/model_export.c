/* SPDX-License-Identifier: Apache-2.0 */
/* dl model export: a version in a folder of its own, with a manifest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/model/model.h"
#include "launcher/model/registry.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/take_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* What is compared is what stands in the folder, not what was read; 'written'
 * is the digest of that with a mark of whose data it has.
 */
static int put_checkpoint (const char *from, const char *digest, const char *path, bool trust,
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

static int put_text (const char *dir, const char *name, const char *text, char digest[DIGEST_SIZE],
                     struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    digest_of (digest, text, strlen (text));
    return publish_if_absent (path, text, strlen (text), err) < 0 ? -1 : 0;
}

static int put_json (const char *dir, const char *name, const json_t *o, char digest[DIGEST_SIZE],
                     struct slurmdl_error *err)
{
    char *text = json_string_of (o, JSON_INDENT (2));
    int rv = text ? put_text (dir, name, text, digest, err) : errorf (err, "out of memory");

    free (text);
    return rv;
}

/* The sums come last: a folder without them is not complete. */
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
        || put_checkpoint (from, digest, path, trust, of_model, err) < 0
        || put_json (dir, "hparams.json", hparams, of_hparams, err) < 0)
        return -1;
    json_object_set_new (
        entry, "files", json_pack ("{s:s, s:s}", "model.h5", of_model, "hparams.json", of_hparams));
    if (put_json (dir, "manifest.json", entry, of_manifest, err) < 0)
        return -1;
    snprintf (sums, sizeof (sums), "%s  model.h5\n%s  hparams.json\n%s  manifest.json\n", of_model,
              of_hparams, of_manifest);
    return put_text (dir, "SHA256SUMS", sums, unused, err);
}

static int make_folder (const char *path, char dir[PATH_MAX], struct slurmdl_error *err)
{
    if (mkdir (path, 0777) < 0) {
        int e = errno;
        errorf (err, "%s: %s%s", path, strerror (e),
                e == EEXIST ? "; name a folder that is not there" : "");
        errno = e == EEXIST ? EINVAL : e;
        return -1;
    }
    return realpath (path, dir) ? 0 : errorf (err, "%s: %s", path, strerror (errno));
}

/* What failed leaves no folder that could be taken for a model. */
static void remove_folder (const char *dir)
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

static int export(const struct command_line *line, struct slurmdl_error *err)
{
    const struct model_options *opt = line->options;
    struct model_reference ref;
    struct model_entry e;
    struct registry r;
    char dir[PATH_MAX];
    int rv;

    if (registry_open (&r, line, false, err) < 0
        || registry_resolve (&r, line->args[1], &ref, err) < 0
        || registry_entry (&r, ref.name, "version", ref.version, &e, err) != 1)
        return -1;
    if ((rv = make_folder (line->args[2], dir, err)) == 0
        && (rv = put_files (&r, dir, opt->trust, e.json, err)) < 0)
        remove_folder (dir);
    json_decref (e.json);
    if (rv == 0)
        printf ("%s/%ld: %s, every digest is right\n", ref.name, ref.version, line->args[2]);
    return rv;
}

int model_export (const struct command_line *line)
{
    struct slurmdl_error err = { "" };

    return export(line, &err) == 0 ? EXIT_OK : fail (&err);
}
