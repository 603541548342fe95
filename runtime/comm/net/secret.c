/* SPDX-License-Identifier: Apache-2.0 */
/* The secret of a step, which its processes have and nobody else: in their
 * environment, or in a file of the user's.
 */
#include "runtime/comm/net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/step_id.h"
#include "runtime/storage/inside.h"

static const char folder[] = ".slurm-dl";

enum { FILE_SIZE = SECRET_DIGITS + 1 }; /* a line */

void secret_print (const unsigned char *key, char *text)
{
    for (int i = 0; i < HANDSHAKE_KEY; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", key[i]);
}

static int digit (char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int secret_parse (const char *text, unsigned char *key)
{
    unsigned char any = 0;

    for (int i = 0; i < HANDSHAKE_KEY; i++, text += 2) {
        int high = digit (text[0]);
        int low = high < 0 ? -1 : digit (text[1]);
        if (low < 0)
            return -1;
        any |= key[i] = (unsigned char)(high << 4 | low);
    }
    return *text || !any ? -1 : 0;
}

/* A secret that several steps have been given is not one of theirs. */
static void
derive (const unsigned char *secret, const char *purpose, unsigned char *key)
{
    const char *step = step_id ();
    char text[256];

    snprintf (text,
              sizeof (text),
              "%.32s %.64s %.64s",
              purpose,
              *step ? environment_text ("SLURM_JOB_ID", "") : "",
              step);
    handshake_derive (secret, text, key, HANDSHAKE_KEY);
}

int secret_of_environment (const char *purpose,
                           unsigned char *key,
                           struct slurmdl_error *err)
{
    const char *text = environment_text ("DL_SECRET", "");
    unsigned char secret[HANDSHAKE_KEY];

    if (!*text)
        return 0;
    if (secret_parse (text, secret) < 0) {
        errno = EINVAL;
        return errorf (err,
                       "DL_SECRET is not 32 hexadecimal digits: unset it, or "
                       "set it to the output of `openssl rand -hex 16`, the "
                       "same for all ranks");
    }
    derive (secret, purpose, key);
    handshake_forget (secret, sizeof (secret));
    return 1;
}

int secret_step_name (char *buf, size_t size, int port)
{
    const char *again = environment_text ("SLURM_RESTART_COUNT", "");
    int n = snprintf (buf,
                      size,
                      "%s.%s.%s.%d",
                      environment_text ("SLURM_JOB_ID", ""),
                      step_id (),
                      *again ? again : "0",
                      port);

    return *environment_text ("SLURM_JOB_ID", "") && *step_id ()
                   && n < (int)size && !strchr (buf, '/')
               ? 0
               : -1;
}

static const char *home (void)
{
    const char *dir = getenv ("HOME");
    const struct passwd *pw = dir && *dir ? NULL : getpwuid (geteuid ());

    return pw ? pw->pw_dir : dir;
}

/* Of this user, and of nobody else. */
static bool is_private (const struct stat *st)
{
    return st->st_uid == geteuid () && !(st->st_mode & 077);
}

static int keep (int fd, bool good)
{
    if (good)
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

/* The folder; -1: EPERM if it is another user's, or others may enter it. */
static int open_folder (bool make)
{
    const char *dir = home ();
    struct stat st;
    int fd, at;

    if (!dir || *dir != '/'
        || (at = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        errno = ENOTDIR; /* nobody will make it */
        return -1;
    }
    if (make)
        mkdirat (at, folder, 0700);
    fd = openat (at, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close (at);
    return fd < 0 ? -1 : keep (fd, fstat (fd, &st) == 0 && is_private (&st));
}

/* A link, a pipe, or anybody else's file is none. */
static int open_file (int at, const char *name)
{
    int fd = openat (at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    return fd < 0 ? -1
                  : keep (fd,
                          fstat (fd, &st) == 0 && S_ISREG (st.st_mode)
                              && is_private (&st) && st.st_size == FILE_SIZE);
}

static int read_file (int at, const char *name, unsigned char *key)
{
    char text[FILE_SIZE + 1] = "";
    int fd = open_file (at, name);
    int rv = -1;

    if (fd < 0)
        return -1;
    errno = EINVAL;
    if (read (fd, text, FILE_SIZE) == FILE_SIZE
        && text[SECRET_DIGITS] == '\n') {
        text[SECRET_DIGITS] = '\0';
        rv = secret_parse (text, key);
    }
    close (fd);
    handshake_forget (text, sizeof (text));
    return rv;
}

static int write_file (int at, const char *name)
{
    unsigned char key[HANDSHAKE_KEY];
    char text[FILE_SIZE + 1];
    int rv = -1;
    int fd;

    if (getrandom (key, sizeof (key), 0) != sizeof (key))
        return -1;
    secret_print (key, text);
    text[SECRET_DIGITS] = '\n';
    fd = openat (
        at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && write (fd, text, FILE_SIZE) == FILE_SIZE)
        rv = 0;
    if (fd >= 0 && close (fd) < 0)
        rv = -1;
    handshake_forget (key, sizeof (key));
    handshake_forget (text, sizeof (text));
    return rv;
}

/* Under a name that no file has, or one of an earlier process has already; a
 * file system without hard links is asked to rename.
 */
static int publish (int at, const char *name)
{
    char tmp[64];
    uint64_t nonce;
    int rv = -1;

    if (getrandom (&nonce, sizeof (nonce), 0) != sizeof (nonce))
        return -1;
    snprintf (tmp, sizeof (tmp), ".tmp.%016" PRIx64, nonce);
    if (write_file (at, tmp) == 0)
        rv = linkat (at, tmp, at, name, 0);
    if (rv < 0 && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS))
        rv = renameat2 (at, tmp, at, name, RENAME_NOREPLACE);
    if (rv < 0 && errno == EEXIST)
        rv = 0;
    unlinkat (at, tmp, 0);
    return rv;
}

static int explain (const char *name, struct slurmdl_error *err)
{
    int saved = errno;
    const char *dir = home (); /* looks a user up */

    errno = saved;
    errorf (err,
            "there is no secret for the ranks: ~/%s/%.40s (of %.40s): %s; "
            "start them with srun --dl=torch, or set DL_SECRET to 32 "
            "hexadecimal digits",
            folder,
            name,
            dir ? dir : "no home",
            saved == EPERM ? "not a file of yours that only you may read"
                           : strerror (saved));
    errno = saved;
    return -1;
}

int secret_make (const char *name,
                 unsigned char *key,
                 struct slurmdl_error *err)
{
    int at = open_folder (true);
    int rv = at < 0 ? -1 : read_file (at, name, key);

    if (rv < 0 && at >= 0 && errno == ENOENT && publish (at, name) == 0)
        rv = read_file (at, name, key);
    rv = inside_close (at, rv);
    return rv < 0 ? explain (name, err) : 0;
}

int secret_look_up (const char *name,
                    unsigned char *key,
                    struct slurmdl_error *err)
{
    int at = open_folder (false);
    int rv = inside_close (at, at < 0 ? -1 : read_file (at, name, key));

    return rv < 0 ? explain (name, err) : 0;
}

void secret_remove (const char *name)
{
    int saved = errno;
    int at = open_folder (false);

    if (at >= 0)
        unlinkat (at, name, 0);
    inside_close (at, 0);
    errno = saved;
}
