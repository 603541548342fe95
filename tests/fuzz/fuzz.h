/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share: a folder of their own, and inputs as files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/slurmdl.h"

/* One input; returns 0.  libFuzzer calls it, or tests/fuzz/main.c does. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* The input as text, which the caller frees. */
char *fuzz_text (const uint8_t *data, size_t size);

/* Cut off the first line of a text, "" if it has none; '*text' is moved behind
 * it.
 */
char *fuzz_line (char **text);

/* The folder of this process, which goes with it; a path in it, until the call
 * after the next three.
 */
const char *fuzz_folder (void);
const char *fuzz_path (const char *name);

/* Write a file in the folder; returns its path, as fuzz_path(). */
const char *fuzz_file (const char *name, const void *data, size_t size);

/* Remove everything below a folder. */
void fuzz_empty (const char *path);

/* Make the folder 'name' with the files that the input has, each after a line
 * "== PATH".  "-> TARGET" is a link.  'put' writes a file, NULL: as it is.
 * Returns the folder's path.  Only what differs from the last input is written:
 * one folder a process, and fuzz_forget() where a parser has written into it.
 */
typedef void fuzz_put_f (const char *path, const void *data, size_t size);
const char *fuzz_files (const char *name, const uint8_t *data, size_t size, fuzz_put_f *put);
void fuzz_forget (const char *path);

/* What 'put' may be: as it is; with the checksum of the runtime's messages. */
void fuzz_put (const char *path, const void *data, size_t size);
void fuzz_put_message (const char *path, const void *data, size_t size);

/* A socket from which the input can be read, and then its end; answers can be
 * sent.
 */
int fuzz_socket (const uint8_t *data, size_t size);

/* The input was refused.  A corpus of which nothing is accepted reaches little.
 */
extern bool fuzz_refused;

/* The same with its reason: ends the program if there is none. */
void fuzz_failed (const struct slurmdl_error *err);
