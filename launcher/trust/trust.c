/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a user wants to run what an experiment's files say. */
#include "launcher/trust/trust.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/sweep.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/say.h"
#include "launcher/sys/user.h"
#include "launcher/trust/record.h"
#include "runtime/base/error.h"

/* ---- who may write ---- */

static bool is_own (const char *path)
{
    struct stat st;

    return lstat (path, &st) == 0 && user_writes_alone (&st);
}

bool trust_is_private (const struct sweep *s)
{
    static const char *const names[] = {
        "", "/experiment.conf", "/log", "/trials", "/workers"
    };
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof (names) / sizeof (*names); i++) {
        snprintf (path, sizeof (path), "%s%s", s->dir, names[i]);
        if (!is_own (path))
            return false;
    }
    return true;
}

/* ---- what it runs ---- */

static char *pin_text (const struct sweep *s)
{
    char *text;

    return asprintf (&text,
                     "digest %s\nowner %ld\ndir %s\n%s%s%s%s%s",
                     s->digest,
                     (long)s->owner,
                     s->exp->dir,
                     s->code ? "code " : "",
                     s->code ? s->code : "",
                     s->code ? "\nroot " : "",
                     s->code ? s->root : "",
                     s->code ? "\n" : "")
                   < 0
               ? NULL
               : text;
}

void trust_pin (const struct sweep *s, char pin[DIGEST_SIZE])
{
    char *text = pin_text (s);

    digest_of (pin, text ? text : "", text ? strlen (text) : 0);
    free (text);
}

int trust_record (const struct sweep *s, struct slurmdl_error *err)
{
    char *text = pin_text (s);
    int rv = text ? record_write (s, "pin", text, err)
                  : errorf (err, "out of memory");

    free (text);
    return rv;
}

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
    return s->logged_digest && strcmp (s->logged_digest, s->digest);
}

/* Those of before there were records go on with what is their own. */
static bool is_old_own (const struct sweep *s)
{
    struct stat st;

    return !s->id && s->owner == geteuid () && stat (s->dir, &st) == 0
           && st.st_uid == geteuid ();
}

int trust_check (const struct sweep *s, char *why, size_t size)
{
    char *record = record_read (s, "pin");
    char *now = pin_text (s);
    bool same = record && now && !strcmp (record, now);
    bool known = record;

    free (record);
    free (now);
    if (same)
        return 0;
    if (known || was_changed (s)) {
        snprintf (why,
                  size,
                  "what its trials run as you has changed since %s: see %s of "
                  "%s, and the folder %s",
                  known ? "you last started it" : "it was made",
                  "experiment.conf",
                  name_of (s->owner),
                  s->exp->dir);
        return 1;
    }
    if (trust_is_private (s) || is_old_own (s)) {
        trust_record (s, NULL);
        return 0;
    }
    snprintf (why,
              size,
              "its trials would run, as you, what experiment.conf of %s says, "
              "in the folder %s",
              name_of (s->owner),
              s->exp->dir);
    return 1;
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

int trust_folder (const struct sweep *s,
                  char *buf,
                  size_t size,
                  struct slurmdl_error *err)
{
    if (!trust_is_private (s))
        return record_folder (s, buf, size, err);
    if (snprintf (buf, size, "%s/workers", s->dir) < (int)size)
        return 0;
    return errorf (err, "%s: path too long", s->dir);
}
