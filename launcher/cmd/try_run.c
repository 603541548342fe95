/* SPDX-License-Identifier: Apache-2.0 */
/* Run one trial on this host, in a temporary directory. */
#include "launcher/cmd/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "launcher/trainer/trainer.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

enum { PLACE_MARGIN = 200 };

static volatile sig_atomic_t try_interrupted;

static void on_try_interrupt (int sig)
{
    (void)sig;
    try_interrupted = 1;
}

static int make_place (struct try_run *t, const char *above, struct slurmdl_error *err)
{
    char dir[PATH_MAX];

    above = above ? above : user_tmp ();
    /* leave room for the names of files below it */
    if (snprintf (dir, sizeof (dir), "%s/dl-try.XXXXXX", above)
        >= (int)sizeof (dir) - PLACE_MARGIN) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: cannot create a folder there: its path is too long", above);
    }
    if (!mkdtemp (dir))
        return errorf (err, "%s: cannot create a folder: %s", dir, strerror (errno));
    t->sweep.dir = xstrdup (dir);
    snprintf (dir, sizeof (dir), "%s/trials", t->sweep.dir);
    if (mkdir (dir, 0777) < 0)
        return errorf (err, "%s: cannot create a folder: %s", dir, strerror (errno));
    snprintf (t->attempt.dir, sizeof (t->attempt.dir), "%s/%04ld/a.1", dir, t->attempt.trial);
    return 0;
}

static void show_output (struct try_run *t)
{
    char path[PATH_MAX + 8];
    char buf[4096];
    ssize_t n;
    int fd;

    snprintf (path, sizeof (path), "%s/log", t->attempt.dir);
    if ((fd = open (path, O_RDONLY | O_CLOEXEC)) < 0)
        return;
    while ((n = pread (fd, buf, sizeof (buf), t->shown)) > 0) {
        fwrite (buf, 1, (size_t)n, stdout);
        t->shown += n;
    }
    fflush (stdout);
    close (fd);
}

static void wait_for_output (struct try_run *t)
{
    struct pollfd p = { .fd = t->socket.fd, .events = POLLIN };

    if (poll (&p, 1, 100) == 1)
        log_socket_serve (&t->socket, t->trainer);
    trainer_read (t->trainer, false);
}

/* On ^C, ask the trainer to stop, as a preemption would. */
static void stop_if_asked (struct try_run *t, double *deadline)
{
    if (try_interrupted && *deadline == 0) {
        trainer_signal (t->trainer, SIGTERM);
        *deadline = monotonic () + (double)t->sweep.exp->worker->grace;
    } else if (*deadline > 0 && monotonic () > *deadline)
        trainer_signal (t->trainer, SIGKILL);
}

int try_run_train (struct try_run *t, struct slurmdl_error *err)
{
    const struct sigaction sa = { .sa_handler = on_try_interrupt };
    double start = monotonic ();
    double deadline = 0;

    sigaction (SIGINT, &sa, NULL);
    sigaction (SIGTERM, &sa, NULL);
    if (!(t->trainer = trainer_start (&t->attempt, NULL, err)))
        return -1;
    while (!trainer_ended (t->trainer, &t->status)) {
        wait_for_output (t);
        show_output (t);
        stop_if_asked (t, &deadline);
    }
    for (int i = 0; i < 3; i++)
        wait_for_output (t);
    trainer_read (t->trainer, true);
    show_output (t);
    t->seconds = monotonic () - start;
    work_folder_settle (&t->attempt, false);
    return trainer_flush (t->trainer, err);
}

int try_run_take_code (struct try_run *t, const char *root, const struct code_archive *a,
                       struct slurmdl_error *err)
{
    struct experiment *e = t->sweep.exp;
    char base[PATH_MAX + 8];
    char dir[PATH_MAX];
    const struct code_copy copy = { base, root, e->dir };

    snprintf (base, sizeof (base), "%s/code", t->sweep.dir);
    if (code_copy_path (&copy, dir, sizeof (dir)) < 0)
        return errno == ENAMETOOLONG
                   ? errorf (err, "%s: the path of a copy of it in %s is too long", e->dir, base)
                   : errorf (err, "%s: this folder was not frozen", e->dir);
    if (code_copy_make (&copy, a, err) < 0)
        return -1;
    free (e->file_dir);
    e->file_dir = e->dir;
    e->dir = xstrdup (dir);
    t->sweep.root = (char *)root;
    work_folder_name (&t->attempt);
    return 0;
}

void try_run_print_command (const struct try_run *t)
{
    char **argv = attempt_words (&t->attempt);
    size_t first = t->sweep.exp->entrypoint ? 2 : 0;

    printf ("command:");
    for (char **a = argv + first; argv && *a; a++)
        printf (" %s", *a);
    printf ("\n");
    fflush (stdout);
    strings_free (argv);
}

int try_run_open (struct try_run *t, struct experiment *e, long number, const char *above,
                  struct slurmdl_error *err)
{
    *t = (struct try_run){
        .sweep = { .exp = e, .ntrials = number, .state = SWEEP_RUNNING },
        .attempt = { .trial = number, .number = 1 },
    };
    t->attempt.sweep = &t->sweep;
    t->sweep.trials = xcalloc ((size_t)number, sizeof (*t->sweep.trials));
    t->trial = sweep_trial (&t->sweep, number);
    log_socket_open (&t->socket);
    t->attempt.socket = *t->socket.path ? t->socket.path : NULL;
    return make_place (t, above, err) < 0 ? -1 : software_enter (e, err);
}

void try_run_close (struct try_run *t)
{
    struct slurmdl_error err = { "" };

    trainer_destroy (t->trainer);
    log_socket_close (&t->socket);
    if (t->sweep.dir && sweep_remove (t->sweep.dir, &err) < 0)
        complain ("%s", err.text);
    if (t->trial)
        json_decref (t->trial->hparams);
    free (t->sweep.trials);
    free (t->sweep.dir);
}
