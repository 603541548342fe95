/* SPDX-License-Identifier: Apache-2.0 */
/* The URL of a webhook, which is a secret, and what curl is told. */
#include "launcher/worker/webhook.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { URL_MAX = 4096 };

const char *notice_folder (const struct experiment *e)
{
    return e->file_dir ? e->file_dir : e->dir;
}

/* Of the file that is open: its owner and mode, and what it has. */
static int read_own (const char *path, char url[URL_MAX], struct slurmdl_error *err)
{
    struct stat st;
    int fd = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n =
        fd < 0 || fstat (fd, &st) < 0 || !S_ISREG (st.st_mode) ? -1 : read (fd, url, URL_MAX - 1);

    inside_close (fd, 0);
    if (n < 0)
        return errorf (err, "'notify.webhook': %s: %s", path,
                       fd < 0 ? strerror (errno) : "cannot be read as a file");
    url[n] = '\0';
    if ((st.st_uid == geteuid () || st.st_uid == 0) && !(st.st_mode & 077))
        return 0;
    errno = EPERM;
    return errorf (err,
                   "'notify.webhook': %s: others may read or change it: "
                   "it must be your own, of mode 0600",
                   path);
}

static int find_url (const struct experiment *e, char url[URL_MAX], struct slurmdl_error *err)
{
    const char *where = e->notify.webhook;
    const char *value = *where == '$' ? getenv (where + 1) : NULL;
    char path[PATH_MAX];

    if (*where == '$') {
        snprintf (url, URL_MAX, "%s", value ? value : "");
        errno = ENOENT;
        return value ? 0
                     : errorf (err,
                               "'notify.webhook': the variable %s is not "
                               "set",
                               where + 1);
    }
    snprintf (path, sizeof (path), "%s%s%s", *where == '/' ? "" : notice_folder (e),
              *where == '/' ? "" : "/", where);
    return read_own (path, url, err);
}

/* One line that needs no quotes. */
static int check_url (char *url, struct slurmdl_error *err)
{
    url[strcspn (url, "\r\n")] = '\0';
    for (const char *c = url; *c; c++)
        if (!isgraph ((unsigned char)*c) || strchr ("\"\\", *c))
            *url = '\0';
    if (!strncmp (url, "https://", 8) || !strncmp (url, "http://", 7))
        return 0;
    errno = EINVAL;
    return errorf (err, "'notify.webhook': what it names has no URL that begins "
                        "with https:// or http:// on its first line");
}

static void put_quoted (FILE *f, const char *text)
{
    fputc ('"', f);
    for (; *text; text++) {
        if (strchr ("\"\\", *text))
            fputc ('\\', f);
        fputc (*text, f);
    }
    fputs ("\"\n", f);
}

char *webhook_config (const struct experiment *e, const char *json, struct slurmdl_error *err)
{
    char url[URL_MAX];
    char *text = NULL;
    size_t size = 0;
    FILE *f;

    if (find_url (e, url, err) < 0 || check_url (url, err) < 0)
        return NULL;
    if ((f = open_memstream (&text, &size))) {
        fputs ("url = ", f);
        put_quoted (f, url);
        fputs ("header = \"Content-Type: application/json\"\ndata-raw = ", f);
        put_quoted (f, json);
    }
    explicit_bzero (url, sizeof (url));
    if (f && fclose (f) == 0)
        return text;
    free (text);
    errorf (err, "out of memory");
    return NULL;
}

int webhook_check (const struct experiment *e, struct slurmdl_error *err)
{
    char url[URL_MAX];

    return e->notify.webhook && (find_url (e, url, err) < 0 || check_url (url, err) < 0) ? -1 : 0;
}
