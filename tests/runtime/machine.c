/* SPDX-License-Identifier: Apache-2.0 */
/* machine FILE ROOT: unpack a machine for shell tests. */
#include "tests/runtime/machine.h"

int main (int argc, char **argv)
{
    if (argc != 3)
        return 2;
    machine_unpack (argv[1], argv[2]);
    return 0;
}
