/* SPDX-License-Identifier: Apache-2.0 */
/* What a Jupyter server in a job says of itself. */
#include "launcher/interactive/server_file.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/trust/record.h"
#include "runtime/base/error.h"
#include "runtime/storage/own_folder.h"

enum { FILE_MAX = 64 << 10 };

int notebooks_folder (char path[PATH_MAX], struct slurmdl_error *err)
{
    char base[PATH_MAX - 32];

    if (record_base (base, sizeof (base)) < 0) {
        errno = ENOENT;
        return errorf (err, "there is no home folder: set HOME");
    }
    snprintf (path, PATH_MAX, "%s/slurm-dl/notebooks", base);
    return own_folder_make (path, 0700, err);
}

/* The server writes jpserver-PID.json (older ones nbserver-) once it listens.
 */
static int find_file (const char *dir, char *path, size_t size)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    size_t n;
    int rv = -1;

    while (d && rv < 0 && (e = readdir (d))) {
        n = strlen (e->d_name);
        if (n > 5 && !strcmp (e->d_name + n - 5, ".json")
            && (!strncmp (e->d_name, "jpserver-", 9)
                || !strncmp (e->d_name, "nbserver-", 9))
            && snprintf (path, size, "%s/%s", dir, e->d_name) < (int)size)
            rv = 0;
    }
    if (d)
        closedir (d);
    return rv;
}

static int read_node (const char *dir, struct notebook_server *s)
{
    char path[PATH_MAX];
    char *text = NULL;

    if (snprintf (path, sizeof (path), "%s/node", dir) < (int)sizeof (path))
        text = file_read_now (path, FILE_MAX, NULL, NULL, NULL);
    if (text)
        text[strcspn (text, "\n")] = '\0';
    if (!text || !word_fits (text)) {
        free (text);
        return -1;
    }
    snprintf (s->node, sizeof (s->node), "%s", text);
    free (text);
    return 0;
}

static bool is_token (const char *text)
{
    return text && *text
           && text[strspn (text,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
                           "YZ0123456789-_")]
                  == '\0';
}

static int take (const json_t *o, struct notebook_server *s)
{
    const char *token = json_string_value (json_object_get (o, "token"));
    const char *host = json_string_value (json_object_get (o, "hostname"));

    s->port = (int)json_integer_value (json_object_get (o, "port"));
    s->network =
        host && strcmp (host, "127.0.0.1") && strcmp (host, "localhost");
    if (!is_token (token)) {
        errno = EPERM;
        return -1;
    }
    snprintf (s->token, sizeof (s->token), "%s", token);
    if (s->network && word_fits (host))
        snprintf (s->node, sizeof (s->node), "%s", host);
    errno = EBADMSG;
    return s->port > 0 && s->port < 65536 ? 0 : -1;
}

int notebook_server_read (const char *folder,
                          long job,
                          struct notebook_server *s,
                          struct slurmdl_error *err)
{
    char dir[PATH_MAX];
    char path[2 * PATH_MAX];
    char *text;
    json_t *o;
    int rv;

    *s = (struct notebook_server){ 0 };
    snprintf (dir, sizeof (dir), "%s/%ld", folder, job);
    if (find_file (dir, path, sizeof (path)) < 0 || read_node (dir, s) < 0)
        return 1;
    if (!(text = file_read_now (path, FILE_MAX, NULL, NULL, err)))
        return -1;
    o = json_loads (text, 0, NULL);
    free (text);
    /* it may be being written */
    rv = o ? take (o, s) : 1;
    json_decref (o);
    if (rv < 0 && errno == EPERM)
        errorf (err,
                "the Jupyter server of job %ld has no token: your Jupyter "
                "configuration switches it off, and others could use it",
                job);
    else if (rv < 0)
        errorf (err, "%s: no server of Jupyter's wrote it", path);
    return rv;
}
