/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt: list, verify and convert checkpoints. */
#include "launcher/ckpt/ckpt.h"

#include <inttypes.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stdio.h>

#include "launcher/ckpt/copy.h"
#include "launcher/ckpt/diff.h"
#include "launcher/ckpt/open.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subcommand.h"

static json_t *tensor_json (const struct slurmdl_tensor *t)
{
    json_t *shape = json_array ();

    for (int i = 0; i < t->ndims; i++)
        json_array_append_new (shape, json_integer ((json_int_t)t->dims[i]));
    return json_pack ("{s:s, s:s, s:o, s:I, s:i, s:b}",
                      "name",
                      t->name,
                      "type",
                      slurmdl_type_name (t->type),
                      "shape",
                      shape,
                      "bytes",
                      (json_int_t)t->bytes,
                      "shards",
                      (int)t->shards,
                      "state",
                      t->state != 0);
}

static int print_json (json_t *v)
{
    int rv = v ? json_put (v, stdout, JSON_INDENT (2)) : -1;

    json_decref (v);
    if (rv < 0 || puts ("") < 0) {
        complain ("cannot print");
        return EXIT_IO;
    }
    return EXIT_OK;
}

static int ls_json (struct slurmdl_checkpoint *c)
{
    json_t *tensors = json_array ();
    struct slurmdl_tensor t;

    for (size_t i = 0; slurmdl_checkpoint_info (c, i, &t) == 0; i++)
        json_array_append_new (tensors, tensor_json (&t));
    return print_json (json_pack ("{s:I, s:o}",
                                  "step",
                                  (json_int_t)slurmdl_checkpoint_step (c),
                                  "tensors",
                                  tensors));
}

static void add_line (struct libscols_table *tb, const struct slurmdl_tensor *t)
{
    struct libscols_line *line = scols_table_new_line (tb, NULL);
    char shape[256], bytes[32], shards[32];

    ckpt_shape (shape, sizeof (shape), t);
    snprintf (bytes, sizeof (bytes), "%" PRIu64, t->bytes);
    snprintf (shards, sizeof (shards), "%u", t->shards);
    scols_line_set_data (line, 0, t->name);
    scols_line_set_data (
        line, 1, t->state ? "state" : slurmdl_type_name (t->type));
    scols_line_set_data (line, 2, shape);
    scols_line_set_data (line, 3, bytes);
    scols_line_set_data (line, 4, shards);
}

static int ls_table (struct slurmdl_checkpoint *c)
{
    struct libscols_table *tb = scols_new_table ();
    struct slurmdl_tensor t;
    uint64_t sum = 0;
    size_t i;

    if (!tb) {
        complain ("out of memory");
        return EXIT_IO;
    }
    scols_table_new_column (tb, "TENSOR", 0, 0);
    scols_table_new_column (tb, "TYPE", 0, 0);
    scols_table_new_column (tb, "SHAPE", 0, 0);
    scols_table_new_column (tb, "BYTES", 0, SCOLS_FL_RIGHT);
    scols_table_new_column (tb, "SHARDS", 0, SCOLS_FL_RIGHT);
    for (i = 0; slurmdl_checkpoint_info (c, i, &t) == 0; i++) {
        add_line (tb, &t);
        sum += t.bytes;
    }
    printf ("step %lld: %zu tensors, %" PRIu64 " bytes\n",
            (long long)slurmdl_checkpoint_step (c),
            i,
            sum);
    scols_print_table (tb);
    scols_unref_table (tb);
    return EXIT_OK;
}

static int ls (const struct settings *st)
{
    int rv = 0;
    struct slurmdl_checkpoint *c = ckpt_open (st->args[1], &rv);

    if (!c)
        return rv;
    rv = st->json ? ls_json (c) : ls_table (c);
    slurmdl_checkpoint_close (c);
    return rv;
}

struct verified {
    json_t *list; /* NULL: lines are printed */
    int rv;
};

static void verify_file (const char *path, void *arg)
{
    struct verified *v = arg;
    struct slurmdl_error err = { "" };
    int64_t step = -1;
    bool good = slurmdl_checkpoint_verify (path, &step, &err) == 0;

    if (!good)
        v->rv = fail (&err);
    else if (!v->list)
        printf (
            "%s: step %lld, every checksum is right\n", path, (long long)step);
    if (v->list)
        json_array_append_new (v->list,
                               json_pack ("{s:s, s:b, s:I}",
                                          "path",
                                          path,
                                          "whole",
                                          good,
                                          "step",
                                          (json_int_t)step));
}

static int verify (const struct settings *st)
{
    struct verified v = { st->json ? json_array () : NULL, EXIT_OK };

    for (char **path = st->args + 1; *path; path++)
        if (ckpt_each (*path, verify_file, &v) == 0) {
            complain ("%s: there is no checkpoint in this folder", *path);
            v.rv = EXIT_NOT_FOUND;
        }
    return v.list && print_json (v.list) ? EXIT_IO : v.rv;
}

static const struct subcommand subcommands[] = {
    { "ls", "FILE", 1, 1, ls },
    { "verify", "FILE...", 1, -1, verify },
    { "extract", "FILE TENSOR", 2, 2, ckpt_extract },
    { "diff", "FILE FILE", 2, 2, ckpt_diff },
    { "export", "FILE OUTPUT.safetensors", 2, 2, ckpt_export },
    { "import", "FILE.safetensors OUTPUT.h5", 2, 2, ckpt_import },
    { 0 },
};

void ckpt_words (void)
{
    subcommand_words (subcommands);
}

int cmd_ckpt (const struct settings *st)
{
    int rv = subcommand_run ("ckpt", subcommands, st);

    if (rv >= 0)
        return rv;
    complain ("no command 'dl ckpt %s'; there are ls, verify, extract, diff, "
              "export and import",
              st->args[0]);
    return EXIT_USAGE;
}
