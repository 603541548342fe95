/* SPDX-License-Identifier: Apache-2.0 */
/* Sanitize texts of other processes before printing. */
#pragma once

/* Replace each control character, which could steer a terminal, by '?'.  Returns 'text'. */
char *clean_text (char *text);
