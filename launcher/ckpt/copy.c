/* SPDX-License-Identifier: Apache-2.0 */
/* dl ckpt extract, export, import: tensors in other files. */
#include "launcher/ckpt/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/ckpt/open.h"
#include "launcher/ckpt/safetensors.h"
#include "launcher/sys/say.h"
#include "launcher/sys/take_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* What numpy calls it; it has no name for some, of which the bits are kept. */
static const char *numpy_type (enum slurmdl_type type)
{
    static const char *const names[] = {
        [SLURMDL_I8] = "|i1",      [SLURMDL_U8] = "|u1",
        [SLURMDL_I32] = "<i4",     [SLURMDL_U32] = "<u4",
        [SLURMDL_I64] = "<i8",     [SLURMDL_U64] = "<u8",
        [SLURMDL_F16] = "<f2",     [SLURMDL_F32] = "<f4",
        [SLURMDL_F64] = "<f8",     [SLURMDL_BF16] = "<u2",
        [SLURMDL_BOOL] = "|b1",    [SLURMDL_C64] = "<c8",
        [SLURMDL_C128] = "<c16",   [SLURMDL_I16] = "<i2",
        [SLURMDL_U16] = "<u2",     [SLURMDL_F8_E4M3] = "|u1",
        [SLURMDL_F8_E5M2] = "|u1",
    };

    return names[type];
}

/* Version 1.0 of the format: the header and its length are 64 bytes, or a
 * multiple of that.
 */
static int write_npy_header (FILE *f, const struct slurmdl_tensor *t)
{
    char text[512];
    int n = snprintf (text,
                      sizeof (text),
                      "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      numpy_type (t->type));
    int padded;

    for (int i = 0; i < t->ndims; i++)
        n += snprintf (
            text + n, sizeof (text) - (size_t)n, "%" PRIu64 ",", t->dims[i]);
    n += snprintf (text + n, sizeof (text) - (size_t)n, "), }");
    padded = (10 + n + 1 + 63) / 64 * 64 - 10;
    return fprintf (f,
                    "\x93NUMPY\x01%c%c%c%-*s\n",
                    0,
                    padded & 0xff,
                    padded >> 8,
                    padded - 1,
                    text)
                   < 0
               ? -1
               : 0;
}

static char *
file_for (const struct settings *st, const struct slurmdl_tensor *t, bool npy)
{
    const char *slash = strrchr (t->name, '/');
    char *path;

    if (st->output)
        return strdup (st->output);
    return asprintf (
               &path, "%s.%s", slash ? slash + 1 : t->name, npy ? "npy" : "raw")
                   < 0
               ? NULL
               : path;
}

static int write_tensor (const char *path,
                         const struct slurmdl_tensor *t,
                         const void *data,
                         bool npy)
{
    struct slurmdl_error err = { "" };
    FILE *f = user_open_output (path, &err);
    int rv = 0;

    if (!f) {
        complain ("%s", err.text);
        return EXIT_IO;
    }
    if (npy)
        rv = write_npy_header (f, t);
    if (rv == 0 && t->bytes && fwrite (data, t->bytes, 1, f) != 1)
        rv = -1;
    if (fclose (f) == 0 && rv == 0)
        return EXIT_OK;
    complain ("%s: cannot write: %s", path, strerror (errno));
    return EXIT_IO;
}

static int extract (struct slurmdl_checkpoint *c,
                    const struct settings *st,
                    const struct slurmdl_tensor *t,
                    bool npy)
{
    struct slurmdl_error err = { "" };
    char *path = file_for (st, t, npy);
    void *data = malloc (t->bytes + 1);
    int rv;

    if (!path || !data) {
        complain ("out of memory");
        rv = EXIT_IO;
    } else if (slurmdl_checkpoint_read (c, t->name, NULL, NULL, data, &err) < 0)
        rv = fail (&err);
    else
        rv = write_tensor (path, t, data, npy);
    if (rv == EXIT_OK)
        printf ("%s\n", path);
    if (rv == EXIT_OK && npy && numpy_type (t->type)[1] == 'u'
        && *slurmdl_type_name (t->type) != 'u')
        complain ("%s: numpy has no %s; these are its bits",
                  path,
                  slurmdl_type_name (t->type));
    free (data);
    free (path);
    return rv;
}

int ckpt_extract (const struct settings *st)
{
    bool raw = st->format && !strcmp (st->format, "raw");
    struct slurmdl_checkpoint *c;
    struct slurmdl_tensor t;
    int64_t i;
    int rv = 0;

    if (st->format && !raw && strcmp (st->format, "npy")) {
        complain ("--format: '%s' is neither npy nor raw", st->format);
        return EXIT_USAGE;
    }
    if (!(c = ckpt_open (st->args[1], &rv)))
        return rv;
    i = slurmdl_checkpoint_find_tensor (c, st->args[2]);
    if (i < 0) {
        complain ("%s: no tensor '%s'; dl ckpt ls lists them",
                  st->args[1],
                  st->args[2]);
        rv = EXIT_NOT_FOUND;
    } else {
        slurmdl_checkpoint_info (c, (size_t)i, &t);
        rv = extract (c, st, &t, !raw);
    }
    slurmdl_checkpoint_close (c);
    return rv;
}

int ckpt_export (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    int rv = 0;
    struct slurmdl_checkpoint *c = ckpt_open (st->args[1], &rv);

    if (!c)
        return rv;
    if (safetensors_write (c, st->only ? st->only : "", st->args[2], &err) < 0)
        rv = fail (&err);
    slurmdl_checkpoint_close (c);
    return rv;
}

static int import_tensor (struct slurmdl_writer *w,
                          const struct safetensors *s,
                          size_t i,
                          struct slurmdl_error *err)
{
    void *data = malloc (s->list[i].bytes + 1);
    int rv = -1;

    if (!data)
        errorf (err, "out of memory");
    else if (safetensors_read (s, i, data, err) == 0)
        rv = slurmdl_writer_add (w, &s->list[i], data, err);
    free (data);
    return rv;
}

int ckpt_import (const struct settings *st)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_writer *w = NULL;
    struct safetensors s;
    int64_t step;
    int rv;

    if (safetensors_open (&s, st->args[1], &err) < 0)
        return fail (&err);
    step = st->step >= 0 ? st->step : s.step >= 0 ? s.step : 0;
    w = slurmdl_writer_open (st->args[2], step, &err);
    rv = w ? 0 : -1;
    if (w && !s.own && !st->trust) {
        say_owner (st->args[2], s.owner);
        slurmdl_writer_set_owner (w, s.owner);
    }
    for (size_t i = 0; rv == 0 && i < s.n; i++)
        rv = import_tensor (w, &s, i, &err);
    if (rv == 0)
        rv = slurmdl_writer_commit (w, &err);
    else
        slurmdl_writer_abort (w);
    safetensors_close (&s);
    return rv == 0 ? EXIT_OK : fail (&err);
}
