/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a report's page is made of, embedded at build. */
#pragma once

/* Texts that end with a NUL; NULL where D3 was not found. */
extern const char *const asset_template;
extern const char *const asset_style;
extern const char *const asset_script;
extern const char *const asset_d3;      /* the modules that the script uses */
extern const char *const asset_licence; /* of D3 */
