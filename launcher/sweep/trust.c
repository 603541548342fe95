/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a user wants to run what an experiment's files say. */
#include "launcher/sweep/trust.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/flat.h"
#include "launcher/sweep/trust_record.h"
#include "launcher/sys/say.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* Of the experiment file in a record, and of lines about a change. */
enum { CONF_MAX = 1 << 20, CHANGES_SAID = 20 };

/* Between the lines of a record and the experiment file. */
static const char conf_mark[] = "\nconf\n";

/* ---- who may write ---- */

static bool is_own (const char *path)
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
        if (!is_own (path))
            return false;
    }
    return s->log_owner == geteuid ();
}

/* ---- what it runs ---- */

/* A line of its own, whatever is in a value. */
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

/* The caller frees it; NULL: out of memory. */
static char *pin_text (const struct sweep *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream (&text, &size);

    if (!f)
        return NULL;
    fprintf (f, "digest %s\nowner %ld\n", s->digest, (long)s->owner);
    fprintf (f, "log_owner %ld\nid %s\n", (long)s->log_owner, s->id);
    put_line (f, "dir", s->exp->dir);
    if (s->code) {
        put_line (f, "code", s->code);
        put_line (f, "root", s->root);
    }
    fclose (f);
    return text;
}

void trust_allow (struct sweep *s)
{
    char *text = pin_text (s);

    digest_of (s->pin, text ? text : "", text ? strlen (text) : 0);
    free (text);
}

/* With the file itself, for who asks later what has changed. */
int trust_record (struct sweep *s, struct slurmdl_error *err)
{
    char *pin = pin_text (s);
    bool fits = strlen (s->frozen) <= CONF_MAX;
    char *text = NULL;
    int rv = -1;

    trust_allow (s);
    if (pin
        && asprintf (&text, "%s%s%s", pin, fits ? conf_mark + 1 : "", fits ? s->frozen : "") >= 0)
        rv = record_write (s, "pin", text, err);
    else
        errorf (err, "out of memory");
    free (text);
    free (pin);
    return rv;
}

/* ---- what has changed ---- */

/* The record's lines, and all keys of the experiment file that it has. */
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

static void say_change (long n, const char *name, const char *first, const char *second, void *none)
{
    (void)none;
    if (n < CHANGES_SAID)
        complain ("  %s: %.300s -> %.300s", name, first, second);
}

/* That of the folder with this path counts, whatever is there now; one that was
 * moved is known by its inode; the id is only what the log says.
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
    json_t *old, *new;
    long n;

    if (frozen) {
        *frozen = '\0';
        frozen += strlen (conf_mark);
    }
    if (record && now) {
        old = pin_json (record, frozen);
        new = pin_json (now, frozen ? s->frozen : NULL);
        n = flat_compare (old, new, say_change, NULL);
        if (n > CHANGES_SAID)
            complain ("  and %ld more", n - CHANGES_SAID);
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

static const char *name_of (uid_t uid)
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

/* Whether a record is of what is there now. */
static bool is_same (const struct sweep *s, const char *record)
{
    char *now = pin_text (s);
    size_t n = now ? strlen (now) : 0;
    bool same = record && now && !strncmp (record, now, n)
                && (!record[n] || strstr (record, conf_mark) == record + n - 1);

    free (now);
    return same;
}

enum trust_state { TRUST_SAME, TRUST_NEW, TRUST_CHANGED };

/* Nobody but the user has put together what only he may write to: of such a
 * folder no more than the path must be that of another one.
 */
static enum trust_state state_of (const struct sweep *s, const char *record, enum record_key by)
{
    bool same = is_same (s, record);

    if (record && by == RECORD_PATH)
        return same ? TRUST_SAME : TRUST_CHANGED;
    if (same && by == RECORD_INODE)
        return TRUST_SAME;
    if (was_changed (s))
        return TRUST_CHANGED;
    return !record || same || trust_is_private (s) ? TRUST_NEW : TRUST_CHANGED;
}

int trust_check (struct sweep *s, char *why, size_t size)
{
    enum record_key by;
    char *record = find_pin (s, &by);
    bool known = record;
    enum trust_state state = state_of (s, record, by);

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
                  name_of (s->owner), s->exp->dir);
    else if (state == TRUST_NEW)
        snprintf (why, size,
                  "its trials would run, as you, what experiment.conf of %s "
                  "says, in the folder %s",
                  name_of (s->owner), s->exp->dir);
    return state == TRUST_SAME ? 0 : state == TRUST_NEW ? 1 : 2;
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

/* What a member of a group asks for that is more is no fork bomb. */
enum { WORKERS_TIMES = 4, WORKERS_LEAST = 16 };

long trust_workers (const struct sweep *s)
{
    long most = WORKERS_TIMES * (long)s->exp->workers;

    most = most > WORKERS_LEAST ? most : WORKERS_LEAST;
    if (s->wanted < 1)
        return (long)s->exp->workers;
    if (s->wanted <= most || trust_is_private (s))
        return s->wanted;
    complain ("%s: %ld of the %ld workers that its log asks for: its group may "
              "write there; 'dl resume --workers N' starts more",
              s->dir, most, s->wanted);
    return most;
}
