/* SPDX-License-Identifier: Apache-2.0 */
/* Open a member of a parameter server group from options and environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/step_id.h"
#include "runtime/ps/ps.h"

enum { MEMBERS_MAX = 1 << 20 };

static const long long log_default = 256LL << 20;

const char *const ps_modes[] = { "none", "sync", "async", "bounded", NULL };

static const char *const role_words[] = { "worker",    "server", "ps",
                                          "scheduler", "spare",  NULL };
static const enum ps_role role_of[] = {
    PS_WORKER, PS_SERVER, PS_SERVER, PS_SPARE, PS_SPARE
};

static int number_of (const char *name,
                      double otherwise,
                      double *number,
                      struct slurmdl_error *err)
{
    const char *value = environment_text (name, "");
    char *end;

    *number = *value ? strtod (value, &end) : otherwise;
    if (!*value || (!*end && *number == *number))
        return 0;
    errno = EINVAL;
    return errorf (err, "%s=%s is not a number", name, value);
}

static int word_of (const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp (word, words[i]))
            return i;
    return -1;
}

static int read_role (struct slurmdl_ps *ps,
                      const struct slurmdl_ps_options *o,
                      struct slurmdl_error *err)
{
    const char *word = o->role ? o->role : environment_text ("DL_ROLE", "");
    int i = word_of (word, role_words);
    double index;

    errno = EINVAL;
    if (i < 0)
        return errorf (err,
                       "the role is '%s': start it by srun --dl=ps "
                       "--dl-roles=ps:2,worker:*, or set DL_ROLE to worker or "
                       "server",
                       word);
    ps->role = role_of[i];
    if (number_of ("DL_ROLE_INDEX", 0, &index, err) < 0)
        return -1;
    ps->index = o->role ? o->index : (long)index;
    return 0;
}

/* clang-format off */
static const struct number {
    const char *name;
    size_t at;
    double otherwise, least, most;
} numbers[] = {
    { "DL_PS_SERVERS",    offsetof (struct slurmdl_ps_options, servers),    0, 1, MEMBERS_MAX },
    { "DL_PS_WORKERS",    offsetof (struct slurmdl_ps_options, workers),    0, 1, MEMBERS_MAX },
    { "DL_PS_STALENESS",  offsetof (struct slurmdl_ps_options, staleness),  0, 0, 1e9 },
    { "DL_PS_SAVE_EVERY", offsetof (struct slurmdl_ps_options, save_every), 0, 0, 1e15 },
};
/* clang-format on */

static int read_numbers (struct slurmdl_ps *ps,
                         const struct slurmdl_ps_options *o,
                         struct slurmdl_error *err)
{
    double n[sizeof (numbers) / sizeof (*numbers)];
    int64_t given;

    for (size_t i = 0; i < sizeof (numbers) / sizeof (*numbers); i++) {
        const struct number *r = &numbers[i];
        memcpy (&given, (const char *)o + r->at, sizeof (given));
        n[i] = (double)given;
        if (!given && number_of (r->name, r->otherwise, &n[i], err) < 0)
            return -1;
        errno = EINVAL;
        if (!(n[i] >= r->least && n[i] <= r->most))
            return errorf (
                err,
                "%s is %g: %.0f to %.0f (srun --dl=ps sets the numbers of "
                "servers and workers)",
                r->name,
                n[i],
                r->least,
                r->most);
    }
    ps->servers = (long)n[0];
    ps->workers = (long)n[1];
    ps->staleness = (int64_t)n[2];
    ps->save_every = (int64_t)n[3];
    return 0;
}

static int read_times (struct slurmdl_ps *ps,
                       const struct slurmdl_ps_options *o,
                       struct slurmdl_error *err)
{
    double log;

    if (number_of ("DL_PS_TIMEOUT", 300, &ps->timeout, err) < 0
        || number_of ("DL_PS_GRACE", 10, &ps->grace, err) < 0
        || number_of ("DL_PS_LOG_BYTES", (double)log_default, &log, err) < 0)
        return -1;
    ps->log_bytes = o->log_bytes ? o->log_bytes : (long long)log;
    if (o->timeout)
        ps->timeout = o->timeout;
    if (o->grace)
        ps->grace = o->grace;
    errno = EINVAL;
    if (!(ps->timeout > 0 && ps->grace > 0 && ps->timeout < 1e7
          && ps->grace < 1e6))
        return errorf (err, "timeout and grace are seconds, more than 0");
    return 0;
}

static int read_mode (struct slurmdl_ps *ps,
                      const struct slurmdl_ps_options *o,
                      struct slurmdl_error *err)
{
    const char *word = environment_text ("DL_PS_MODE", "");
    int mode = o->mode ? (int)o->mode
               : *word ? word_of (word, ps_modes)
                       : SLURMDL_PS_SYNC;

    errno = EINVAL;
    if (mode < SLURMDL_PS_SYNC || mode > SLURMDL_PS_BOUNDED)
        return errorf (
            err, "DL_PS_MODE=%s is none of sync, async, bounded", word);
    ps->mode = (enum slurmdl_ps_mode)mode;
    if (ps->mode != SLURMDL_PS_BOUNDED)
        ps->staleness = 0;
    return 0;
}

static void name_folder (struct slurmdl_ps *ps,
                         const struct slurmdl_ps_options *o)
{
    const char *attempt = environment_text ("DL_ATTEMPT_DIR", "");
    const char *slash = strrchr (attempt, '/');
    const char *run = environment_text ("DL_RUN_DIR", "");
    const char *step = step_id ();
    size_t n;

    if (o->dir || *environment_text ("DL_PS_DIR", "")) {
        snprintf (ps->name,
                  sizeof (ps->name),
                  "%.3800s",
                  o->dir ? o->dir : environment_text ("DL_PS_DIR", ""));
        return;
    }
    if (slash)
        snprintf (ps->name,
                  sizeof (ps->name),
                  "%.*s/ps",
                  (int)(slash - attempt > 3800 ? 3800 : slash - attempt),
                  attempt);
    else
        snprintf (
            ps->name, sizeof (ps->name), "%.3800s/ps", *run ? run : "slurmdl");
    n = strlen (ps->name);
    if (!slash && *step)
        snprintf (ps->name + n,
                  sizeof (ps->name) - n,
                  ".%.32s.%.32s",
                  environment_text ("SLURM_JOB_ID", ""),
                  step);
}

static int read_options (struct slurmdl_ps *ps,
                         const struct slurmdl_ps_options *o,
                         struct slurmdl_error *err)
{
    const char *address =
        o->address ? o->address : environment_text ("DL_PS_ADDRESS", "");
    long of;

    if (read_role (ps, o, err) < 0 || read_numbers (ps, o, err) < 0
        || read_times (ps, o, err) < 0 || read_mode (ps, o, err) < 0)
        return -1;
    of = ps->role == PS_WORKER ? ps->workers : ps->servers;
    errno = EINVAL;
    if (ps->index < 0 || (ps->index >= of && ps->role != PS_SPARE))
        return errorf (
            err, "there is no %s %ld of %ld", ps_role_name (ps), ps->index, of);
    name_folder (ps, o);
    return (ps->address = strdup (address)) ? 0 : -1;
}

struct slurmdl_ps *slurmdl_ps_open (const struct slurmdl_ps_options *o,
                                    struct slurmdl_error *err)
{
    static const struct slurmdl_ps_options none;
    struct slurmdl_ps *ps = calloc (1, sizeof (*ps));

    if (err)
        *err->text = '\0';
    if (!ps) {
        errorf (err, "out of memory");
        return NULL;
    }
    ps->stop = ps->folder.fd = -1;
    ps->dir = ps->folder.path;
    if (read_options (ps, o ? o : &none, err) < 0
        || own_folder_open (&ps->folder, ps->name, 0700, err) < 0)
        goto fail;
    psregistration_describe (&ps->entry);
    ps->entry.servers = ps->servers;
    ps->entry.workers = ps->workers;
    ps->stop = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ps->stop < 0) {
        errorf (err, "eventfd: %s", strerror (errno));
        goto fail;
    }
    if (ps->role == PS_WORKER && psclient_open (ps, err) < 0)
        goto fail;
    return ps;
fail:
    slurmdl_ps_close (ps);
    return NULL;
}

int slurmdl_ps_close (struct slurmdl_ps *ps)
{
    int rv;
    int saved = errno;

    if (!ps)
        return 0;
    rv = psclient_close (ps);
    saved = rv < 0 ? errno : saved;
    if (ps->stop >= 0)
        close (ps->stop);
    own_folder_close (&ps->folder);
    free (ps->address);
    free (ps);
    errno = saved;
    return rv;
}

int slurmdl_ps_is_server (const struct slurmdl_ps *ps)
{
    return ps->role != PS_WORKER;
}

long slurmdl_ps_index (const struct slurmdl_ps *ps)
{
    return ps->index;
}

long slurmdl_ps_servers (const struct slurmdl_ps *ps)
{
    return ps->servers;
}

long slurmdl_ps_workers (const struct slurmdl_ps *ps)
{
    return ps->workers;
}

void slurmdl_ps_stats (const struct slurmdl_ps *ps,
                       struct slurmdl_ps_stats *stats)
{
    *stats = ps->stats;
}
