/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that meet, come late, come twice, die, or do not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/boot.h"
#include "runtime/comm/socket.h"

static char address[64];

static struct boot *
open_rank (long rank, long size, double timeout, struct slurmdl_error *err)
{
    struct slurmdl_comm_options o = {
        .rank = rank, .size = size, .address = address, .timeout = timeout
    };

    return boot_open (&o, err);
}

/* Exchange three times, of different lengths. */
static int exchange (struct boot *b, struct slurmdl_error *err)
{
    static const size_t sizes[] = { 1, 200, 4096 };
    long size = boot_size (b);
    char mine[4096];
    char *all = malloc ((size_t)size * sizeof (mine));
    int rv = 0;

    for (int i = 0; i < 3 && rv == 0; i++) {
        memset (mine, (int)boot_rank (b) + i, sizeof (mine));
        rv = boot_allgather (b, mine, sizes[i], all, err);
        for (long r = 0; r < size && rv == 0; r++)
            for (size_t k = 0; k < sizes[i]; k++)
                if (all[(size_t)r * sizes[i] + k] != (char)(r + i))
                    rv = -1;
    }
    free (all);
    return rv;
}

static int meet (long rank, long size, double timeout)
{
    struct slurmdl_error err = { "" };
    struct boot *b = open_rank (rank, size, timeout, &err);
    int rv = b ? exchange (b, &err) : -1;

    if (rv < 0)
        fprintf (stderr, "# rank %ld: %s\n", rank, err.text);
    boot_close (b);
    return rv;
}

/* A port of loopback that is free now. */
static void choose_address (void)
{
    int fd = socket_listen ("127.0.0.1", 0);

    snprintf (address, sizeof (address), "127.0.0.1:%d", socket_port (fd));
    close (fd);
}

static void meet_all (long size)
{
    int status;
    int failed = 0;

    choose_address ();
    for (long r = 0; r < size; r++)
        if (fork () == 0)
            _exit (meet (r, size, 20) == 0 ? 0 : 1);
    while (wait (&status) > 0)
        failed += status != 0;
    assert_int_equal (failed, 0);
}

static void test_sizes (void **state)
{
    static const long sizes[] = { 1, 2, 3, 17, 64 };

    (void)state;
    for (size_t i = 0; i < sizeof (sizes) / sizeof (*sizes); i++)
        meet_all (sizes[i]);
}

int main (void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_sizes),
    };

    alarm (120);
    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
