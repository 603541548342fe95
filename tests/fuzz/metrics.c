/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics files. */
#include <hdf5.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int take_row (const struct slurmdl_row *row, void *arg)
{
    size_t *n = arg;

    *n += strlen (row->name);
    return 0;
}

static int take_record (const struct slurmdl_record *r, void *arg)
{
    struct slurmdl_image image;
    struct slurmdl_histogram h;
    size_t *n = arg;

    *n += strlen (r->name);
    if (slurmdl_record_image (r, &image) == 0)
        *n += image.pixels[(size_t)image.width * image.height * image.channels - 1];
    if (slurmdl_record_histogram (r, &h) == 0)
        *n += h.counts[h.nbins - 1] + (h.edges[h.nbins] > 0);
    return 0;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *path = fuzz_file ("metrics.h5", data, size);
    struct slurmdl_error err = { "" };
    size_t n = 0;

    /* the reader does not pass world-writable files to libhdf5, which has bugs of its own */
    chmod (path, 0666);
    if (slurmdl_metrics_read (path, take_row, &n, &err) < 0)
        fuzz_failed (&err);
    if (slurmdl_records_read (path, take_record, &n, &err) < 0)
        fuzz_failed (&err);
    return 0;
}
