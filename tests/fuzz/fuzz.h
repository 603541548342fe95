/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the fuzzers: a temporary folder, and inputs as files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/slurmdl.h"

/* Parse one input and return 0.  libFuzzer or tests/fuzz/main.c calls it. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

/* Return the input as a string.  The caller frees it. */
char *fuzz_text (const uint8_t *data, size_t size);

/* Cut off and return the first line of a text, "" if the text is empty, and advance '*text'. */
char *fuzz_line (char **text);

/* Return the temporary folder of this process, which is removed at exit, or a path in it.  Four
 * paths are valid at a time.
 */
const char *fuzz_folder (void);
const char *fuzz_path (const char *name);

/* Write a file in the folder and return its path, which is valid as with fuzz_path(). */
const char *fuzz_file (const char *name, const void *data, size_t size);

/* Remove everything below a folder. */
void fuzz_empty (const char *path);

/* Create the folder 'name' with the files in the input and return its path.  Each file follows a
 * line "== PATH"; "-> TARGET" makes it a link.  'put' writes a file; NULL means fuzz_put().
 *
 * fuzz_files() writes only files that differ from the last input, so a process can have only one
 * such folder, and has to call fuzz_forget() after a parser wrote into it.
 */
typedef void fuzz_put_f (const char *path, const void *data, size_t size);
const char *fuzz_files (const char *name, const uint8_t *data, size_t size, fuzz_put_f *put);
void fuzz_forget (const char *path);

/* For 'put': write the data unchanged, or as a message of the runtime with its checksum. */
void fuzz_put (const char *path, const void *data, size_t size);
void fuzz_put_message (const char *path, const void *data, size_t size);

/* Return a socket that delivers the input and then end of file.  Answers can be sent on it. */
int fuzz_socket (const uint8_t *data, size_t size);

/* Set if the parser rejected the input.  A corpus without accepted inputs tests little. */
extern bool fuzz_refused;

/* Set fuzz_refused, and abort if the error has no text. */
void fuzz_failed (const struct slurmdl_error *err);
