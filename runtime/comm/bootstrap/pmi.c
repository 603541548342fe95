/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 publishes its address through PMI: srun --mpi=pmi2, or mpiexec of MPICH. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/method.h"
#include "runtime/comm/net/socket.h"

/* The simple wire protocol of PMI-1, one line each way ("cmd=NAME KEY=VALUE ...").
 * PMI-2 servers speak it too if they hear it first.  The connection belongs to the
 * process: it starts and ends once.
 */
enum { LINE = 2048 };

static int pmi_users; /* open bootstraps */
static unsigned pmi_turn;

/* An MPI library of the program would use the same connection. */
static bool pmi_is_there (void)
{
    return getenv ("PMI_FD") && getenv ("PMI_RANK") && getenv ("PMI_SIZE")
           && !dlsym (RTLD_DEFAULT, "MPI_Init");
}

static int pmi_read_line (int fd, char *line, double deadline)
{
    size_t n = 0;

    while (n < LINE - 1) {
        ssize_t k;
        if (socket_wait (fd, POLLIN, deadline) < 0)
            return -1;
        k = read (fd, line + n, 1);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k <= 0) {
            errno = k == 0 ? ECONNRESET : errno;
            return -1;
        }
        if (line[n++] == '\n') {
            line[n - 1] = '\0';
            return 0;
        }
    }
    errno = EPROTO;
    return -1;
}

/* The value of a key in "cmd=x key=value", or NULL. */
static char *pmi_value (char *line, const char *key, char *value, size_t size)
{
    size_t n = strlen (key);

    for (char *p = line; p; p = strchr (p, ' ')) {
        p += *p == ' ';
        if (strncmp (p, key, n) || p[n] != '=')
            continue;
        snprintf (value, size, "%.*s", (int)strcspn (p + n + 1, " "), p + n + 1);
        return value;
    }
    return NULL;
}

/* Send a request, and read the reply, which must be the command 'answer'. */
static int pmi_request (int fd, char *line, const char *answer, double deadline,
                        struct slurmdl_error *err)
{
    char asked[32], value[64];
    size_t n = strlen (line);

    snprintf (asked, sizeof (asked), "%.*s", (int)strcspn (line, " \n"), line);
    if (write (fd, line, n) != (ssize_t)n || pmi_read_line (fd, line, deadline) < 0)
        return errorf (err, "PMI: %s: %s", asked, strerror (errno));
    if (pmi_value (line, "cmd", value, sizeof (value)) && !strcmp (value, answer)
        && (!pmi_value (line, "rc", value, sizeof (value)) || !strcmp (value, "0")))
        return 0;
    errno = EPROTO;
    return errorf (err, "PMI: %s: it answers '%.80s'", asked, line);
}

/* Called by all ranks.  They see what rank 0 puts after the barrier. */
static int pmi_exchange (int fd, struct boot_place *p, char *line, struct slurmdl_error *err)
{
    double deadline = monotonic () + p->timeout / 2;
    char notice[BOOT_NOTICE], space[256];
    struct slurmdl_error why = { "" };
    bool failed = false;

    strcpy (line, "cmd=get_my_kvsname\n");
    if (pmi_request (fd, line, "my_kvsname", deadline, err) < 0
        || !pmi_value (line, "kvsname", space, sizeof (space)))
        return errorf (err, "PMI: no name");
    if (p->rank == 0) {
        failed = boot_prepare (p, &why) < 0;
        if (failed) {
            errorf (err, "rank 0 (%s) cannot listen: %s", p->own, why.text);
            boot_compose_failure (err ? err->text : why.text, notice);
        } else
            boot_compose (p, notice);
        snprintf (line, LINE, "cmd=put kvsname=%s key=slurmdl-boot-%u value=%s\n", space, pmi_turn,
                  notice);
        if (pmi_request (fd, line, "put_result", deadline, err) < 0)
            return -1;
    }
    strcpy (line, "cmd=barrier_in\n");
    if (pmi_request (fd, line, "barrier_out", deadline, err) < 0)
        return -1;
    if (p->rank == 0)
        return failed ? -1 : 0;
    snprintf (line, LINE, "cmd=get kvsname=%s key=slurmdl-boot-%u\n", space, pmi_turn);
    if (pmi_request (fd, line, "get_result", deadline, err) < 0)
        return -1;
    if (!pmi_value (line, "value", notice, sizeof (notice))) {
        errno = EPROTO;
        return errorf (err, "PMI: no value");
    }
    return boot_parse (p, notice, err);
}

static int pmi_init (int fd, char *line, struct slurmdl_error *err)
{
    strcpy (line, "cmd=init pmi_version=1 pmi_subversion=1\n");
    return pmi_users > 0 ? 0 : pmi_request (fd, line, "response_to_init", monotonic () + 10, err);
}

static void pmi_leave (void)
{
    char line[LINE] = "cmd=finalize\n";

    if (--pmi_users == 0)
        pmi_request ((int)environment_number ("PMI_FD", -1), line, "finalize_ack",
                     monotonic () + 10, NULL);
}

static int pmi_find (struct boot_place *p, const struct slurmdl_comm_options *o,
                     struct slurmdl_error *err)
{
    int fd = (int)environment_number ("PMI_FD", -1);
    char line[LINE];

    (void)o;
    p->rank = environment_number ("PMI_RANK", -1);
    p->size = environment_number ("PMI_SIZE", -1);
    if (fd < 0 || p->rank < 0 || p->size <= p->rank) {
        errno = EINVAL;
        return errorf (err, "PMI: PMI_FD, PMI_RANK or PMI_SIZE is not a number");
    }
    if (pmi_init (fd, line, err) < 0)
        return -1;
    pmi_users++;
    if (p->size > 1 && pmi_exchange (fd, p, line, err) < 0) {
        /* a barrier in progress cannot be left */
        if (errno != ETIMEDOUT)
            pmi_leave ();
        return -1;
    }
    pmi_turn++;
    return 0;
}

const struct boot_method boot_pmi = { "pmi", pmi_is_there, pmi_find, pmi_leave };
