/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server that keeps values. */
#include "launcher/cmd/rendezvous.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum {
    CLIENTS = 1000, /* at once; others wait in the queue of the kernel */
    HEAD = 8192,
    BODY = 1 << 20,
    TOTAL = 256 << 20,
    NAME = 256,
    SECONDS = 5 /* that a client may take to read an answer */
};

struct entry {
    struct entry *next;
    char *scope, *key;
    char *value;
    size_t size;
    bool finished; /* of a rank: it has done with the scope */
};

struct client {
    char *text;
    size_t n, room;
};

struct rendezvous {
    struct entry *entries;
    size_t total;
    struct client clients[CLIENTS];
    struct pollfd fds[CLIENTS + 1]; /* the last one listens */
    int n;
    int listener;
};

/* ---- values ---- */

static struct entry **
find_entry (struct rendezvous *r, const char *scope, const char *key)
{
    struct entry **e = &r->entries;

    while (*e && (strcmp ((*e)->scope, scope) || strcmp ((*e)->key, key)))
        e = &(*e)->next;
    return e;
}

static void free_entry (struct rendezvous *r, struct entry **e)
{
    struct entry *gone = *e;

    *e = gone->next;
    r->total -= gone->size;
    free (gone->scope);
    free (gone->key);
    free (gone->value);
    free (gone);
}

static int put_value (struct rendezvous *r,
                      const char *scope,
                      const char *key,
                      const char *value,
                      size_t size)
{
    struct entry **old = find_entry (r, scope, key);
    struct entry *e;

    if (*old)
        free_entry (r, old);
    if (r->total + size > TOTAL || !(e = calloc (1, sizeof (*e))))
        return 507;
    e->scope = strdup (scope);
    e->key = strdup (key);
    e->value = malloc (size + 1);
    e->size = size;
    r->total += size;
    e->next = r->entries;
    r->entries = e;
    if (!e->scope || !e->key || !e->value) {
        free_entry (r, &r->entries);
        return 507;
    }
    memcpy (e->value, value, size);
    return 200;
}

static bool is_rank (const char *key)
{
    return *key && !key[strspn (key, "0123456789")];
}

/* The values of a scope go when its last rank has done with it. */
static int finish (struct rendezvous *r, const char *scope, const char *rank)
{
    struct entry **e = find_entry (r, scope, rank);

    if (*e)
        (*e)->finished = true;
    for (struct entry *i = r->entries; i; i = i->next)
        if (!strcmp (i->scope, scope) && is_rank (i->key) && !i->finished)
            return 200;
    for (e = &r->entries; *e;)
        if (!strcmp ((*e)->scope, scope))
            free_entry (r, e);
        else
            e = &(*e)->next;
    return 200;
}

/* ---- requests ---- */

struct request {
    char method[8], scope[NAME], key[NAME];
    const char *body;
    size_t size;
};

/* A header's value in the text between the first line and the empty one. */
static const char *header (const char *text, const char *end, const char *name)
{
    size_t n = strlen (name);

    while ((text = memchr (text, '\n', (size_t)(end - text))) && ++text < end)
        if ((size_t)(end - text) > n && !strncasecmp (text, name, n)
            && text[n] == ':')
            return text + n + 1;
    return NULL;
}

/* Returns 1 when all of the request is there, 0 if not yet, or -1. */
static int parse (const struct client *c, struct request *q)
{
    const char *end = memmem (c->text, c->n, "\r\n\r\n", 4);
    const char *length;
    unsigned long size = 0;
    int used = 0;

    if (!end)
        return c->n > HEAD ? -1 : 0;
    if (sscanf (c->text,
                "%7[A-Z] /%255[^/ \r\n]/%255[^/ \r\n] HTTP/1.%*1d%n",
                q->method,
                q->scope,
                q->key,
                &used)
            != 3
        || !used)
        return -1;
    length = header (c->text, end, "Content-Length");
    if (length) {
        length += strspn (length, " \t");
        size = isdigit ((unsigned char)*length) ? strtoul (length, NULL, 10)
                                                : (unsigned long)BODY + 1;
    }
    if (size > BODY)
        return -1;
    q->body = end + 4;
    q->size = size;
    return c->n - (size_t)(q->body - c->text) >= size;
}

static void send_all (int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send (fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        data += sent;
        n -= (size_t)sent;
    }
}

static void answer (int fd, int status, const char *value, size_t size)
{
    char head[128];
    int n = snprintf (head,
                      sizeof (head),
                      "HTTP/1.0 %d %s\r\nContent-Length: %zu\r\n\r\n",
                      status,
                      status == 200 ? "OK" : "no",
                      size);

    send_all (fd, head, (size_t)n);
    send_all (fd, value, size);
}

static void handle (struct rendezvous *r, int fd, const struct request *q)
{
    struct entry *e = *find_entry (r, q->scope, q->key);

    if (!strcmp (q->method, "PUT"))
        answer (fd, put_value (r, q->scope, q->key, q->body, q->size), NULL, 0);
    else if (!strcmp (q->method, "DELETE"))
        answer (fd, finish (r, q->scope, q->key), NULL, 0);
    else if (strcmp (q->method, "GET"))
        answer (fd, 501, NULL, 0);
    else if (e)
        answer (fd, 200, e->value, e->size);
    else
        answer (fd, 404, NULL, 0);
}

/* ---- clients ---- */

static int grow (struct client *c)
{
    size_t room = c->room ? 2 * c->room : HEAD;
    char *text;

    if (c->n + 1 < c->room)
        return 0;
    if (c->room > HEAD + BODY || !(text = realloc (c->text, room)))
        return -1;
    c->text = text;
    c->room = room;
    return 0;
}

/* Returns false when there is nothing more to expect from this client. */
static bool read_client (struct rendezvous *r, int i)
{
    struct client *c = &r->clients[i];
    struct request q;
    ssize_t n;
    int state;

    if (grow (c) < 0)
        return false;
    n = read (r->fds[i].fd, c->text + c->n, c->room - c->n - 1);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    c->n += (size_t)n;
    c->text[c->n] = '\0';
    state = parse (c, &q);
    if (state > 0)
        handle (r, r->fds[i].fd, &q);
    else if (state < 0)
        answer (r->fds[i].fd, 400, NULL, 0);
    return state == 0;
}

static void drop_client (struct rendezvous *r, int i)
{
    close (r->fds[i].fd);
    free (r->clients[i].text);
    r->n--;
    r->fds[i] = r->fds[r->n];
    r->clients[i] = r->clients[r->n];
}

static void accept_client (struct rendezvous *r)
{
    struct timeval limit = { .tv_sec = SECONDS };
    int fd = accept4 (r->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof (limit));
    r->fds[r->n] = (struct pollfd){ .fd = fd, .events = POLLIN };
    r->clients[r->n++] = (struct client){ 0 };
}

void rendezvous_serve (struct rendezvous *r, const volatile int *ended)
{
    sigset_t none;

    sigemptyset (&none);
    while (!*ended) {
        int n = r->n;
        int new;
        r->fds[n] = (struct pollfd){ .fd = n < CLIENTS ? r->listener : -1,
                                     .events = POLLIN };
        if (ppoll (r->fds, (nfds_t)n + 1, NULL, &none) < 0)
            continue;
        new = r->fds[n].revents;
        for (int i = n - 1; i >= 0; i--)
            if (r->fds[i].revents && !read_client (r, i))
                drop_client (r, i);
        if (new)
            accept_client (r);
    }
}

struct rendezvous *rendezvous_create (const char *address,
                                      const char *port,
                                      struct slurmdl_error *err)
{
    struct addrinfo hints = { .ai_flags = AI_PASSIVE,
                              .ai_socktype = SOCK_STREAM };
    struct rendezvous *r = calloc (1, sizeof (*r));
    struct addrinfo *list = NULL;
    int one = 1;
    int code;

    if (!r)
        goto fail;
    r->listener = -1;
    code = getaddrinfo (*address ? address : NULL, port, &hints, &list);
    if (code != 0) {
        errno = EINVAL;
        errorf (err, "%s port %s: %s", address, port, gai_strerror (code));
        goto fail;
    }
    r->listener = socket (list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (r->listener < 0)
        goto fail;
    setsockopt (r->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (bind (r->listener, list->ai_addr, list->ai_addrlen) < 0
        || listen (r->listener, SOMAXCONN) < 0)
        goto fail;
    freeaddrinfo (list);
    return r;
fail:
    errorf (err,
            "cannot listen on %s port %s: %s",
            address,
            port,
            strerror (errno));
    if (list)
        freeaddrinfo (list);
    rendezvous_destroy (r);
    return NULL;
}

void rendezvous_destroy (struct rendezvous *r)
{
    int keep = errno;

    if (!r)
        return;
    while (r->n > 0)
        drop_client (r, r->n - 1);
    while (r->entries)
        free_entry (r, &r->entries);
    if (r->listener >= 0)
        close (r->listener);
    free (r);
    errno = keep;
}
