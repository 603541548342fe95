/* SPDX-License-Identifier: Apache-2.0 */
/* The files that make up a report's page, embedded at build time. */
#pragma once

/* NUL-terminated texts.  All of them are NULL if D3 was not found at build time. */
extern const char *const asset_template;
extern const char *const asset_style;
extern const char *const asset_script;
extern const char *const asset_d3;      /* the modules that the script uses */
extern const char *const asset_licence; /* D3's */
