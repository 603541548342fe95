/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of a custom searcher program, one per line. */
#include "launcher/worker/custom_searcher.c"

#include "tests/fuzz/fuzz.h"
#include "tests/launcher/made.h"

static const char conf[] =
    "name = \"t\";\nentrypoint = \"./train {lr}\";\n"
    "searcher = { name = \"custom\"; command = \"./s\"; metric = \"loss\";"
    " max_trials = 9; };\n"
    "hyperparameters = {\n"
    " lr = { type = \"log\"; minval = -3; maxval = 0.0; };\n"
    " n = { type = \"int\"; minval = 2; maxval = 64; };\n"
    " opt = { name = { type = \"categorical\"; vals = [\"sgd\", \"adam\"]; };\n"
    "  m = { type = \"float\"; minval = 0.5; maxval = 0.9;"
    " when = { opt = { name = \"sgd\"; }; }; }; };\n};\n";

static struct experiment *space (void)
{
    static struct experiment *e;

    if (!e)
        e = made_experiment (fuzz_file ("exp.conf", conf, strlen (conf)));
    return e;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct custom_searcher c;
    struct sweep s = { .exp = space (), .state = SWEEP_RUNNING };
    struct worker w = { .sweep = &s, .custom = &c };

    if (!s.exp)
        abort ();
    c.fill = size < ANSWER_MAX - 1 ? size : ANSWER_MAX - 1;
    memcpy (c.answer, data, c.fill);
    c.answer[c.fill] = '\0';
    while (strchr (c.answer, '\n')) {
        struct slurmdl_error err = { "" };
        enum search_answer answer;
        double x[8];
        if (read_program_answer (&w, x, &answer, &err) < 0)
            fuzz_failed (&err);
    }
    return 0;
}
