/* SPDX-License-Identifier: Apache-2.0 */
/* The second entry of a decision log, without its checksum. */
#include <xxhash.h>

#include "launcher/config/diagnostics.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "tests/fuzz/fuzz.h"
#include "tests/launcher/made.h"

static const char conf[] =
    "name = \"t\";\nentrypoint = \"./train {lr}\";\n"
    "searcher = { name = \"asha\"; metric = \"loss\"; max_trials = 9;"
    " max_length = 27; divisor = 3; max_rungs = 4; };\n"
    "hyperparameters = { lr = { type = \"log\"; minval = -3; maxval = 0.0; };"
    " n = { type = \"int\"; minval = 2; maxval = 64; }; };\n";

static const char created[] = "{\"op\":\"create\",\"time\":1000.5,\"by\":\"me\",\"version\":1,"
                              "\"name\":\"t\",\"dir\":\"/tmp\",\"seed\":7,"
                              "\"id\":\"0123456789abcdef0123456789abcdef\",\"digest\":\"0\"}\n";

static void put_entry (long n, const void *text, size_t size)
{
    char *all = malloc (size + 64);
    char name[64];

    memcpy (all, text, size);
    size += (size_t)snprintf (all + size, 64, "{\"xxh64\": \"%016llx\"}\n",
                              (unsigned long long)XXH64 (text, size, 0));
    snprintf (name, sizeof (name), "sweep/log/000000/%08ld", n);
    fuzz_file (name, all, size);
    free (all);
}

/* Read the experiment once, because its file is not under test here. */
static struct experiment *experiment (void)
{
    static struct experiment *e;

    if (!e)
        e = made_experiment (fuzz_file ("exp.conf", conf, strlen (conf)));
    return e;
}

static void replay (void)
{
    struct slurmdl_error err = { "" };
    struct sweep *s = calloc (1, sizeof (*s));

    if (!s || !(s->exp = experiment ()) || !(s->dir = strdup (fuzz_path ("sweep")))
        || !(s->log = log_create (fuzz_path ("sweep/log"), &err)))
        abort ();
    if (sweep_sync (s, &err) < 0)
        fuzz_failed (&err);
    for (long i = 1; i <= s->ntrials; i++)
        trial_hparams (s, sweep_trial (s, i));
    s->exp = NULL;
    sweep_close (s);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    mkdir (fuzz_path ("sweep"), 0777);
    mkdir (fuzz_path ("sweep/log"), 0777);
    mkdir (fuzz_path ("sweep/log/000000"), 0777);
    put_entry (1, created, strlen (created));
    put_entry (2, data, size);
    replay ();
    return 0;
}
