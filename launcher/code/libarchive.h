/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, loaded when it is first needed: it costs 2 ms, and few commands
 * pack or unpack code.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "runtime/base/error.h"

/* clang-format off */
#define LIBARCHIVE_FUNCTIONS(X) \
    X (archive_entry_filetype) X (archive_entry_free) \
    X (archive_entry_hardlink) X (archive_entry_new) \
    X (archive_entry_pathname) X (archive_entry_perm) \
    X (archive_entry_set_filetype) X (archive_entry_set_mtime) \
    X (archive_entry_set_pathname) X (archive_entry_set_perm) \
    X (archive_entry_set_size) X (archive_entry_set_symlink) \
    X (archive_entry_size) X (archive_entry_symlink) \
    X (archive_error_string) X (archive_read_data) X (archive_read_free) \
    X (archive_read_new) X (archive_read_next_header) \
    X (archive_read_open_memory) X (archive_read_support_filter_zstd) \
    X (archive_read_support_format_tar) X (archive_set_error) \
    X (archive_write_add_filter_zstd) X (archive_write_close) \
    X (archive_write_data) X (archive_write_free) X (archive_write_header) \
    X (archive_write_new) X (archive_write_open2) \
    X (archive_write_set_bytes_in_last_block) \
    X (archive_write_set_format_pax_restricted)

struct libarchive {
#define LIBARCHIVE_FIELD(name) __typeof__ (name) *name;
    LIBARCHIVE_FUNCTIONS (LIBARCHIVE_FIELD)
#undef LIBARCHIVE_FIELD
};
extern struct libarchive libarchive;

/* To be called before any function of the library. */
int libarchive_load (struct slurmdl_error *err);
/* clang-format on */
