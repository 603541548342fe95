# SPDX-License-Identifier: Apache-2.0
# fish completion for dl(1): the program's own tables provide the words and their descriptions
function __dl_words
    set -l words (commandline -opc)
    dl --complete-help $words[2..-1] 2>/dev/null
end
complete -c dl -a '(__dl_words)'
