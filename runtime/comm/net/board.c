/* SPDX-License-Identifier: Apache-2.0 */
/* Post lines with srun for other processes of the step. */
#include "runtime/comm/net/board.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/socket.h"

enum { AGAIN_S = 1 };

static int find_board (struct board_place *w)
{
    *w = (struct board_place){ 0 };
    snprintf (w->address, sizeof (w->address), "%s",
              environment_text ("SLURM_LAUNCH_NODE_IPADDR", ""));
    return *w->address
                   && sscanf (environment_text ("SLURM_DL_BOARD", ""), "%d %39[0-9a-f]", &w->port,
                              w->token)
                          == 2
               ? 0
               : -1;
}

bool board_is_there (void)
{
    struct board_place w;

    return find_board (&w) == 0;
}

/* Derive the name under which a line is posted, or its code.  Neither reveals
 * anything about the key.
 */
static void derive_post_code (const unsigned char *key, const char *name, const char *text,
                              char hex[SECRET_DIGITS + 1])
{
    char purpose[NOTICE_NAME + NOTICE_TEXT + 16];
    unsigned char digest[HANDSHAKE_KEY];

    snprintf (purpose, sizeof (purpose), "board %s\n%s", name, text);
    handshake_derive (key, purpose, digest, sizeof (digest));
    secret_print (digest, hex);
}

static void compose_line (const struct board_place *w, const char *how, const unsigned char *key,
                          const char *name, const char *text, char *line)
{
    char posted[SECRET_DIGITS + 1], code[SECRET_DIGITS + 1];

    derive_post_code (key, name, "", posted);
    derive_post_code (key, name, text, code);
    snprintf (line, BOARD_LINE, "%s %s %s %s %s\n", w->token, how, posted, code, text);
}

/* ---- the process that posts ---- */

static void fail_post (struct board_post *b)
{
    b->why = (struct slurmdl_error){ "" };
    errorf (&b->why, "srun (%s:%d): %s", b->at.address, b->at.port, strerror (errno));
    if (b->fd >= 0)
        close (b->fd);
    b->fd = -1;
    b->is_posted = false;
    b->again = monotonic () + AGAIN_S;
}

/* Start without waiting: the others may see the notice instead. */
static void begin_post (struct board_post *b)
{
    struct addrinfo *a = address_look_up (b->at.address, b->at.port, AI_NUMERICHOST);

    b->fd = a ? socket_new (a->ai_family) : -1;
    if (b->fd < 0 || (connect (b->fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS))
        fail_post (b);
    if (a)
        freeaddrinfo (a);
}

void board_post (struct board_post *b, const unsigned char *key, const char *name, const char *text)
{
    board_end (b);
    if (find_board (&b->at) < 0)
        return;
    b->is_on = true;
    compose_line (&b->at, "put", key, name, text, b->line);
    begin_post (b);
}

struct pollfd board_poll (const struct board_post *b)
{
    return (struct pollfd){ .fd = b->is_on ? b->fd : -1,
                            .events = b->is_posted ? POLLIN | POLLRDHUP : POLLOUT };
}

/* Handle an event: the connection was established, has failed, or was closed later. */
static void continue_post (struct board_post *b)
{
    size_t n = strlen (b->line);
    socklen_t size = sizeof (int);
    int error = 0;

    getsockopt (b->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error ? error : ECONNRESET;
    if (!error && !b->is_posted)
        b->is_posted = send (b->fd, b->line, n, MSG_NOSIGNAL) == (ssize_t)n;
    else
        b->is_posted = false;
    if (!b->is_posted)
        fail_post (b);
}

void board_serve (struct board_post *b)
{
    struct pollfd p = board_poll (b);

    if (b->is_on && b->fd < 0 && monotonic () >= b->again)
        begin_post (b);
    else if (p.fd >= 0 && poll (&p, 1, 0) == 1)
        continue_post (b);
}

void board_wait (struct board_post *b, double deadline)
{
    while (b->is_on && !b->is_posted && monotonic () < deadline) {
        struct pollfd p = board_poll (b);
        int left = socket_left (deadline);
        poll (&p, 1, left > 100 ? 100 : left);
        board_serve (b);
    }
}

void board_end (struct board_post *b)
{
    int saved = errno;

    if (b->is_on && b->fd >= 0)
        close (b->fd);
    *b = (struct board_post){ .fd = -1 };
    errno = saved;
}

/* ---- the process that waits for an answer ---- */

static int read_board_line (int fd, char *line, double deadline)
{
    size_t n = 0;

    while (n < BOARD_LINE - 1) {
        ssize_t k = recv (fd, line + n, BOARD_LINE - 1 - n, 0);
        if (k < 0 && errno == EAGAIN && socket_wait (fd, POLLIN, deadline) == 0)
            continue;
        if (k < 0 && errno != EINTR)
            return -1;
        if (k == 0) {
            errno = n > 0 ? EBADMSG : ENOENT;
            return -1;
        }
        n += k > 0 ? (size_t)k : 0;
        if (n > 0 && line[n - 1] == '\n') {
            line[n - 1] = '\0';
            return 0;
        }
    }
    errno = EBADMSG;
    return -1;
}

/* Send 'line' and replace it with the answer. */
static int board_ask (const struct board_place *w, char *line, double deadline)
{
    int fd = socket_connect (w->address, w->port, deadline);
    int rv = -1, saved;

    if (fd < 0)
        return -1;
    if (socket_send (fd, line, strlen (line), deadline) == 0)
        rv = read_board_line (fd, line, deadline);
    saved = errno;
    close (fd);
    errno = saved;
    return rv;
}

int board_keep (const unsigned char *key, const char *name, const char *text, double deadline)
{
    char line[BOARD_LINE];
    struct board_place w;

    errno = ENOENT;
    if (find_board (&w) < 0)
        return -1;
    compose_line (&w, "keep", key, name, text, line);
    return board_ask (&w, line, deadline);
}

/* Check an answer "CODE TEXT". */
static int check_post (const unsigned char *key, const char *name, const char *line, char *text)
{
    char code[SECRET_DIGITS + 1];
    size_t n = strlen (line);

    errno = EBADMSG;
    if (n <= SECRET_DIGITS + 1 || n - SECRET_DIGITS > NOTICE_TEXT || line[SECRET_DIGITS] != ' ')
        return -1;
    memcpy (text, line + SECRET_DIGITS + 1, n - SECRET_DIGITS);
    derive_post_code (key, name, text, code);
    return sodium_memcmp (code, line, SECRET_DIGITS) == 0 ? 0 : -1;
}

int board_get (const unsigned char *key, const char *name, char text[NOTICE_TEXT], double deadline,
               struct slurmdl_error *err)
{
    char posted[SECRET_DIGITS + 1], line[BOARD_LINE];
    struct board_place w;

    errno = ENOENT;
    if (find_board (&w) < 0)
        return -1;
    derive_post_code (key, name, "", posted);
    snprintf (line, sizeof (line), "%s get %s\n", w.token, posted);
    if (board_ask (&w, line, deadline) == 0 && check_post (key, name, line, text) == 0)
        return 0;
    return errorf (err, "srun (%s:%d): %s", w.address, w.port,
                   errno == ENOENT ? "no address was posted there" : strerror (errno));
}
