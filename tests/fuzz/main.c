/* SPDX-License-Identifier: Apache-2.0 */
/* Run a fuzzer over files and folders of inputs once, without libFuzzer. */
#include <dirent.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static long inputs, refused;

static int run_file (const char *path)
{
    FILE *f = fopen (path, "re");
    struct stat st;
    uint8_t *data;
    size_t n;

    if (!f || fstat (fileno (f), &st) < 0 || !(data = malloc ((size_t)st.st_size + 1))) {
        perror (path);
        return -1;
    }
    n = fread (data, 1, (size_t)st.st_size, f);
    fclose (f);
    /* name the input before it can crash the fuzzer */
    printf ("# %s\n", path);
    fflush (stdout);
    fuzz_refused = false;
    LLVMFuzzerTestOneInput (data, n);
    free (data);
    inputs++;
    refused += fuzz_refused;
    return 0;
}

static int run_folder (const char *path, DIR *d)
{
    char name[4096];
    struct dirent *e;
    int rv = 0;

    while (rv == 0 && (e = readdir (d))) {
        snprintf (name, sizeof (name), "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            rv = run_file (name);
    }
    closedir (d);
    return rv;
}

int main (int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *d = opendir (argv[i]);
        if ((d ? run_folder (argv[i], d) : run_file (argv[i])) < 0)
            return 1;
    }
    printf ("# %ld inputs, %ld refused\n", inputs, refused);
    return 0;
}
