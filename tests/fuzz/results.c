/* SPDX-License-Identifier: Apache-2.0 */
/* An existing results.h5 whose seal is already verified. */
#include "launcher/sweep/results_file.c"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    hid_t access = h5_access ();
    struct rows r = { 0 };
    double sum = 0;
    hid_t file;

    H5Pset_fapl_core (access, 1 << 20, 0);
    H5Pset_file_image (access, (void *)(uintptr_t)data, size);
    if ((file = H5Fopen ("image", H5F_ACC_RDONLY, access)) >= 0) {
        bool good = fill_old (&r, file) == 0;
        for (size_t i = 0; good && i < r.n; i++)
            sum += (double)strlen (r.names[r.list[i].name]);
        for (long i = 0; good && i < r.ntrials; i++)
            if (r.covered[i] < 0 || sum < 0)
                abort ();
        rows_destroy (&r);
        H5Fclose (file);
    }
    H5Pclose (access);
    return 0;
}
