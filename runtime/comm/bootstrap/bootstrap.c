/* SPDX-License-Identifier: Apache-2.0 */
/* Bootstrap: the ranks of a communicator find each other. */
#include "runtime/comm/bootstrap/bootstrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/method.h"
#include "runtime/comm/bootstrap/tcp.h"

enum { BYTES_MAX = 4096 };

struct boot {
    const struct boot_method *method; /* NULL: the caller gave the place */
    struct boot_place place;
    struct boot_tree tree;
    struct rank_layout *layout; /* NULL: unknown */
    pid_t pid;                  /* a child of fork() leaves all this alone */
};

/* Methods in the order in which to try them. */
static const struct boot_method *const methods[] = { &boot_pmix, &boot_pmi, &boot_tcp };
enum { METHODS = sizeof (methods) / sizeof (*methods) };

static double find_timeout (const struct slurmdl_comm_options *o)
{
    const char *value = getenv ("DL_COMM_TIMEOUT");
    double t = o->timeout;

    if (t <= 0 && value)
        t = strtod (value, NULL);
    return t > 0 && t < 1e6 ? t : 300;
}

static void find_own_name (char *buf, size_t size)
{
    const char *name = getenv ("SLURMD_NODENAME");

    if (name && *name)
        snprintf (buf, size, "%s", name);
    else if (gethostname (buf, size) < 0)
        snprintf (buf, size, "this host");
    buf[size - 1] = '\0';
}

static int try_method (struct boot *b, const struct boot_method *w,
                       const struct slurmdl_comm_options *o, struct slurmdl_error *why)
{
    struct boot_place *p = &b->place;

    if (handshake_wants_plain (&p->plain, why) < 0)
        return -1;
    p->timeout = find_timeout (o);
    find_own_name (p->own, sizeof (p->own));
    if (w->find (p, o, why) == 0) {
        b->method = w;
        return 0;
    }
    listen_close (&p->listener);
    return -1;
}

static const struct boot_method *find_method (const char *name, struct slurmdl_error *err)
{
    for (int i = 0; i < METHODS; i++)
        if (!strcmp (methods[i]->name, name))
            return methods[i];
    errno = EINVAL;
    errorf (err, "'%.40s' is not a bootstrap: pmix, pmi or tcp", name);
    return NULL;
}

static int find_boot_place (struct boot *b, const struct slurmdl_comm_options *o,
                            struct slurmdl_error *err)
{
    const char *name = o->bootstrap ? o->bootstrap : getenv ("DL_COMM_BOOTSTRAP");
    const struct boot_method *w;

    if (o->size > 0 || (o->address && *o->address))
        name = "tcp"; /* the other methods would override it */
    if (name && *name)
        return (w = find_method (name, err)) ? try_method (b, w, o, err) : -1;
    /* if an available method fails, report it: falling back would surprise the user */
    for (int i = 0; i < METHODS; i++)
        if (methods[i]->is_there ())
            return try_method (b, methods[i], o, err);
    return -1;
}

static int join_tree (struct boot *b, struct slurmdl_error *err)
{
    return b->place.size > 1 ? boot_tree_open (&b->tree, &b->place, err) : 0;
}

static void destroy_boot (struct boot *b)
{
    int saved = errno;

    if (b && b->method && b->pid == getpid ())
        b->method->leave ();
    if (b) {
        handshake_forget (b->place.key, sizeof (b->place.key));
        free (b->layout);
    }
    free (b);
    errno = saved;
}

static struct boot *create_boot (struct slurmdl_error *err)
{
    struct boot *b = calloc (1, sizeof (*b));

    if (b)
        b->pid = getpid ();
    else
        errorf (err, "%s", strerror (errno));
    return b;
}

struct boot *boot_open (const struct slurmdl_comm_options *o, struct slurmdl_error *err)
{
    static const struct slurmdl_comm_options none;
    struct boot *b = create_boot (err);

    if (b && find_boot_place (b, o ? o : &none, err) == 0) {
        if (b->place.size > 1)
            b->place.layout = b->layout = boot_layout (&b->place);
        if (join_tree (b, err) == 0)
            return b;
    }
    destroy_boot (b);
    return NULL;
}

struct boot *boot_open_place (const struct boot_place *p, struct slurmdl_error *err)
{
    struct boot *b = create_boot (err);
    bool plain;

    if (b && handshake_wants_plain (&plain, err) == 0) {
        b->place = *p;
        b->place.plain = plain;
        if (join_tree (b, err) == 0)
            return b;
    }
    destroy_boot (b);
    return NULL;
}

void boot_close (struct boot *b)
{
    if (!b)
        return;
    if (b->place.size > 1)
        boot_tree_close (&b->tree, b->pid == getpid ());
    destroy_boot (b);
}

long boot_rank (const struct boot *b)
{
    return b->place.rank;
}

long boot_size (const struct boot *b)
{
    return b->place.size;
}

double boot_timeout (const struct boot *b)
{
    return b->place.timeout;
}

const unsigned char *boot_key (const struct boot *b)
{
    return b->place.key;
}

bool boot_is_plain (const struct boot *b)
{
    return b->place.plain;
}

const char *boot_name (const struct boot *b)
{
    return b->place.size == 1 ? "one" : b->method ? b->method->name : "tcp";
}

int boot_allgather (struct boot *b, const void *mine, size_t bytes, void *all,
                    struct slurmdl_error *err)
{
    if (bytes > BYTES_MAX) {
        errno = EMSGSIZE;
        return errorf (err, "%zu bytes are more than %d", bytes, BYTES_MAX);
    }
    if (b->place.size > 1)
        return boot_tree_allgather (&b->tree, mine, bytes, all, err);
    memcpy (all, mine, bytes);
    return 0;
}
