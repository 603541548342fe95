/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a point in the first line, then a text with {names}. */
#include "launcher/config/hparams.h"
#include "launcher/config/experiment.h"
#include "launcher/config/space.h"
#include "launcher/sys/json_number.h"
#include "tests/fuzz/fuzz.h"

static char *resume_dir (void *arg, const char *file)
{
    (void)arg;
    return file && strchr (file, 'x') ? NULL : strdup ("/t/a.1");
}

static int put_word (void *arg, char *word)
{
    (void)arg;
    free (word);
    return 0;
}

static void expand (const char *text, const json_t *o)
{
    json_t *builtins = json_pack ("{s:i, s:s}", "trial", 7, "attempt_dir", "/t");
    static struct space none;
    static const struct experiment without = { .space = &none };
    struct command_values v = {
        .exp = &without, .hparams = o, .builtins = builtins, .resume_dir = resume_dir
    };

    free (hparams_expand (text, &v, true));
    free (hparams_expand (text, &v, false));
    hparams_arguments (text, &v, put_word, NULL);
    json_decref (builtins);
}

static void each (const json_t *o)
{
    char name[64];
    const char *key;
    json_t *v;

    json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
        hparams_variable (name, sizeof (name), key);
        free (hparams_text (o, key));
        number_from_json (v);
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    char *rest = text;
    json_t *o = json_loads (fuzz_line (&rest), 0, NULL);

    if (json_is_object (o)) {
        each (o);
        expand (rest, o);
    }
    json_decref (o);
    free (text);
    return 0;
}
