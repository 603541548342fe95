/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a user wants to run what an experiment's files say, and what the user's records say. */
#include "launcher/sweep/trust.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/flat.h"
#include "launcher/config/resources.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* ---- a user's records ---- */

/* Which link leads to a record. */
enum record_key { RECORD_PATH, RECORD_INODE, RECORD_ID };

enum { RECORD_MAX = 2 << 20 };

int record_base (char *buf, size_t size)
{
    const char *state = getenv ("XDG_STATE_HOME");
    const char *home = getenv ("HOME");
    const struct passwd *pw;

    if (state && *state == '/')
        return snprintf (buf, size, "%s", state) < (int)size ? 0 : -1;
    if ((!home || *home != '/') && (pw = getpwuid (geteuid ())))
        home = pw->pw_dir;
    return home && snprintf (buf, size, "%s/.local/state", home) < (int)size ? 0 : -1;
}

/* Create 'path' and the folders above it. */
static int make_record_parents (char *path)
{
    for (char *slash = strchr (path + 1, '/'); slash; slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        int rv = mkdir (path, 0700);
        *slash = '/';
        if (rv < 0 && errno != EEXIST && errno != EACCES && errno != EROFS)
            return -1;
    }
    return mkdir (path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* The name of the link in a record to the experiment. */
static const char owner_link[] = "experiment";

enum { KEY_SIZE = 96, NAME_SIZE = 64, ID_LENGTH = 32 };

/* The folder of all records; -1 with errno. */
static int find_records (char *buf, size_t size, bool make)
{
    char base[PATH_MAX];
    char own[PATH_MAX];

    errno = ENOENT;
    if (record_base (base, sizeof (base)) < 0 || (make && make_record_parents (base) < 0)
        || !realpath (base, own) || snprintf (buf, size, "%s/slurm-dl", own) >= (int)size
        || (make && mkdir (buf, 0700) < 0 && errno != EEXIST))
        return -1;
    return user_folder_check (buf);
}

static int record_key_text (char key[KEY_SIZE], const struct sweep *s, enum record_key by)
{
    char digest[DIGEST_SIZE];
    struct stat st;

    if (by == RECORD_PATH) {
        digest_of (digest, s->dir, strlen (s->dir));
        snprintf (key, KEY_SIZE, "path-%s", digest);
    } else if (stat (s->dir, &st) == 0)
        snprintf (key, KEY_SIZE, "inode-%lx-%lx", (unsigned long)st.st_dev,
                  (unsigned long)st.st_ino);
    else
        return -1;
    return 0;
}

/* The name of this folder's record. */
static int name_by (const char *records, const struct sweep *s, enum record_key by,
                    char name[NAME_SIZE])
{
    char key[KEY_SIZE];
    char link[PATH_MAX + KEY_SIZE];
    ssize_t n;

    if (by == RECORD_ID)
        return snprintf (name, NAME_SIZE, "%s", s->id ? s->id : "") > 0 ? 0 : -1;
    if (record_key_text (key, s, by) < 0)
        return -1;
    snprintf (link, sizeof (link), "%s/%s", records, key);
    if ((n = readlink (link, name, NAME_SIZE - 1)) <= 0)
        return -1;
    name[n] = '\0';
    return strchr (name, '/') || *name == '.' ? -1 : 0;
}

/* The name of this folder's record, if it is of an experiment with this id. */
static int name_of_record (const char *records, const struct sweep *s, char *name)
{
    for (enum record_key by = RECORD_PATH; s->id && by <= RECORD_INODE; by++)
        if (name_by (records, s, by, name) == 0 && !strncmp (name, s->id, ID_LENGTH)
            && (!name[ID_LENGTH] || name[ID_LENGTH] == '.'))
            return 0;
    errno = ENOENT;
    return -1;
}

/* Only a decision of the user ('anew') gives a folder another record. */
static int link_record (const char *records, const struct sweep *s, enum record_key by,
                        const char *name, bool anew)
{
    char key[KEY_SIZE];
    char path[PATH_MAX + KEY_SIZE];
    char tmp[PATH_MAX + KEY_SIZE + 64];
    char there[NAME_SIZE];

    if (name_by (records, s, by, there) == 0 && (!anew || !strcmp (there, name)))
        return 0;
    if (record_key_text (key, s, by) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/%s", records, key);
    link_tmp_name (tmp, sizeof (tmp), path);
    return symlink (name, tmp) < 0 ? -1 : rename (tmp, path);
}

/* The id may be the name of another folder's record. */
static int make_record (const char *records, const struct sweep *s, char name[NAME_SIZE])
{
    char path[PATH_MAX + NAME_SIZE];
    char link[PATH_MAX + NAME_SIZE + 16];
    char digest[DIGEST_SIZE];
    int rv;

    snprintf (name, NAME_SIZE, "%s", s->id);
    snprintf (path, sizeof (path), "%s/%s", records, name);
    if ((rv = mkdir (path, 0700)) < 0 && errno == EEXIST) {
        digest_of (digest, s->dir, strlen (s->dir));
        snprintf (name, NAME_SIZE, "%s.%.16s", s->id, digest);
        snprintf (path, sizeof (path), "%s/%s", records, name);
        rv = mkdir (path, 0700);
    }
    if (rv < 0)
        return errno == EEXIST ? 0 : -1;
    snprintf (link, sizeof (link), "%s/%s", path, owner_link);
    return symlink (s->dir, link);
}

enum record_use { RECORD_READ, RECORD_MAKE, RECORD_WRITE };

static int find_record_folder (const struct sweep *s, char *buf, size_t size, enum record_use use)
{
    bool make = use != RECORD_READ;
    bool anew = use == RECORD_WRITE;
    char records[PATH_MAX - NAME_SIZE];
    char name[NAME_SIZE];

    if (find_records (records, sizeof (records), make) < 0)
        return -1;
    if (name_of_record (records, s, name) < 0 && (!make || make_record (records, s, name) < 0))
        return -1;
    snprintf (buf, size, "%s/%s", records, name);
    if (make
        && (link_record (records, s, RECORD_PATH, name, anew) < 0
            || link_record (records, s, RECORD_INODE, name, anew) < 0))
        return -1;
    return user_folder_check (buf);
}

static int open_record (const struct sweep *s, char *buf, size_t size, enum record_use use,
                        struct slurmdl_error *err)
{
    *buf = '\0';
    if (find_record_folder (s, buf, size, use) == 0)
        return 0;
    return errorf (err, "cannot keep records in %s: %s (XDG_STATE_HOME names another folder)",
                   *buf ? buf : "the home folder",
                   errno == EPERM ? "others may write there" : inside_error (errno));
}

int record_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err)
{
    return open_record (s, buf, size, RECORD_MAKE, err);
}

static char *read_record_file (const char *folder, const char *name)
{
    char path[PATH_MAX + 300];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return file_read_now (path, RECORD_MAX, NULL, NULL, NULL);
}

/* Read a small file of the record; the caller frees the text.  NULL: there is none. */
static char *record_read (const struct sweep *s, const char *name)
{
    char folder[PATH_MAX];

    return find_record_folder (s, folder, sizeof (folder), RECORD_READ) < 0
               ? NULL
               : read_record_file (folder, name);
}

/* The same from the record of the folder with this path or inode, or of any experiment with this
 * id, which need not be this experiment.
 */
static char *record_read_by (const struct sweep *s, enum record_key key, const char *name)
{
    char records[PATH_MAX - NAME_SIZE];
    char folder[PATH_MAX];
    char of[NAME_SIZE];

    if (find_records (records, sizeof (records), false) < 0 || name_by (records, s, key, of) < 0)
        return NULL;
    snprintf (folder, sizeof (folder), "%s/%s", records, of);
    return user_folder_check (folder) < 0 ? NULL : read_record_file (folder, name);
}

static int record_write (const struct sweep *s, const char *name, const char *text,
                         struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 300];
    mode_t mask;
    int rv;

    if (open_record (s, folder, sizeof (folder), RECORD_WRITE, err) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    mask = umask (077);
    rv = publish_replace (path, text, strlen (text), err);
    umask (mask);
    return rv;
}

/* Remove the links of the folder as well, whatever they name: a later folder may get its path, or
 * its inode.
 */
void record_remove (const struct sweep *s)
{
    char records[PATH_MAX - NAME_SIZE];
    char folder[PATH_MAX];
    char key[KEY_SIZE];
    char path[PATH_MAX + KEY_SIZE];

    if (find_record_folder (s, folder, sizeof (folder), RECORD_READ) == 0)
        remove_tree (folder);
    if (find_records (records, sizeof (records), false) < 0)
        return;
    for (enum record_key by = RECORD_PATH; by <= RECORD_INODE; by++)
        if (record_key_text (key, s, by) == 0) {
            snprintf (path, sizeof (path), "%s/%s", records, key);
            unlink (path);
        }
}

/* Most bytes of an experiment file in a record, and most lines printed about changes. */
enum { CONF_MAX = 1 << 20, CHANGES_SHOWN = 20 };

/* Between the lines of a record and the experiment file. */
static const char conf_mark[] = "\nconf\n";

/* ---- who may write ---- */

static bool is_written_by_user_only (const char *path)
{
    struct stat st;

    return lstat (path, &st) == 0 && user_writes_alone (&st);
}

bool trust_is_private (const struct sweep *s)
{
    static const char *const names[] = { "", "/experiment.conf", "/log", "/trials", "/workers" };
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++) {
        snprintf (path, sizeof (path), "%s%s", s->dir, names[i]);
        if (!is_written_by_user_only (path))
            return false;
    }
    return s->log_owner == geteuid ();
}

/* ---- what it runs ---- */

/* Write one line, whatever the value contains. */
static void put_line (FILE *f, const char *name, const char *value)
{
    fprintf (f, "%s ", name);
    for (; *value; value++)
        if (*value == '\n' || *value == '\\')
            fputs (*value == '\n' ? "\\n" : "\\\\", f);
        else
            putc (*value, f);
    putc ('\n', f);
}

/* The caller frees it. */
static char *pin_text (const struct sweep *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    fprintf (f, "digest %s\nowner %ld\n", s->digest, (long)s->owner);
    fprintf (f, "log_owner %ld\nid %s\n", (long)s->log_owner, s->id);
    put_line (f, "dir", s->exp->dir);
    if (s->code) {
        put_line (f, "code", s->code);
        put_line (f, "root", s->root);
    }
    xclose_memstream (f);
    return text;
}

void trust_allow (struct sweep *s)
{
    char *text = pin_text (s);

    digest_of (s->pin, text, strlen (text));
    free (text);
}

/* Record the file itself as well, to show later what has changed. */
int trust_record (struct sweep *s, struct slurmdl_error *err)
{
    char *pin = pin_text (s);
    bool fits = strlen (s->frozen) <= CONF_MAX;
    char *text = xasprintf ("%s%s%s", pin, fits ? conf_mark + 1 : "", fits ? s->frozen : "");
    int rv;

    trust_allow (s);
    rv = record_write (s, "pin", text, err);
    free (text);
    free (pin);
    return rv;
}

/* ---- what has changed ---- */

/* The record's lines, and all keys of the experiment file in it. */
static json_t *pin_json (char *pin, const char *frozen)
{
    json_t *o = frozen ? config_flat (frozen) : NULL;
    char *save;

    o = o ? o : json_object ();
    for (char *line = strtok_r (pin, "\n", &save); line; line = strtok_r (NULL, "\n", &save)) {
        char *value = strchr (line, ' ');
        if (!value || !strncmp (line, "digest", 6))
            continue;
        *value++ = '\0';
        json_object_set_new (o, line, json_string (value));
    }
    return o;
}

static void complain_change (long n, const char *name, const char *first, const char *second,
                             void *none)
{
    (void)none;
    if (n < CHANGES_SHOWN)
        complain ("  %s: %.300s -> %.300s", name, first, second);
}

/* The record of this path comes first, whatever the folder contains now; a folder that was moved is
 * found by its inode; the id is only a claim of the log.
 */
static char *find_pin (const struct sweep *s, enum record_key *by)
{
    char *pin = NULL;

    for (*by = RECORD_PATH; *by <= RECORD_ID; ++*by)
        if ((pin = record_read_by (s, *by, "pin")))
            break;
    return pin;
}

void trust_say_changes (const struct sweep *s)
{
    enum record_key by;
    char *record = find_pin (s, &by);
    char *frozen = record ? strstr (record, conf_mark) : NULL;
    char *now = pin_text (s);
    char more[AND_MORE_SIZE];
    json_t *old, *new;
    long n;

    if (frozen) {
        *frozen = '\0';
        frozen += strlen (conf_mark);
    }
    if (record) {
        old = pin_json (record, frozen);
        new = pin_json (now, frozen ? s->frozen : NULL);
        n = flat_compare (old, new, complain_change, NULL);
        if (n > CHANGES_SHOWN)
            complain (" %s", and_more (more, n - CHANGES_SHOWN));
        else if (n == 0)
            complain ("  no setting: %s",
                      frozen ? "only how the file is written" : "or which one was not recorded");
        json_decref (old);
        json_decref (new);
    }
    free (record);
    free (now);
}

/* ---- whether it may run ---- */

static const char *owner_text (uid_t uid)
{
    const struct passwd *pw = getpwuid (uid);
    static char number[24];

    if (pw)
        return pw->pw_name;
    snprintf (number, sizeof (number), "user %ld", (long)uid);
    return number;
}

static bool was_changed (const struct sweep *s)
{
    return strcmp (s->logged_digest, s->digest);
}

bool trust_is_made (const struct sweep *s, const char *id)
{
    return !strcmp (s->id, id) && s->log_owner == geteuid () && s->owner == geteuid ()
           && !was_changed (s) && !s->is_mended;
}

/* Whether a record matches the experiment as it is now. */
static bool pin_is_current (const struct sweep *s, const char *record)
{
    char *now = pin_text (s);
    size_t n = strlen (now);
    bool same = record && !strncmp (record, now, n)
                && (!record[n] || strstr (record, conf_mark) == record + n - 1);

    free (now);
    return same;
}

/* If only the user may write to the folder, nobody else can have changed it: only a record of the
 * same path can show a change.
 */
static enum trust_state trust_state_of (const struct sweep *s, const char *record,
                                        enum record_key by)
{
    bool same = pin_is_current (s, record);

    if (record && by == RECORD_PATH)
        return same ? TRUST_SAME : TRUST_CHANGED;
    if (same && by == RECORD_INODE)
        return TRUST_SAME;
    if (was_changed (s))
        return TRUST_CHANGED;
    return !record || same || trust_is_private (s) ? TRUST_NEW : TRUST_CHANGED;
}

enum trust_state trust_check (struct sweep *s, char *why, size_t size)
{
    enum record_key by;
    char *record = find_pin (s, &by);
    bool known = record;
    enum trust_state state = trust_state_of (s, record, by);

    free (record);
    if (state == TRUST_SAME)
        trust_allow (s);
    if (state == TRUST_NEW && trust_is_private (s)) {
        trust_record (s, NULL);
        state = TRUST_SAME;
    }
    if (state == TRUST_CHANGED)
        snprintf (why, size,
                  "what its trials run as you has changed since %s: see %s of "
                  "%s, and the folder %s",
                  known ? "you last started it" : "it was made", "experiment.conf",
                  owner_text (s->owner), s->exp->dir);
    else if (state == TRUST_NEW)
        snprintf (why, size,
                  "its trials would run, as you, what experiment.conf of %s says, in the folder %s",
                  owner_text (s->owner), s->exp->dir);
    return state;
}

/* ---- the user's own ---- */

static void job_name (char *buf, size_t size, const char *job)
{
    snprintf (buf, size, "job-%.200s", job);
    buf[strcspn (buf, ";")] = '\0';
}

void trust_record_job (const struct sweep *s, const char *job)
{
    struct slurmdl_error why = { "" };
    char name[256];

    job_name (name, sizeof (name), job);
    if (!trust_is_private (s) && record_write (s, name, job, &why) < 0)
        complain ("%s", why.text);
}

bool trust_has_job (const struct sweep *s, const char *job)
{
    char name[256];
    char *text;

    if (trust_is_private (s))
        return true;
    job_name (name, sizeof (name), job);
    text = record_read (s, name);
    free (text);
    return text != NULL;
}

int trust_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err)
{
    if (!trust_is_private (s))
        return record_folder (s, buf, size, err);
    if (snprintf (buf, size, "%s/workers", s->dir) < (int)size)
        return 0;
    return errorf (err, "%s: path too long", s->dir);
}

/* Limits on the workers that other members of a group can make this user start. */
enum { WORKERS_TIMES = 4, WORKERS_LEAST = 16 };

long trust_workers (const struct sweep *s)
{
    long most = WORKERS_TIMES * (long)s->exp->resources->workers;

    most = most > WORKERS_LEAST ? most : WORKERS_LEAST;
    if (s->wanted < 1)
        return (long)s->exp->resources->workers;
    if (s->wanted <= most || trust_is_private (s))
        return s->wanted;
    complain ("%s: %ld of the %ld workers that its log requests: its group may write there; 'dl "
              "resume --workers N' starts more",
              s->dir, most, s->wanted);
    return most;
}
