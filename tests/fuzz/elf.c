/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files: the release of a plugin. */
#include "launcher/doctor/elfnumber.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    const char *path = fuzz_file ("dl.so", data, size);
    uint32_t number;

    elf_number (path, "slurm_version", &number);
    elf_number (path, "plugin_version", &number);
    return 0;
}
