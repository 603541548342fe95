/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of frozen code. */
#include <dirent.h>
#include <sys/stat.h>

#include "launcher/code/code.h"
#include "tests/fuzz/fuzz.h"

static void take_file (const char *path, const void *text, size_t size, void *arg)
{
    const unsigned char *bytes = text;
    size_t *n = arg;

    *n += strlen (path) + size + (size ? bytes[size - 1] : 0);
}

/* Check that the archive unpacked nothing outside the folder. */
static void check_beside (void)
{
    DIR *d = opendir (fuzz_folder ());
    struct dirent *e;

    while (d && (e = readdir (d)))
        if (strcmp (e->d_name, ".") && strcmp (e->d_name, "..") && strcmp (e->d_name, "tree"))
            abort ();
    closedir (d);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char tree[4096];
    struct slurmdl_error err = { "" }, why = { "" };
    size_t n = 0;

    if (code_archive_each (data, size, take_file, &n, &err) < 0)
        fuzz_failed (&err);
    snprintf (tree, sizeof (tree), "%s", fuzz_path ("tree"));
    mkdir (tree, 0700);
    fuzz_empty (tree);
    if (code_archive_unpack (data, size, tree, &why) < 0)
        fuzz_failed (&why);
    check_beside ();
    return 0;
}
