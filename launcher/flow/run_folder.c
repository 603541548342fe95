/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run: complete files that never change, and what they say. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/resources.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { NUMBER_MAX = 9999, RECORD_MAX = 8 << 20, FLOW_VERSION = 2 };

/* ---- a new one ---- */

static int claim_run_folder (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    char own[PATH_MAX];
    int rv = user_names_check (root, err);

    if (rv > 0)
        complain ("%s", err->text);
    if (rv < 0)
        return -1;
    error_clear (err);
    if (!realpath (root, own))
        return errorf (err, "%s: %s", root, strerror (errno));
    for (int i = 1; i <= NUMBER_MAX; i++) {
        if (snprintf (r->dir, sizeof (r->dir), "%s/%s-%04d", own, r->flow->base->name, i)
            >= (int)sizeof (r->dir) - 200) {
            errno = ENAMETOOLONG;
            break;
        }
        /* what is in it is run as this user: it is nobody else's to change */
        if (mkdir (r->dir, 0755) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return errorf (err, "%s: cannot make a flow's folder: %s", root, strerror (errno));
}

int flow_create (struct flow_run *r, const char *root, struct slurmdl_error *err)
{
    char path[PATH_MAX], file[PATH_MAX] = "/";
    char digest[DIGEST_SIZE];
    char id[17];

    umask (umask (077) | 022);
    if (claim_run_folder (r, root, err) < 0)
        return -1;
    digest_of (digest, r->flow->text, strlen (r->flow->text));
    if (random_word (id, 8) < 0)
        return errorf (err, "no random numbers: %s", strerror (errno));
    /* of a pipe the name is not one of a file in a folder */
    if (!realpath (r->flow->file, file))
        errno = 0;
    r->about = json_pack ("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:O}", "version", FLOW_VERSION,
                          "name", r->flow->base->name, "id", id, "file", r->flow->file, "base",
                          strrchr (file, '/') + 1, "dir", r->flow->base->dir, "sha256", digest,
                          "time", (json_int_t)time (NULL), "parameters", r->flow->params);
    snprintf (path, sizeof (path), "%s/steps", r->dir);
    return folder_create (path, err);
}

static int publish_in_run (const struct flow_run *r, const char *name, const char *text,
                           struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", r->dir, name);
    return publish_if_absent (path, text, strlen (text), err);
}

/* Until the code is frozen there is no file: where the folder is among the
 * code, each flow would have code of its own, and nothing would be cached.
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
    return rv == 0 ? 0 : errorf (err, "%s: it is there already", r->dir);
}

const char *flow_code_below (const struct flow_run *r)
{
    const char *root = json_string_value (json_object_get (r->about, "root"));

    return root && !strncmp (r->flow->base->dir, root, strlen (root))
               ? r->flow->base->dir + strlen (root)
               : "";
}

/* ---- one that is there ---- */

static bool is_run_folder (const char *dir)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/flow.json", dir);
    return user_may_follow (dir) && access (path, F_OK) == 0;
}

int flow_each (const char *root, void (*f) (const char *dir, void *arg), void *arg)
{
    struct dirent **list;
    char path[PATH_MAX];
    int n = scandir (root, &list, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        snprintf (path, sizeof (path), "%s/%s", root, list[i]->d_name);
        if (*list[i]->d_name != '.' && is_run_folder (path))
            f (path, arg);
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return n < 0 ? -1 : 0;
}

struct flow_search {
    const char *name; /* NULL: any */
    char *dir;
    struct timespec newest;
};

static void keep_newest_run (const char *dir, void *arg)
{
    struct flow_search *s = arg;
    const char *base = strrchr (dir, '/') + 1;
    size_t n = s->name ? strlen (s->name) : 0;
    char path[PATH_MAX];
    struct stat st;

    if (s->name && (strncmp (base, s->name, n) || base[n] != '-' || strlen (base + n) != 5))
        return;
    snprintf (path, sizeof (path), "%s/flow.json", dir);
    if (stat (path, &st) < 0 || st.st_mtim.tv_sec < s->newest.tv_sec
        || (st.st_mtim.tv_sec == s->newest.tv_sec && st.st_mtim.tv_nsec < s->newest.tv_nsec))
        return;
    s->newest = st.st_mtim;
    snprintf (s->dir, PATH_MAX, "%s", dir);
}

static int find_run_folder (char dir[PATH_MAX], const char *root, const char *name)
{
    struct flow_search s = { .name = name, .dir = dir };
    char path[PATH_MAX];

    *dir = '\0';
    if (name && is_run_folder (name))
        return realpath (name, dir) ? 0 : -1;
    if (name) {
        snprintf (path, sizeof (path), "%s/%s", root, name);
        if (is_run_folder (path))
            return realpath (path, dir) ? 0 : -1;
    }
    if (!name || !strchr (name, '/'))
        flow_each (root, keep_newest_run, &s);
    snprintf (path, sizeof (path), "%s", dir);
    return *path && realpath (path, dir) ? 0 : -1;
}

static int check_run_owner (const struct flow_run *r, struct slurmdl_error *err)
{
    struct stat st;

    if (stat (r->dir, &st) < 0)
        return errorf (err, "%s: %s", r->dir, strerror (errno));
    errno = EPERM;
    if (st.st_uid != geteuid ())
        return errorf (err, "%s: this flow is another user's: run its file", r->dir);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return errorf (err,
                       "%s: others may write to this flow: chmod go-w, and "
                       "look at flow.conf",
                       r->dir);
    return 0;
}

/* What others have put beside flows is not waited for. */
static char *read_run_text (const char *path, bool own, size_t *n, struct slurmdl_error *err)
{
    return own ? file_read (path, RECORD_MAX, n, err)
               : file_read_now (path, RECORD_MAX, n, NULL, err);
}

static int read_run (struct flow_run *r, bool own, struct slurmdl_error *err)
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
        return errorf (err, "%s/flow.json: made by another version of dl", r->dir);
    if (!dir || *dir != '/' || !sum)
        return errorf (err, "%s/flow.json: damaged", r->dir);
    if (!(text = read_run_text (path, own, &n, err)))
        return -1;
    digest_of (digest, text, n);
    free (text);
    errno = EBADMSG;
    if (strcmp (digest, sum))
        return errorf (err, "%s: it has changed since the flow was made", path);
    if (problems_open (&p) < 0)
        return errorf (err, "out of memory");
    r->flow = flow_read (path, dir, NULL, json_object_get (r->about, "parameters"), &p);
    problems_close (&p);
    if (!r->flow)
        errorf (err, "%.*s", (int)strcspn (p.text, "\n"), p.text);
    free (p.text);
    errno = EBADMSG;
    return r->flow ? 0 : -1;
}

int flow_open (struct flow_run *r, const struct command_line *line, const char *name, bool own)
{
    struct slurmdl_error err = { "" };

    *r = (struct flow_run){ .flow = NULL };
    if (find_run_folder (r->dir, line->dir, name) < 0) {
        complain (name ? "no flow '%s' (dl flow ls lists them)"
                       : "there is no flow here (dl flow run makes one)",
                  name);
        return EXIT_NOT_FOUND;
    }
    if (own)
        umask (umask (077) | 022);
    if ((own && check_run_owner (r, &err) < 0) || read_run (r, own, &err) < 0)
        return fail (&err);
    return EXIT_OK;
}

void flow_close (struct flow_run *r)
{
    flow_free (r->flow);
    json_decref (r->about);
    r->flow = NULL;
    r->about = NULL;
}

/* ---- records: what has begun, and how it has ended ---- */

static json_t *read_record (const char *path, struct slurmdl_error *err)
{
    size_t n;
    char *text = file_read_now (path, RECORD_MAX, &n, NULL, err);
    json_t *v = text ? json_loads (text, JSON_REJECT_DUPLICATES, NULL) : NULL;

    if (text && !v) {
        errorf (err, "%s: damaged", path);
        errno = EBADMSG;
    }
    free (text);
    return v;
}

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

json_t *flow_record (const struct flow_run *r, const struct flow_step *s, long task,
                     const char *file, long number)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, file, number);
    return read_record (path, NULL);
}

static int make_record_folders (const struct flow_run *r, const struct flow_step *s, long task,
                                struct slurmdl_error *err)
{
    char path[PATH_MAX];

    flow_path (path, r, s, -1, NULL, 0);
    if (folder_create (path, err) < 0)
        return -1;
    flow_path (path, r, s, task, NULL, 0);
    return task < 0 ? 0 : folder_create (path, err);
}

int flow_put (const struct flow_run *r, const struct flow_step *s, long task, const char *file,
              long number, json_t *record, struct slurmdl_error *err)
{
    char *text = json_dumps (record, JSON_SORT_KEYS);
    char path[PATH_MAX];
    int rv = -1;

    json_decref (record);
    flow_path (path, r, s, task, file, number);
    if (make_record_folders (r, s, task, err) == 0)
        rv = publish_if_absent (path, text, strlen (text), err);
    free (text);
    return rv;
}

static DIR *open_record_folder (const char *dir)
{
    int fd = inside_open (dir, O_RDONLY | O_DIRECTORY, 0, NULL);

    return fd < 0 ? NULL : fdopendir (fd);
}

static long last_record_number (const char *dir, const char *file)
{
    DIR *d = open_record_folder (dir);
    size_t n = strlen (file);
    struct dirent *e;
    long last = 0;

    while (d && (e = readdir (d)))
        if (!strncmp (e->d_name, file, n) && e->d_name[n] == '.') {
            long number = strtol (e->d_name + n + 1, NULL, 10);
            last = number > last ? number : last;
        }
    if (d)
        closedir (d);
    return last;
}

long flow_last (const struct flow_run *r, const struct flow_step *s, long task, const char *file)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, NULL, 0);
    return last_record_number (path, file);
}

static bool *flow_tasks_begun (const struct flow_run *r, const struct flow_step *s, long width)
{
    bool *begun = width > 0 ? xcalloc ((size_t)width, sizeof (*begun)) : NULL;
    char path[PATH_MAX];
    struct dirent *e;
    DIR *d = NULL;

    if (begun) {
        flow_path (path, r, s, -1, NULL, 0);
        d = open_record_folder (path);
    }
    while (d && (e = readdir (d))) {
        char *end;
        long task = strtol (e->d_name, &end, 10);
        if (end > e->d_name && !*end && task >= 0 && task < width)
            begun[task] = true;
    }
    if (d)
        closedir (d);
    return begun;
}

bool flow_is_stopped (const struct flow_run *r)
{
    return last_record_number (r->dir, "stop") > last_record_number (r->dir, "resume");
}

int flow_mark (const struct flow_run *r, bool stop, struct slurmdl_error *err)
{
    long n = last_record_number (r->dir, "stop");
    char path[PATH_MAX];

    if (stop == flow_is_stopped (r))
        return 0;
    snprintf (path, sizeof (path), "%s/%s.%ld", r->dir, stop ? "stop" : "resume", stop ? n + 1 : n);
    return publish_if_absent (path, "{}\n", 3, err) < 0 ? -1 : 0;
}

/* ---- how far its tasks are ---- */

const char *const task_states[] = { "waiting", "running", "failed", "skipped", "cached", "ok" };

static enum flow_task_state state_of_result (const json_t *done)
{
    const char *text = json_string_value (json_object_get (done, "status"));

    for (int i = TASK_SKIPPED; text && i <= TASK_OK; i++)
        if (!strcmp (text, task_states[i]))
            return (enum flow_task_state)i;
    return TASK_OK;
}

static long start_of_attempt (const struct flow_run *r, const struct flow_step *s, long task,
                              long attempt)
{
    json_t *begin = flow_record (r, s, task, "begin", attempt);
    long start = (long)json_integer_value (json_object_get (begin, "start"));

    json_decref (begin);
    return start;
}

static bool attempt_has_ended (const struct flow_run *r, const struct flow_step *s, long task,
                               long attempt)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, "end", attempt);
    return access (path, F_OK) == 0;
}

enum flow_task_state flow_task_state (const struct flow_run *r, const struct flow_step *s,
                                      long task, json_t **done)
{
    long start = s->on_exit ? flow_last (r, s, -1, "intent") : 0;
    json_t *v = flow_record (r, s, task, "done", start);
    enum flow_task_state state = v ? state_of_result (v) : TASK_WAITING;
    long k;

    /* an attempt of an earlier start is over */
    if (!v && (k = flow_last (r, s, task, "begin")) > 0
        && start_of_attempt (r, s, task, k) >= flow_last (r, s, -1, "intent"))
        state = attempt_has_ended (r, s, task, k) ? TASK_FAILED : TASK_RUNNING;
    if (done)
        *done = v;
    else
        json_decref (v);
    return state;
}

int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err)
{
    json_t *record =
        json_pack ("{s:s, s:s}", "status", task_states[TASK_SKIPPED], "why", "nothing was run");

    return flow_put (r, s, task, "done", 0, record, err);
}

/* The list of another step's result; a reference of the caller's. */
static json_t *list_of_step (const struct flow_run *r, const struct flow_step *s)
{
    json_t *done, *list = NULL;

    if (s->items)
        return json_incref (s->items);
    if (s->source < 0)
        return NULL;
    done = flow_record (r, &r->flow->steps[s->source], 0, "done", 0);
    if (done) {
        list = json_incref (json_object_get (json_object_get (done, "values"), s->source_value));
        if (!json_is_array (list)) { /* it was skipped */
            json_decref (list);
            list = json_array ();
        }
    }
    json_decref (done);
    return list;
}

long flow_width (const struct flow_run *r, const struct flow_step *s)
{
    json_t *list;
    size_t n;

    if (!s->foreach)
        return 1;
    list = list_of_step (r, s);
    n = json_array_size (list);
    json_decref (list);
    return list ? (long)(n > FLOW_WIDTH_MAX ? FLOW_WIDTH_MAX : n) : -1;
}

json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task)
{
    json_t *list = s->foreach ? list_of_step (r, s) : NULL;
    json_t *item = json_incref (json_array_get (list, (size_t)task));

    json_decref (list);
    return item;
}

long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1])
{
    long width = flow_width (r, s);
    bool *begun = flow_tasks_begun (r, s, width);

    memset (counts, 0, (TASK_OK + 1) * sizeof (*counts));
    for (long i = 0; i < width; i++)
        counts[!begun || begun[i] ? flow_task_state (r, s, i, NULL) : TASK_WAITING]++;
    free (begun);
    return width;
}

bool flow_all_done (long width, const long counts[TASK_OK + 1])
{
    return width >= 0 && counts[TASK_OK] + counts[TASK_CACHED] + counts[TASK_SKIPPED] == width;
}

bool flow_is_done (const struct flow_run *r, const struct flow_step *s, bool *ran)
{
    long counts[TASK_OK + 1];
    long width = flow_count (r, s, counts);

    if (ran)
        *ran = counts[TASK_OK] + counts[TASK_CACHED] > 0;
    return flow_all_done (width, counts);
}
