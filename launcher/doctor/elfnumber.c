/* SPDX-License-Identifier: Apache-2.0 */
/* Read a number out of an ELF file without loading it. */
#include "launcher/doctor/elfnumber.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const unsigned char *at;
    size_t size;
};

/* 'n' bytes at an offset that the file itself says; NULL: it has them not. */
static const void *bytes (const struct image *i, uint64_t offset, uint64_t n)
{
    if (offset > i->size || n > i->size - offset)
        return NULL;
    return i->at + offset;
}

static int section (const struct image *i,
                    const Elf64_Ehdr *h,
                    uint64_t index,
                    Elf64_Shdr *s)
{
    const void *at =
        index < h->e_shnum && h->e_shentsize == sizeof (*s)
            ? bytes (i, h->e_shoff + index * sizeof (*s), sizeof (*s))
            : NULL;

    if (!at)
        return -1;
    memcpy (s, at, sizeof (*s));
    return 0;
}

static int number_at (const struct image *i,
                      const Elf64_Ehdr *h,
                      const Elf64_Sym *symbol,
                      uint32_t *number)
{
    Elf64_Shdr s;
    const void *at;

    if (section (i, h, symbol->st_shndx, &s) < 0 || s.sh_type == SHT_NOBITS
        || symbol->st_value < s.sh_addr
        || !(at = bytes (i,
                         s.sh_offset + (symbol->st_value - s.sh_addr),
                         sizeof (*number))))
        return -1;
    memcpy (number, at, sizeof (*number));
    return 0;
}

static int find (const struct image *i,
                 const Elf64_Ehdr *h,
                 const Elf64_Shdr *table,
                 const char *name,
                 uint32_t *number)
{
    Elf64_Shdr text;
    Elf64_Sym symbol;
    const void *at;
    size_t n = strlen (name) + 1;

    if (section (i, h, table->sh_link, &text) < 0)
        return -1;
    for (uint64_t k = 0; k < table->sh_size / sizeof (symbol); k++) {
        at = bytes (i, table->sh_offset + k * sizeof (symbol), sizeof (symbol));
        if (!at)
            return -1;
        memcpy (&symbol, at, sizeof (symbol));
        at = bytes (i, text.sh_offset + symbol.st_name, n);
        if (at && symbol.st_shndx && !memcmp (at, name, n))
            return number_at (i, h, &symbol, number);
    }
    return -1;
}

static int search (const struct image *i, const char *name, uint32_t *number)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    const void *at = bytes (i, 0, sizeof (h));

    errno = ENOEXEC;
    if (!at)
        return -1;
    memcpy (&h, at, sizeof (h));
    if (memcmp (h.e_ident, ELFMAG, SELFMAG)
        || h.e_ident[EI_CLASS] != ELFCLASS64)
        return -1;
    for (uint64_t k = 0; k < h.e_shnum; k++)
        if (section (i, &h, k, &s) == 0 && s.sh_type == SHT_DYNSYM
            && find (i, &h, &s, name, number) == 0)
            return 0;
    errno = ENOENT;
    return -1;
}

int elf_number (const char *path, const char *symbol, uint32_t *number)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct image i = { NULL, 0 };
    struct stat st;
    int rv = -1;

    if (fd < 0)
        return -1;
    if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode) && st.st_size > 0) {
        void *at =
            mmap (NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        i = (struct image){ at, (size_t)st.st_size };
        if (at != MAP_FAILED) {
            rv = search (&i, symbol, number);
            munmap (at, i.size);
        }
    } else
        errno = ENOEXEC;
    close (fd);
    return rv;
}
