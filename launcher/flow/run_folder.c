/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run: create it, find it, and read what it contains. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { RECORD_MAX = 8 << 20, FLOW_VERSION = 1 };

/* ---- create a run ---- */

static int claim_run_folder (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    char own[PATH_MAX];
    enum name_writers others = user_names_check (root, err);

    if (others == NAMES_OF_GROUP)
        complain ("%s", err->text);
    if (others == NAMES_OF_EVERYBODY)
        return -1;
    error_clear (err);
    if (!realpath (root, own))
        return errorf (err, "%s: %s", root, strerror (errno));
    /* dl executes what the folder contains as this user, so nobody else may change it */
    if (numbered_folder (own, r->flow->base->name, 0755, r->dir, sizeof (r->dir)) == 0)
        return 0;
    return errorf (err, "%s: cannot create the folder of a flow: %s", root, strerror (errno));
}

int flow_create (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    char path[PATH_MAX], file[PATH_MAX] = "/";
    char digest[DIGEST_SIZE];
    char id[33];
    int e;

    umask (umask (077) | 022);
    if (claim_run_folder (r, root, err) < 0)
        return -1;
    digest_of (digest, r->flow->text, strlen (r->flow->text));
    if (random_word (id, 16) < 0)
        return errorf (err, "cannot get random numbers: %s", strerror (errno));
    /* the name of a pipe does not lead to a file in a folder */
    if (!realpath (r->flow->file, file))
        errno = 0;
    r->about = json_pack ("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:O}", "version", FLOW_VERSION,
                          "name", r->flow->base->name, "id", id, "file", r->flow->file, "base",
                          strrchr (file, '/') + 1, "dir", r->flow->base->dir, "sha256", digest,
                          "time", (json_int_t)time (NULL), "parameters", r->flow->params);
    snprintf (path, sizeof (path), "%s/log", r->dir);
    if (folder_create (path, err) == 0) {
        snprintf (path, sizeof (path), "%s/steps", r->dir);
        if (folder_create (path, err) == 0)
            return 0;
    }
    e = errno;
    remove_tree (r->dir);
    errno = e;
    return -1;
}

static int publish_in_run (const struct flow_run *r, const char *name, const char *text,
                           struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", r->dir, name);
    return publish_if_absent (path, text, strlen (text), err);
}

/* Write these files only after the code was frozen.  If the folder of the run is inside the code,
 * they would make the code of each run different, and nothing would ever be cached.
 */
int flow_commit (struct flow_run *r, struct slurmdl_error *err)
{
    char *text = json_dumps (r->about, JSON_INDENT (1));
    int rv;

    digest_of (r->pin, text, strlen (text));
    rv = publish_in_run (r, "flow.conf", r->flow->text, err);
    if (rv == 0)
        rv = publish_in_run (r, "flow.json", text, err);
    free (text);
    return rv == 0 ? 0 : errorf (err, "%s: it already exists", r->dir);
}

const char *flow_code_below (const struct flow_run *r)
{
    const char *root = json_string_value (json_object_get (r->about, "root"));

    return root && !strncmp (r->flow->base->dir, root, strlen (root))
               ? r->flow->base->dir + strlen (root)
               : "";
}

/* ---- open a run ---- */

int flow_each (const char *root, int (*f) (const char *dir, void *arg), void *arg)
{
    return each_folder (root, "flow.json", f, arg);
}

static int find_run_folder (char dir[PATH_MAX], const char *root, const char *name)
{
    char found[PATH_MAX];

    return find_folder (root, "flow.json", name, found, sizeof (found)) == 0
                   && user_may_follow (found) && realpath (found, dir)
               ? 0
               : -1;
}

static int check_run_owner (const struct flow_run *r, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (r->dir, &st) < 0)
        return errorf (err, "%s: %s", r->dir, strerror (errno));
    errno = EPERM;
    if (st.st_uid != geteuid ())
        return errorf (err, "%s: this flow belongs to another user: run its file", r->dir);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return errorf (err, "%s: others may write to this flow: chmod go-w, and check flow.conf",
                       r->dir);
    return 0;
}

/* Wait for a file to become visible only in a run of this user: other users may put anything beside
 * it.
 */
static char *read_run_text (const char *path, bool own, size_t *n, struct slurmdl_error *err)
{
    return own ? file_read (path, RECORD_MAX, n, err)
               : file_read_now (path, RECORD_MAX, n, NULL, err);
}

static int read_flow_run (struct flow_run *r, bool own, struct slurmdl_error *err)
{
    struct problems p;
    char path[PATH_MAX];
    char digest[DIGEST_SIZE];
    const char *dir, *sum;
    char *text;
    size_t n;

    snprintf (path, sizeof (path), "%s/flow.json", r->dir);
    if (!(text = read_run_text (path, own, &n, err)))
        return -1;
    digest_of (r->pin, text, n);
    r->about = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    free (text);
    dir = json_string_value (json_object_get (r->about, "dir"));
    sum = json_string_value (json_object_get (r->about, "sha256"));
    snprintf (path, sizeof (path), "%s/flow.conf", r->dir);
    errno = EBADMSG;
    if (json_is_object (r->about)
        && json_integer_value (json_object_get (r->about, "version")) != FLOW_VERSION)
        return errorf (err, "%s/flow.json: written by another version of dl", r->dir);
    if (!dir || *dir != '/' || !sum)
        return errorf (err, "%s/flow.json: damaged", r->dir);
    if (!(text = read_run_text (path, own, &n, err)))
        return -1;
    digest_of (digest, text, n);
    free (text);
    errno = EBADMSG;
    if (strcmp (digest, sum))
        return errorf (err, "%s: it has changed since the flow was created", path);
    problems_open (&p);
    r->flow = flow_read (path, dir, NULL, json_object_get (r->about, "parameters"), &p);
    problems_close (&p);
    if (!r->flow)
        errorf (err, "%.*s", (int)strcspn (p.text, "\n"), p.text);
    free (p.text);
    errno = EBADMSG;
    return r->flow && flow_history_open (r, err) ? flow_sync (r, err) : -1;
}

int flow_open (struct flow_run *r, const struct command_line *line, const char *name, bool own)
{
    struct slurmdl_error err = { "" };

    *r = (struct flow_run){ .flow = NULL };
    if (find_run_folder (r->dir, line->dir, name) < 0) {
        complain (name ? "no flow '%s' (dl flow ls lists them)"
                       : "there is no flow here (dl flow run creates one)",
                  name);
        return EXIT_NOT_FOUND;
    }
    if (own)
        umask (umask (077) | 022);
    if ((own && check_run_owner (r, &err) < 0) || read_flow_run (r, own, &err) < 0)
        return fail (&err);
    return EXIT_OK;
}

void flow_close (struct flow_run *r)
{
    flow_history_close (r->history);
    flow_free (r->flow);
    json_decref (r->about);
    r->history = NULL;
    r->flow = NULL;
    r->about = NULL;
}

/* ---- paths in a run ---- */

void flow_path (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s, long task,
                const char *file, long number)
{
    char folder[32] = "";
    char last[64] = "";

    if (task >= 0)
        snprintf (folder, sizeof (folder), "/%ld", task);
    if (file && number > 0)
        snprintf (last, sizeof (last), "/%s.%ld", file, number);
    else if (file)
        snprintf (last, sizeof (last), "/%s", file);
    snprintf (buf, PATH_MAX, "%s/steps/%s%s%s", r->dir, s->name, folder, last);
}

int flow_make_folder (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s,
                      long task, long attempt, struct slurmdl_error *err)
{
    flow_path (buf, r, s, -1, NULL, 0);
    if (folder_create (buf, err) < 0)
        return -1;
    flow_path (buf, r, s, task, NULL, 0);
    if (folder_create (buf, err) < 0)
        return -1;
    flow_path (buf, r, s, task, "a", attempt);
    return folder_create (buf, err);
}
