/* SPDX-License-Identifier: Apache-2.0 */
/* An image as PNG in the text of a page. */
#include "launcher/report/png.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { STORED_MOST = 65535, ADLER = 65521 };

static void put_u32 (FILE *f, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        putc ((int)(v >> shift & 0xff), f);
}

static void put_u16_little (FILE *f, unsigned v)
{
    putc ((int)(v & 0xff), f);
    putc ((int)(v >> 8 & 0xff), f);
}

static uint32_t crc32 (const unsigned char *p, size_t n)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static uint32_t adler32 (const unsigned char *p, size_t n)
{
    uint32_t a = 1, b = 0;

    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % ADLER;
        b = (b + a) % ADLER;
    }
    return b << 16 | a;
}

/* 'body' begins with the four letters of its type. */
static void put_chunk (FILE *f, const char *body, size_t n)
{
    put_u32 (f, (uint32_t)(n - 4));
    fwrite (body, 1, n, f);
    put_u32 (f, crc32 ((const unsigned char *)body, n));
}

/* A stream of zlib whose blocks are stored as they are. */
static void put_stored (FILE *f, const unsigned char *p, size_t n)
{
    fputs ("IDAT\x78\x01", f);
    for (size_t done = 0; done < n;) {
        size_t part = n - done < STORED_MOST ? n - done : STORED_MOST;
        putc (done + part == n, f);
        put_u16_little (f, (unsigned)part);
        put_u16_little (f, ~(unsigned)part);
        fwrite (p + done, 1, part, f);
        done += part;
    }
    put_u32 (f, adler32 (p, n));
}

/* Each row begins with its filter: none. */
static unsigned char *
filtered_rows (const unsigned char *pixels, size_t row, size_t height)
{
    unsigned char *rows = malloc (height * (row + 1));

    for (size_t y = 0; rows && y < height; y++) {
        rows[y * (row + 1)] = 0;
        memcpy (rows + y * (row + 1) + 1, pixels + y * row, row);
    }
    return rows;
}

static void
put_head (FILE *f, unsigned width, unsigned height, unsigned channels)
{
    static const char colours[] = { 0, 0, 4, 2, 6 };

    fputs ("IHDR", f);
    put_u32 (f, width);
    put_u32 (f, height);
    putc (8, f);
    putc (colours[channels], f);
    for (int i = 0; i < 3; i++)
        putc (0, f);
}

static void put_base64 (FILE *f, const unsigned char *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                 "tuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        if (i + 1 < n)
            v |= (uint32_t)p[i + 1] << 8;
        if (i + 2 < n)
            v |= p[i + 2];
        putc (digits[v >> 18], f);
        putc (digits[v >> 12 & 63], f);
        putc (i + 1 < n ? digits[v >> 6 & 63] : '=', f);
        putc (i + 2 < n ? digits[v & 63] : '=', f);
    }
}

/* What a stream was given. */
struct png_buffer {
    char *text;
    size_t n;
};

int png_put (FILE *f,
             unsigned width,
             unsigned height,
             unsigned channels,
             const unsigned char *pixels)
{
    size_t row = (size_t)width * channels;
    unsigned char *rows = filtered_rows (pixels, row, height);
    struct png_buffer head = { NULL, 0 }, data = { NULL, 0 }, all = { NULL, 0 };
    FILE *h = open_memstream (&head.text, &head.n);
    FILE *d = open_memstream (&data.text, &data.n);
    FILE *a = open_memstream (&all.text, &all.n);
    int rv = rows && h && d && a ? 0 : -1;

    if (rv == 0) {
        put_head (h, width, height, channels);
        put_stored (d, rows, height * (row + 1));
    }
    rv = h && fclose (h) == 0 ? rv : -1;
    rv = d && fclose (d) == 0 ? rv : -1;
    if (rv == 0) {
        fputs ("\x89PNG\r\n\x1a\n", a);
        put_chunk (a, head.text, head.n);
        put_chunk (a, data.text, data.n);
        put_chunk (a, "IEND", 4);
    }
    rv = a && fclose (a) == 0 ? rv : -1;
    if (rv == 0)
        put_base64 (f, (unsigned char *)all.text, all.n);
    free (rows);
    free (head.text);
    free (data.text);
    free (all.text);
    return rv;
}
