/* SPDX-License-Identifier: Apache-2.0 */
/* The cache: results of tasks, by the digest of everything that they depend on. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { RECORD_MAX = 8 << 20, TRIES_MAX = 1000 };

/* ---- files ---- */

json_t *flow_file (const char *path, struct slurmdl_error *err)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char digest[DIGEST_SIZE];
    struct stat st;
    int rv = fd < 0 || fstat (fd, &st) < 0 ? -1 : 0;

    if (rv == 0 && !S_ISREG (st.st_mode)) {
        errno = EINVAL;
        errorf (err, "%s: not a regular file", path);
        rv = -1;
    }
    if (rv == 0)
        rv = digest_of_file (digest, fd);
    if (rv < 0)
        errorf (err, "%s: %s", path, strerror (errno));
    if (fd >= 0)
        inside_close (fd, 0);
    return rv < 0 ? NULL
                  : json_pack ("{s:s, s:s, s:I, s:I, s:I}", "path", path, "sha256", digest, "bytes",
                               (json_int_t)st.st_size, "mtime", (json_int_t)st.st_mtim.tv_sec,
                               "mtime_ns", (json_int_t)st.st_mtim.tv_nsec);
}

/* Another user who created the folder could have renamed the entries. */
static bool entry_has_key (const json_t *entry, const char *key)
{
    const char *own = json_string_value (json_object_get (entry, "key"));

    return own && !strcmp (own, key);
}

/* Trust the time of a file only if this user owns it: another user who replaced the file could also
 * set its time.
 */
static bool output_is_intact (const json_t *file)
{
    const char *path = json_string_value (json_object_get (file, "path"));
    const char *sum = json_string_value (json_object_get (file, "sha256"));
    json_t *now;
    struct stat st;
    bool same;

    if (!path || !sum || stat (path, &st) < 0 || !S_ISREG (st.st_mode) || st.st_uid != geteuid ()
        || st.st_size != json_integer_value (json_object_get (file, "bytes")))
        return false;
    if (st.st_mtim.tv_sec == json_integer_value (json_object_get (file, "mtime"))
        && st.st_mtim.tv_nsec == json_integer_value (json_object_get (file, "mtime_ns")))
        return true;
    if (!(now = flow_file (path, NULL)))
        return false;
    same = !strcmp (json_string_value (json_object_get (now, "sha256")), sum);
    json_decref (now);
    return same;
}

/* ---- the frozen code ---- */

struct code_list {
    const struct flow_step *s;
    const struct code_files *files; /* in the archive's order */
    size_t at;
    FILE *text;
};

static bool flow_is_leftover (const char *path)
{
    static const char *const ends[] = { ".out", ".err", ".log", ".pyc" };
    size_t n = strlen (path);

    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++)
        if (n > 4 && !strcmp (path + n - 4, ends[i]))
            return true;
    return false;
}

/* Links are in the archive, too, but are not code. */
static bool is_archived_file (struct code_list *l, const char *path)
{
    while (l->at < l->files->n && strcmp (l->files->list[l->at].path, path))
        l->at++;
    return l->at < l->files->n && !l->files->list[l->at].target;
}

static void add_code_digest (const char *path, const void *text, size_t size, void *arg)
{
    struct code_list *l = arg;
    char digest[DIGEST_SIZE];

    if (!is_archived_file (l, path)
        || (l->s->code ? !pattern_list_has (l->s->code, path, false) : flow_is_leftover (path)))
        return;
    digest_of (digest, text, size);
    fprintf (l->text, "%s %s\n", digest, path);
}

static int step_code_digest (const struct flow_step *s, const struct code_files *files,
                             const struct code_archive *a, char digest[DIGEST_SIZE],
                             struct slurmdl_error *err)
{
    struct code_list l = { .s = s, .files = files };
    char *text = NULL;
    size_t size;
    int rv;

    l.text = xopen_memstream (&text, &size);
    rv = a->data ? code_archive_each (a->data, a->size, add_code_digest, &l, err) : 0;
    xclose_memstream (l.text);
    digest_of (digest, text, size);
    free (text);
    return rv;
}

json_t *flow_code_digests (const struct flow *f, const struct code_files *files,
                           const struct code_archive *a, struct slurmdl_error *err)
{
    json_t *all = json_object ();
    char whole[DIGEST_SIZE] = "";
    char digest[DIGEST_SIZE];

    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[i];
        bool is_whole = !s->code && *whole;
        if (!is_whole && step_code_digest (s, files, a, digest, err) < 0) {
            json_decref (all);
            return NULL;
        }
        if (!s->code && !*whole)
            memcpy (whole, digest, DIGEST_SIZE);
        json_object_set_new (all, s->name, json_string (is_whole ? whole : digest));
    }
    return all;
}

/* ---- the key ---- */

static json_t *json_of_strings (char *const *list)
{
    json_t *v = json_array ();

    for (; list && *list; list++)
        json_array_append_new (v, json_string (*list));
    return v;
}

static json_t *text_of_key (const char *text)
{
    return text ? json_string (text) : json_null ();
}

static int add_named_parameter (const char *name, const char *where, void *arg)
{
    json_t *key = arg;
    json_t *params = json_object_get (key, "params");
    json_t *v = json_object_get (json_object_get (key, "all"), name);

    (void)where;
    if (v)
        json_object_set (params, name, v);
    return 0;
}

/* What an earlier task left, without paths.  Its own key stands for a task that declares neither
 * outputs nor values.
 */
static json_t *left_by_task (const json_t *done)
{
    json_t *outputs = json_object_get (done, "outputs");
    json_t *values = json_object_get (done, "values");
    json_t *left = json_object (), *o;
    const char *name;

    if (json_object_size (outputs) + json_object_size (values) == 0) {
        json_object_set (left, "key", json_object_get (done, "key"));
        return left;
    }
    json_object_foreach (outputs, name, o)
        json_object_set (left, name, json_object_get (o, "sha256"));
    json_object_set (left, ".values", values);
    return left;
}

static json_t *key_of_needs (const struct flow_scope *c)
{
    json_t *all = json_array ();

    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_link *l = &c->s->links[i];
        const struct flow_step *to = &c->r->flow->steps[l->step];
        long width = flow_width (c->r, to);
        for (long k = 0; k < width; k++) {
            if (l->wait != AFTER_EACH || k == c->task)
                json_array_append_new (all, left_by_task (flow_done (c->r, to, k)));
        }
    }
    return all;
}

static json_t *key_of_inputs (const struct flow_scope *c, struct slurmdl_error *err)
{
    json_t *all = json_array ();

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = flow_text (c, *i, err);
        json_t *file = NULL;
        char path[PATH_MAX];
        if (text) {
            path_from (path, c->r->flow->base->dir, text);
            file = flow_file (path, err);
        }
        free (text);
        if (!file) {
            json_decref (all);
            return NULL;
        }
        json_array_append (all, json_object_get (file, "sha256"));
        json_decref (file);
    }
    return all;
}

static json_t *key_of_outputs (const struct flow_step *s)
{
    json_t *v = json_object ();

    for (size_t i = 0; i < s->noutputs; i++)
        json_object_set_new (v, s->outputs[i].name, json_string (s->outputs[i].path));
    return v;
}

static json_t *key_object (const struct flow_scope *c, const char *code, json_t *files)
{
    const struct flow_step *s = c->s;
    json_t *item = flow_item (c->r, s, c->task);
    json_t *key =
        json_pack ("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{}, s:O}",
                   "version", 1, "code", code, "shell", text_of_key (s->exp->entrypoint), "argv",
                   json_of_strings (s->exp->argv), "sweep", text_of_key (s->sweep), "set",
                   json_of_strings (s->set), "environment", json_of_strings (s->exp->variables),
                   "all_environment", json_of_strings (c->r->flow->base->variables), "values",
                   json_of_strings (s->values), "outputs", key_of_outputs (s), "item",
                   item ? item : json_null (), "inputs", files, "needs", key_of_needs (c), "params",
                   "all", c->r->flow->params);

    json_t *software = flow_software_key (c->r->flow, s);

    if (software)
        json_object_set_new (key, "software", software);
    flow_each_name (s, add_named_parameter, key);
    json_object_del (key, "all");
    return key;
}

/* Hash the experiment file of a sweep separately: it need not be part of the frozen code. */
static int add_sweep_file (const struct flow_scope *c, json_t *files, struct slurmdl_error *err)
{
    char *name = c->s->sweep ? flow_text (c, c->s->sweep, err) : NULL;
    char path[PATH_MAX];
    json_t *file;

    if (!name)
        return c->s->sweep ? -1 : 0;
    path_from (path, c->r->flow->base->dir, name);
    free (name);
    if (!(file = flow_file (path, err)))
        return -1;
    json_array_append (files, json_object_get (file, "sha256"));
    json_decref (file);
    return 0;
}

int flow_key (const struct flow_scope *c, char key[DIGEST_SIZE], struct slurmdl_error *err)
{
    const char *code =
        json_string_value (json_object_get (json_object_get (c->r->about, "code_of"), c->s->name));
    json_t *files = key_of_inputs (c, err);
    json_t *o;
    char *text;

    *key = '\0';
    if (!files || add_sweep_file (c, files, err) < 0) {
        json_decref (files);
        return -1;
    }
    if (!code || !c->s->cache || c->s->on_exit) {
        json_decref (files);
        return 0;
    }
    o = key_object (c, code, files);
    text = json_dumps (o, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref (o);
    digest_of (key, text, strlen (text));
    free (text);
    return 0;
}

/* ---- entries ---- */

static void cache_entry_path (char path[PATH_MAX], const struct flow_run *r, const char *key,
                              long n)
{
    int len = snprintf (path, PATH_MAX, "%.*s/.dl-flow-cache-%u",
                        (int)(strrchr (r->dir, '/') - r->dir), r->dir, (unsigned)geteuid ());

    if (key)
        snprintf (path + len, PATH_MAX - (size_t)len, "/%s.%ld", key, n);
}

json_t *flow_cache_find (const struct flow_run *r, const char *key)
{
    json_t *found = NULL, *o;
    char path[PATH_MAX];
    const char *name;

    for (long n = 1; n < TRIES_MAX; n++) {
        uid_t owner;
        char *text;
        json_t *entry;
        cache_entry_path (path, r, key, n);
        if (!(text = file_read_now (path, RECORD_MAX, NULL, &owner, NULL)))
            break;
        entry = owner == geteuid () ? json_loads (text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        free (text);
        if (!entry_has_key (entry, key)) {
            json_decref (entry);
            entry = NULL;
        }
        json_object_foreach (json_object_get (entry, "outputs"), name, o)
            if (!output_is_intact (o)) {
                json_decref (entry);
                entry = NULL;
                break;
            }
        if (entry) {
            json_decref (found);
            found = entry;
        }
    }
    return found;
}

/* A failure is harmless: the task runs again next time. */
void flow_cache_put (const struct flow_run *r, const char *key, const json_t *done)
{
    char *text = json_dumps (done, JSON_SORT_KEYS);
    char path[PATH_MAX];
    enum link_result rv = LINK_TAKEN;

    cache_entry_path (path, r, NULL, 0);
    if (text && folder_create (path, NULL) == 0)
        for (long n = 1; rv == LINK_TAKEN && n < TRIES_MAX; n++) {
            cache_entry_path (path, r, key, n);
            rv = publish_if_absent (path, text, strlen (text), NULL);
        }
    free (text);
}

/* ---- what changed in the code since the previous run ---- */

enum { SHOWN = 3 };

/* Map the files that a step without 'code' depends on to their digests. */
static void add_file_digest (const char *path, const void *text, size_t size, void *o)
{
    char digest[DIGEST_SIZE];

    if (flow_is_leftover (path))
        return;
    digest_of (digest, text, size);
    json_object_set_new (o, path, json_string (digest));
}

static json_t *digest_files (const struct code_archive *a)
{
    json_t *o = json_object ();

    if (a->data && code_archive_each (a->data, a->size, add_file_digest, o, NULL) < 0) {
        json_decref (o);
        return NULL;
    }
    return o;
}

/* Write the folder of the previous run, NAME-0006 for NAME-0007; -1 if there is none. */
static int find_run_before (const struct flow_run *r, char dir[PATH_MAX])
{
    size_t n = strlen (r->dir) - 4;
    long number = atol (r->dir + n);

    if (number < 2)
        return -1;
    snprintf (dir, PATH_MAX, "%.*s%04ld", (int)n, r->dir, number - 1);
    return 0;
}

static json_t *digests_of_run_before (const char *dir)
{
    struct code_archive a = { .data = NULL };
    struct slurmdl_error err;
    char path[PATH_MAX];
    json_t *about, *list = NULL;
    const char *digest;
    uid_t owner;
    char *text;

    if (snprintf (path, PATH_MAX, "%s/flow.json", dir) >= PATH_MAX
        || !(text = file_read_now (path, RECORD_MAX, NULL, &owner, NULL)))
        return NULL;
    about = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
    free (text);
    digest = json_string_value (json_object_get (about, "code"));
    if (digest && owner == geteuid () && store_get (dir, digest, &a, &err) == 0)
        list = digest_files (&a);
    code_archive_free (&a);
    json_decref (about);
    return list;
}

static void note_change (FILE *f, long *n, const char *path, const char *what)
{
    if (++*n <= SHOWN)
        fprintf (f, "%s%s %s", *n > 1 ? ", " : "", path, what);
}

/* Returns the number of files that differ; links do not count as code. */
static long compare_files (FILE *f, json_t *old, json_t *now, const struct code_files *files)
{
    char more[AND_MORE_SIZE];
    const char *path;
    json_t *digest;
    long n = 0;

    for (size_t i = 0; i < files->n; i++)
        if (files->list[i].target) {
            json_object_del (old, files->list[i].path);
            json_object_del (now, files->list[i].path);
        }
    json_object_foreach (now, path, digest) {
        const json_t *before = json_object_get (old, path);
        if (!before)
            note_change (f, &n, path, "is new");
        else if (!json_equal (before, digest))
            note_change (f, &n, path, "has changed");
    }
    json_object_foreach (old, path, digest)
        if (!json_object_get (now, path))
            note_change (f, &n, path, "is gone");
    fputs (and_more (more, n - SHOWN), f);
    return n;
}

static bool any_step_without_code (const struct flow *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->steps[i].code && f->steps[i].cache)
            return true;
    return false;
}

void flow_say_code_change (const struct flow_run *r, const struct code_files *files,
                           const struct code_archive *now)
{
    char dir[PATH_MAX];
    json_t *before, *list;
    char *text = NULL;
    size_t size;
    long n = 0;
    FILE *f;

    if (!any_step_without_code (r->flow) || find_run_before (r, dir) < 0
        || !(before = digests_of_run_before (dir)))
        return;
    list = digest_files (now);
    f = xopen_memstream (&text, &size);
    if (list)
        n = compare_files (f, before, list, files);
    xclose_memstream (f);
    if (n > 0)
        complain ("since %s %s; steps without 'code' depend on all files", strrchr (dir, '/') + 1,
                  text);
    free (text);
    json_decref (list);
    json_decref (before);
}
