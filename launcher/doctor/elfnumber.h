/* SPDX-License-Identifier: Apache-2.0 */
/* Read a number from an ELF file. */
#pragma once

#include <stdint.h>

/* The 32-bit number that a symbol of an ELF file has; nothing of the file is
 * run.  Returns -1 with errno (ENOEXEC: no ELF file of 64 bits, ENOENT: it has
 * no such symbol).
 */
int elf_number (const char *path, const char *symbol, uint32_t *number);
