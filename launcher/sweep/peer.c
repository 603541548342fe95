/* SPDX-License-Identifier: Apache-2.0 */
/* Register a worker, give signs of life, claim attempts. */
#include "launcher/sweep/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/liveness.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"

/* ---- who this process is ---- */

bool peer_is_nonce (const char *text)
{
    return strlen (text) == 32 && strspn (text, "0123456789abcdef") == 32;
}

void peer_describe (struct peer_membership *p, const char *slot)
{
    unsigned long long r[2] = { 0 };
    ssize_t n;

    if (getrandom (r, sizeof (r), 0) != sizeof (r))
        r[0] = (unsigned long long)getpid ();
    snprintf (p->self.nonce, sizeof (p->self.nonce), "%016llx%016llx", r[0], r[1]);
    snprintf (p->self.slot, sizeof (p->self.slot), "%s", slot);
    gethostname (p->host, sizeof (p->host) - 1);
    word_make_fit (p->self.slot);
    word_make_fit (p->host);
    process_boot_id (p->boot, sizeof (p->boot));
    n = readlink ("/proc/self/ns/pid", p->pidns, sizeof (p->pidns) - 1);
    p->pidns[n > 0 ? n : 0] = '\0';
}

static void worker_path (char *buf, size_t size, const struct peer_membership *p, const char *nonce)
{
    snprintf (buf, size, "%s/workers/%s", p->dir, nonce);
}

/* Put a moment ago; a name for another file must not be written to. */
static int open_own (const char *path)
{
    int fd = file_open (path, O_WRONLY);
    struct stat st;

    if (fd < 0 || (fstat (fd, &st) == 0 && st.st_nlink == 1))
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

static int put_self (struct peer_membership *p, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *text = NULL;
    json_t *o = json_pack ("{s:s, s:s, s:s, s:s, s:I, s:I}", "slot", p->self.slot, "host", p->host,
                           "boot", p->boot, "pidns", p->pidns, "pid", (json_int_t)getpid (),
                           "start", (json_int_t)process_start ("/proc", getpid ()));
    char *line = json_dumps (o, JSON_COMPACT);
    int rv = -1;

    json_decref (o);
    if (line && asprintf (&text, "%s\n%020llu\n", line, 0ULL) > 0) {
        worker_path (path, sizeof (path), p, p->self.nonce);
        p->offset = (off_t)strlen (line) + 1;
        rv = publish_if_absent (path, text, strlen (text), err);
        if (rv == 0 && (p->fd = open_own (path)) < 0)
            rv = errorf (err, "%s: %s", path, strerror (errno));
    }
    free (line);
    free (text);
    return rv;
}

struct peer_membership *peer_create (const char *dir, const char *slot, struct slurmdl_error *err)
{
    struct peer_membership *p = calloc (1, sizeof (*p));

    if (!p || !(p->dir = strdup (dir))) {
        free (p);
        errorf (err, "out of memory");
        return NULL;
    }
    p->fd = -1;
    peer_describe (p, slot);
    if (put_self (p, err) == 0)
        return p;
    peer_destroy (p);
    return NULL;
}

void peer_destroy (struct peer_membership *p)
{
    int e = errno;

    if (!p)
        return;
    if (p->fd >= 0) {
        if (pwrite (p->fd, PEER_GONE, COUNTER_SIZE, p->offset) < 0)
            p->count = 0; /* then the others wait for the lease */
        close (p->fd);
    }
    free (p->claims);
    free (p->others);
    free (p->dir);
    free (p);
    errno = e;
}

const struct peer_self *peer_self (const struct peer_membership *p)
{
    return &p->self;
}

int peer_beat (struct peer_membership *p, struct slurmdl_error *err)
{
    char text[COUNTER_SIZE + 1];

    snprintf (text, sizeof (text), "%020llu\n", ++p->count);
    if (pwrite (p->fd, text, COUNTER_SIZE, p->offset) == COUNTER_SIZE)
        return 0;
    return errorf (err, "%s/workers/%s: cannot write: %s", p->dir, p->self.nonce, strerror (errno));
}

/* ---- claims ---- */

static void claim_path (char *buf, size_t size, const struct peer_membership *p, long trial,
                        long attempt)
{
    snprintf (buf, size, "%s/trials/%04ld/claim.%ld", p->dir, trial, attempt);
}

static struct claim *find_claim (struct peer_membership *p, long trial, long attempt)
{
    for (size_t i = 0; i < p->nclaims; i++)
        if (p->claims[i].trial == trial && p->claims[i].attempt == attempt)
            return &p->claims[i];
    return NULL;
}

static void read_nonce (char *buf, size_t size, const char *path)
{
    char *text = file_read_now (path, PEER_FILE_MAX, NULL, NULL, NULL);
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;
    const char *nonce = json_string_value (json_object_get (o, "nonce"));

    snprintf (buf, size, "%s", nonce && peer_is_nonce (nonce) ? nonce : "");
    json_decref (o);
    free (text);
}

/* Remember whose claim it is; it takes the place of a trial's older one. */
static struct claim *learn_claim (struct peer_membership *p, long trial, long attempt)
{
    char path[PATH_MAX];
    struct claim *c = NULL;

    for (size_t i = 0; i < p->nclaims && !c; i++)
        if (p->claims[i].trial == trial)
            c = &p->claims[i];
    if (!c) {
        c = array_grow (p->claims, p->nclaims, sizeof (*c));
        if (!c)
            return NULL;
        p->claims = c;
        c += p->nclaims++;
    }
    *c = (struct claim){ .trial = trial, .attempt = attempt };
    claim_path (path, sizeof (path), p, trial, attempt);
    read_nonce (c->nonce, sizeof (c->nonce), path);
    return c;
}

static int put_claim (struct peer_membership *p, long trial, long attempt, int64_t length,
                      struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char text[256];

    snprintf (path, sizeof (path), "%s/trials/%04ld", p->dir, trial);
    if (folder_create (path, err) < 0)
        return -1;
    claim_path (path, sizeof (path), p, trial, attempt);
    snprintf (text, sizeof (text),
              "{\"trial\":%ld,\"attempt\":%ld,\"length\":%lld,"
              "\"slot\":\"%s\",\"nonce\":\"%s\"}\n",
              trial, attempt, (long long)length, p->self.slot, p->self.nonce);
    return publish_if_absent (path, text, strlen (text), err);
}

int peer_claim (struct peer_membership *p, long trial, long attempt, int64_t length,
                struct slurmdl_error *err)
{
    char path[PATH_MAX];
    int rv;

    if (find_claim (p, trial, attempt))
        return 1;
    /* a look is cheaper than a try; only "it is there" counts */
    claim_path (path, sizeof (path), p, trial, attempt);
    rv = access (path, F_OK) == 0 ? 1 : put_claim (p, trial, attempt, length, err);
    if (rv == 1)
        learn_claim (p, trial, attempt);
    return rv;
}

const char *peer_claimant (struct peer_membership *p, long trial, long attempt)
{
    struct claim *c = find_claim (p, trial, attempt);
    char path[PATH_MAX];

    claim_path (path, sizeof (path), p, trial, attempt);
    if (!c && access (path, F_OK) == 0)
        c = learn_claim (p, trial, attempt);
    if (c && !*c->nonce)
        read_nonce (c->nonce, sizeof (c->nonce), path);
    return c ? c->nonce : NULL;
}
