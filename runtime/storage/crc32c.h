/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), as in iSCSI (RFC 3720, appendix B.4). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Update 'crc' (0 at the start) with 'n' more bytes. */
uint32_t crc32c (uint32_t crc, const void *data, size_t n);

/* Combine the checksums of two adjacent runs; the second has 'n' bytes. */
uint32_t crc32c_join (uint32_t first, uint32_t second, uint64_t n);
