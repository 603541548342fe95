/* SPDX-License-Identifier: Apache-2.0 */
/* Experiment files, as dl run and dl preview read them.  An input that starts with "---" is YAML;
 * lines "#set KEY=VALUE" are --set options.
 */
#include "launcher/config/experiment.h"
#include "launcher/config/diagnostics.h"
#include "launcher/config/edit.h"
#include "launcher/config/hparams.h"
#include "launcher/config/space.h"
#include "tests/fuzz/fuzz.h"

enum { SETS = 4 };

/* Read the copy that an experiment keeps of its file, as all later commands do. */
static void read_again (const struct experiment *e, const char *path)
{
    struct experiment *copy;
    struct problems p;

    if (!e->text)
        return;
    problems_open (&p);
    copy = experiment_read_text (path, e->text, strlen (e->text), &p);
    problems_close (&p);
    if (!copy || copy->space->nparams != e->space->nparams) {
        fprintf (stderr, "its own text is refused: %s\n%s", p.text, e->text);
        abort ();
    }
    experiment_destroy (copy);
    free (p.text);
}

static void look (const struct experiment *e)
{
    char name[64];
    double *x = calloc (e->space->nparams + 1, sizeof (*x));

    if (e->entrypoint)
        hparams_unknown (e, e->entrypoint, name, sizeof (name));
    for (size_t i = 0; x && i < e->space->nparams; i++)
        x[i] = e->space->params[i].type == PARAM_CATEGORICAL ? 0 : e->space->params[i].min;
    if (x)
        json_decref (hparams_json (e, x));
    free (x);
}

static void find_sets (char *text, char *sets[SETS + 1])
{
    for (int n = 0; *text && n < SETS;) {
        char *line = fuzz_line (&text);
        if (!strncmp (line, "#set ", 5))
            sets[n++] = line + 5;
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    bool is_yaml = size > 3 && !memcmp (data, "---", 3);
    const char *path = fuzz_file (is_yaml ? "exp.yaml" : "exp.conf", data, size);
    char *text = fuzz_text (data, size);
    char *sets[SETS + 1] = { NULL };
    struct edit edit = { .sets = sets };
    struct experiment *e;
    struct problems p;

    problems_open (&p);
    find_sets (text, sets);
    e = experiment_read_edited (path, &edit, &p);
    problems_close (&p);
    fuzz_refused = !e;
    if (!e && p.count == 0)
        abort ();
    if (e) {
        look (e);
        read_again (e, path);
    }
    experiment_destroy (e);
    free (p.text);
    free (text);
    return 0;
}
