/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of operations on two arrays, for tests/runtime/comm/reduce.c. */
#pragma once

void all_pairs_of_bytes (void **state);
void pairs_of_halves (void **state);
void pairs_of_int8_t (void **state);
void pairs_of_uint8_t (void **state);
void pairs_of_int16_t (void **state);
void pairs_of_uint16_t (void **state);
void pairs_of_int32_t (void **state);
void pairs_of_uint32_t (void **state);
void pairs_of_int64_t (void **state);
void pairs_of_uint64_t (void **state);
void truth_values (void **state);
void pairs_of_floats (void **state);
void pairs_of_complex_numbers (void **state);
