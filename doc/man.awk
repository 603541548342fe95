# SPDX-License-Identifier: Apache-2.0
# A manual page from the Markdown of doc/cookbook.md: awk -v date=YYYY-MM-DD -f man.awk cookbook.md >dl-cookbook.7
# Known are: "# NAME - purpose" in the first line, "## heading", paragraphs, `code`, and blocks between ```.

function escaped (text) {
    gsub (/\\/, "\\e", text)
    gsub (/-/, "\\-", text)
    return text ~ /^[.']/ ? "\\&" text : text
}

function paragraph (text,    parts, n, i, out) {
    n = split (text, parts, "`")
    for (i = 1; i <= n; i++)
        out = out (i % 2 ? parts[i] : "\\fB" escaped(parts[i]) "\\fR")
    return out ~ /^[.']/ ? "\\&" out : out
}

NR == 1 {
    name = $2
    sub (/^# [^ ]+ - /, "")
    print ".\\\" SPDX-License-Identifier: Apache-2.0"
    print ".\\\" made from doc/cookbook.md by doc/man.awk"
    printf ".TH %s 7 %s \"slurm-dl\" \"Miscellaneous\"\n", toupper (name), date
    printf ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", escaped(name), $0
    begun = 1
    next
}
/^```/ {
    code = !code
    print code ? (begun ? "" : ".PP\n") ".RS 4\n.nf" : ".fi\n.RE"
    begun = 0
    next
}
code { print escaped($0); next }
/^## / { printf ".SH \"%s\"\n", toupper (substr ($0, 4)); begun = 1; next }
/^$/ { blank = 1; next }
{
    if (blank && !begun)
        print ".PP"
    print paragraph($0)
    blank = begun = 0
}
