/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of other processes, before they are printed. */
#pragma once

/* Each control character, which a terminal might obey, becomes '?'.  Returns
 * 'text'.
 */
char *clean_text (char *text);
