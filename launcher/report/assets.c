/* SPDX-License-Identifier: Apache-2.0 */
/* The files that make up a report's page, embedded at build time. */
#include "launcher/report/assets.h"

#include <stddef.h>

#ifdef REPORT_D3

/* Paths are relative to the directories that the assembler searches (-Wa,-I). */
#define EMBED(name, file)                                                                          \
    __asm__(".section .rodata\n" #name ": .incbin \"" file "\"\n.byte 0\n.previous\n");            \
    extern const char name[] __attribute__ ((visibility ("hidden")))

EMBED (report_template_data, "report/page/template.html");
EMBED (report_style_data, "report/page/report.css");
EMBED (report_script_data, "report.js");
EMBED (report_licence_data, "report/page/d3-licence.txt");
EMBED (report_d3_data, "d3.js");

const char *const asset_template = report_template_data;
const char *const asset_style = report_style_data;
const char *const asset_script = report_script_data;
const char *const asset_licence = report_licence_data;
const char *const asset_d3 = report_d3_data;

#else

const char *const asset_template = NULL;
const char *const asset_style = NULL;
const char *const asset_script = NULL;
const char *const asset_licence = NULL;
const char *const asset_d3 = NULL;

#endif
