/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that train together, and checks of their results. */
#include "tests/runtime/comm/elasticcrowd.h"
#include "runtime/base/clock.h"
#include "tests/unit.h"

static void be_rank (const char *dir, const struct job *j)
{
    struct slurmdl_elastic_options o = { dir, j->min, j->max, j->settle, j->timeout };
    struct slurmdl_error err = { "" };
    struct result r = { .rv = -1 };
    struct slurmdl_elastic *e;
    char path[128], tmp[140], start[32];
    FILE *f;

    snprintf (start, sizeof (start), "%ld", j->start);
    setenv ("DL_ELASTIC_START", start, 1);
    setenv ("DL_COMM_TIMEOUT", "3", 0);
    if (j->unit)
        setenv ("DL_ELASTIC_UNIT", j->unit, 1);
    if ((e = slurmdl_elastic_open (&o, &err))) {
        r.rv = rank_train (e, j, &r, &err);
        slurmdl_elastic_close (e);
    }
    snprintf (r.text, sizeof (r.text), "%s", err.text);
    snprintf (path, sizeof (path), "%s/result.%ld", dir, (long)getpid ());
    snprintf (tmp, sizeof (tmp), "%s.tmp", path);
    f = fopen (tmp, "we");
    if (!f || fwrite (&r, sizeof (r), 1, f) != 1 || fclose (f) != 0)
        _exit (2);
    rename (tmp, path);
    _exit (r.rv == 0 ? 0 : 1);
}

void crowd_add (struct crowd *c, const char *dir, const struct job *j)
{
    pid_t pid;

    fflush (NULL);
    if ((pid = fork ()) == 0)
        be_rank (dir, j);
    assert_true (pid > 0);
    c->dir = dir;
    c->pids[c->n++] = pid;
}

void crowd_kill (struct crowd *c, int i)
{
    kill (c->pids[i], SIGKILL);
    c->killed[i] = true;
}

bool crowd_read (struct crowd *c, int i)
{
    char path[128];
    FILE *f;
    bool rv;

    snprintf (path, sizeof (path), "%s/result.%ld", c->dir, (long)c->pids[i]);
    if (!(f = fopen (path, "re")))
        return false;
    rv = fread (&c->results[i], sizeof (*c->results), 1, f) == 1;
    fclose (f);
    return rv;
}

void crowd_wait (struct crowd *c)
{
    double end = monotonic () + 60;
    int status;

    for (int i = 0; i < c->n; i++) {
        while (waitpid (c->pids[i], &status, WNOHANG) == 0) {
            if (monotonic () > end) {
                for (int k = 0; k < c->n; k++)
                    kill (c->pids[k], SIGKILL);
                fail_msg ("rank %d hangs", i);
            }
            usleep (1000);
        }
        /* a rank that was killed may have finished before */
        if (!crowd_read (c, i) && !c->killed[i])
            fail_msg ("rank %d ended with %x", i, status);
    }
}

/* The rank started after the training had ended. */
static bool came_late (const struct result *r)
{
    return r->rv != 0 && strstr (r->text, "the training has ended");
}

long crowd_check (struct crowd *c, int64_t steps, int64_t *restarts)
{
    uint64_t right = serial (steps);
    long n = 0;

    for (int i = 0; i < c->n; i++) {
        struct result *r = &c->results[i];
        if (c->killed[i])
            continue;
        if (came_late (r)) {
            n++;
            continue;
        }
        if (r->rv != 0)
            print_message ("# rank %d: rv %d at step %ld: %s\n", i, r->rv, (long)r->step, r->text);
        assert_int_equal (r->rv, 0);
        assert_int_equal (r->step, steps);
        assert_true (r->weights == right);
        if (restarts)
            *restarts += r->restarts;
        else
            assert_int_equal (r->restarts, 0);
        n++;
    }
    return n;
}

bool crowd_rests (const char *trace, long world)
{
    FILE *f = fopen (trace, "re");
    long of, others = 0;

    while (f && fscanf (f, "%ld %*d %*d", &of) == 1)
        others = of == world ? 0 : others + 1;
    if (f)
        fclose (f);
    return others >= 100;
}
