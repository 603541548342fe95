/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a communicator, each a process on this machine. */
#include "tests/runtime/comm/world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int world_hold_port (int *port)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t n = sizeof (a);
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    *port = 0;
    a.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (bind (fd, (struct sockaddr *)&a, sizeof (a)) == 0
        && getsockname (fd, (struct sockaddr *)&a, &n) == 0)
        *port = ntohs (a.sin_port);
    return fd;
}

static int rank_main (int rank, int size, int node_size, const char *address, world_f f, void *arg)
{
    struct slurmdl_comm_options o = {
        .rank = rank, .size = size, .bootstrap = "tcp", .address = address, .timeout = 30
    };
    struct slurmdl_error err = { "" };
    struct slurmdl_comm *c;
    char node[32];
    int rv;

    if (node_size > 0) {
        snprintf (node, sizeof (node), "%d", rank / node_size);
        setenv ("DL_COMM_NODE", node, 1);
    }
    c = slurmdl_comm_open (&o, &err);
    if (!c) {
        fprintf (stderr, "# rank %d: %s\n", rank, err.text);
        return 99;
    }
    rv = f (c, arg);
    slurmdl_comm_close (c, NULL);
    return rv;
}

static int wait_for (pid_t pid, double until, int *status)
{
    struct timespec now, nap = { 0, 2000000 };

    for (;;) {
        if (waitpid (pid, status, WNOHANG) == pid)
            return *status == 0 ? 0 : -1;
        clock_gettime (CLOCK_MONOTONIC, &now);
        if ((double)now.tv_sec > until)
            kill (pid, SIGKILL);
        nanosleep (&nap, NULL);
    }
}

int world_run (int size, int node_size, world_f f, void *arg, int seconds, int *status)
{
    pid_t *pids = calloc ((size_t)size, sizeof (*pids));
    struct timespec now;
    char address[64];
    int bad = 0;
    int end, port;
    int held = world_hold_port (&port);

    snprintf (address, sizeof (address), "127.0.0.1:%d", port);
    fflush (NULL);
    for (int r = 0; r < size; r++) {
        pids[r] = fork ();
        if (pids[r] == 0) {
            int rv = rank_main (r, size, node_size, address, f, arg);
            fflush (NULL);
            _exit (rv);
        }
    }
    clock_gettime (CLOCK_MONOTONIC, &now);
    for (int r = 0; r < size; r++) {
        bad += wait_for (pids[r], (double)now.tv_sec + seconds, &end) < 0;
        if (status)
            status[r] = end;
    }
    close (held);
    free (pids);
    return bad;
}
