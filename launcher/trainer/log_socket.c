/* SPDX-License-Identifier: Apache-2.0 */
/* How `dl log` in a script reaches the worker, the one writer of metrics. */
#include "launcher/trainer/trainer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "launcher/sys/messages.h"
#include "runtime/base/error.h"

/* A message is a line with the step (-1: one more than the previous message's) and lines "NAME
 * VALUE"; the answer is "ok" or an error message.  The socket is in a folder that only the user may
 * enter.
 */
enum { MESSAGE_MAX = 16384, ANSWER_WAIT = 30000 };

static int bind_socket (struct log_socket *s)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    snprintf (addr.sun_path, sizeof (addr.sun_path), "%s", s->path);
    s->fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return -1;
    return bind (s->fd, (struct sockaddr *)&addr, sizeof (addr));
}

void log_socket_open (struct log_socket *s)
{
    struct slurmdl_error err = { "" };

    s->fd = -1;
    s->path[0] = '\0';
    if (scratch_make (&s->folder, SCRATCH_SHORT, &err) == 0) {
        snprintf (s->path, sizeof (s->path), "%.60s/" SCRATCH_SOCKET, s->folder.path);
        if (bind_socket (s) == 0)
            return;
        errorf (&err, "%s: %s", s->path, strerror (errno));
        log_socket_close (s);
    }
    complain ("no socket, so 'dl log' will fail: %s", err.text);
}

void log_socket_close (struct log_socket *s)
{
    if (s->fd >= 0)
        close (s->fd);
    s->fd = -1;
    s->path[0] = '\0';
    scratch_remove (&s->folder);
}

static int log_line (struct trainer *t, const char *line, int64_t step)
{
    char name[64];
    double value;

    if (sscanf (line, "%63s %lf", name, &value) != 2) {
        errno = EINVAL;
        return -1;
    }
    return trainer_log (t, name, step, value);
}

static void log_message (struct trainer *t, char *text, struct slurmdl_error *err)
{
    char *save = NULL;
    char *line = strtok_r (text, "\n", &save);
    int64_t step = trainer_step (t, line ? strtoll (line, NULL, 10) : -1);

    while ((line = strtok_r (NULL, "\n", &save)))
        if (log_line (t, line, step) < 0)
            errorf (err, "\"%s\": %s", line, strerror (errno));
    trainer_flush (t, err);
}

void log_socket_serve (struct log_socket *s, struct trainer *t)
{
    struct slurmdl_error err = { "" };
    struct sockaddr_un from;
    socklen_t len = sizeof (from);
    char text[MESSAGE_MAX];
    ssize_t n;

    n = recvfrom (s->fd, text, sizeof (text) - 1, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    if (n < 0)
        return;
    text[n] = '\0';
    log_message (t, text, &err);
    snprintf (text, sizeof (text), "%s", *err.text ? err.text : "ok");
    sendto (s->fd, text, strlen (text), MSG_DONTWAIT, (struct sockaddr *)&from, len);
}

static int await_answer (int fd, struct slurmdl_error *err)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char text[256];
    ssize_t n;

    if (poll (&p, 1, ANSWER_WAIT) != 1) {
        errno = ETIMEDOUT;
        return errorf (err, "the worker does not answer");
    }
    n = recv (fd, text, sizeof (text) - 1, 0);
    if (n < 0)
        return errorf (err, "no answer: %s", strerror (errno));
    text[n] = '\0';
    if (!strcmp (text, "ok"))
        return 0;
    errno = EINVAL;
    return errorf (err, "%s", text);
}

int log_socket_send (const char *path, const char *text, struct slurmdl_error *err)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct sockaddr_un self = { .sun_family = AF_UNIX };
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rv;

    snprintf (to.sun_path, sizeof (to.sun_path), "%s", path);
    /* autobind: the kernel chooses an abstract address, which all users can see.  The socket is
     * connected before, so that only the worker can send to it.
     */
    if (fd < 0 || connect (fd, (struct sockaddr *)&to, sizeof (to)) < 0
        || bind (fd, (struct sockaddr *)&self, sizeof (sa_family_t)) < 0
        || send (fd, text, strlen (text), 0) < 0)
        rv = errorf (err, "cannot reach the worker at %s: %s", path, strerror (errno));
    else
        rv = await_answer (fd, err);
    if (fd >= 0)
        close (fd);
    return rv;
}
