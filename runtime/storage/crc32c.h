/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as in iSCSI (RFC 3720, appendix B.4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Checksum of 'n' more bytes after those that gave 'crc' (0 at the start). */
uint32_t crc32c (uint32_t crc, const void *data, size_t n);

/* Checksum of two runs, the second of 'n' bytes, from those of each. */
uint32_t crc32c_join (uint32_t first, uint32_t second, uint64_t n);
