/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints.  The checksums in the trailer are corrected first, so that the parser reads on. */
#include "runtime/checkpoint/manifest.h"
#include "runtime/storage/crc32c.h"
#include "tests/fuzz/fuzz.h"

enum { DATA_MAX = 1 << 20 };

static void seal (uint8_t *file, size_t size)
{
    struct trailer t;
    uint8_t *at = file + size - sizeof (t);

    if (size < sizeof (t))
        return;
    memcpy (&t, at, sizeof (t));
    t.crc = crc32c (0, &t, sizeof (t) - sizeof (t.crc));
    memcpy (at, &t, sizeof (t));
}

/* Bit 30 of nshards asks to correct rest_crc, too.  It covers the whole file here, which is right
 * only for files without tensors.
 */
static void seal_rest (uint8_t *file, size_t size)
{
    struct trailer t;

    if (size < sizeof (t))
        return;
    memcpy (&t, file + size - sizeof (t), sizeof (t));
    if (t.nshards & 1 << 30) {
        t.nshards &= ~(UINT64_C (1) << 30);
        t.rest_crc = crc32c (0, file, size - sizeof (t));
        memcpy (file + size - sizeof (t), &t, sizeof (t));
    }
}

static void read_one (struct slurmdl_checkpoint *c, size_t i)
{
    struct slurmdl_error err = { "" };
    struct slurmdl_tensor t;
    void *data;

    if (slurmdl_checkpoint_info (c, i, &t) < 0)
        abort ();
    if (t.bytes > DATA_MAX || !(data = malloc (t.bytes + 1)))
        return;
    if (slurmdl_checkpoint_read (c, t.name, NULL, NULL, data, &err) < 0)
        fuzz_failed (&err);
    free (data);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    uint8_t *file = (uint8_t *)fuzz_text (data, size);
    struct slurmdl_error err = { "" };
    struct slurmdl_checkpoint *c;
    const char *path;
    int64_t step;

    seal_rest (file, size);
    seal (file, size);
    path = fuzz_file ("00000001.h5", file, size);
    if ((c = slurmdl_checkpoint_open (path, &err)))
        for (size_t i = 0; i < slurmdl_checkpoint_count (c) && i < 64; i++)
            read_one (c, i);
    else
        fuzz_failed (&err);
    slurmdl_checkpoint_close (c);
    if (slurmdl_checkpoint_verify (path, &step, &err) < 0)
        fuzz_failed (&err);
    free (file);
    return 0;
}
