/* SPDX-License-Identifier: Apache-2.0 */
/* bootstrap RANKS: print how many milliseconds so many ranks on this host take to connect, and to
 * finish a first all-reduce.  bootstrap.py runs it with several builds of the library.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "runtime/slurmdl_comm.h"
#include "tests/bench/bench.h"

enum { RANKS_MAX = 1024 };

static int free_port (void)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl (INADDR_LOOPBACK) } };
    socklen_t n = sizeof (a);
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    if (bind (fd, (struct sockaddr *)&a, n) < 0 || getsockname (fd, (struct sockaddr *)&a, &n) < 0)
        exit (1);
    close (fd);
    return ntohs (a.sin_port);
}

/* Records in 'at' when the rank had connected, and when it had its sum. */
static void be_rank (long rank, long size, const char *address, double *at)
{
    struct slurmdl_comm_options o = {
        .rank = rank, .size = size, .address = address, .bootstrap = "tcp"
    };
    struct slurmdl_error err;
    struct slurmdl_comm *c = slurmdl_comm_open (&o, &err);
    int64_t x = 1;

    if (!c) {
        fprintf (stderr, "%s\n", err.text);
        _exit (1);
    }
    at[0] = now ();
    if (slurmdl_allreduce (c, &x, &x, 1, SLURMDL_I64, SLURMDL_SUM, &err) < 0 || x != size) {
        fprintf (stderr, "%s\n", err.text);
        _exit (1);
    }
    at[1] = now ();
    slurmdl_comm_close (c, NULL);
    _exit (0);
}

int main (int argc, char **argv)
{
    long size = argc > 1 ? atol (argv[1]) : 64;
    double (*at)[2] = mmap (NULL, RANKS_MAX * sizeof (*at), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double last[2] = { 0 }, began;
    char address[64], byte;
    int gate[2], status;

    if (size < 1 || size > RANKS_MAX || at == MAP_FAILED || pipe (gate) < 0)
        return 1;
    setenv ("DL_COMM_SHARED", "0", 1);
    snprintf (address, sizeof (address), "127.0.0.1:%d", free_port ());
    for (long r = 0; r < size; r++)
        if (fork () == 0) {
            close (gate[1]);
            if (read (gate[0], &byte, 1) != 0)
                _exit (1);
            be_rank (r, size, address, at[r]);
        }
    usleep (200000);
    began = now ();
    close (gate[1]);
    for (long r = 0; r < size; r++)
        if (wait (&status) < 0 || status != 0)
            return 1;
    for (long r = 0; r < size; r++)
        for (int i = 0; i < 2; i++)
            last[i] = at[r][i] > last[i] ? at[r][i] : last[i];
    printf ("%.2f %.2f\n", 1e3 * (last[0] - began), 1e3 * (last[1] - began));
    return 0;
}
