# Everything that a checkout has to get right: line endings, identifiers, encodings and filters by attributes at several
# levels, executables, links that dangle and that look like folders, names that are hard, and many small files.
mkdir -p text/deep bin names many
printf '*.crlf text eol=crlf\n*.lf text eol=lf\n*.id ident\n*.utf16 text working-tree-encoding=UTF-16LE\n*.bom text working-tree-encoding=UTF-16\n*.be text working-tree-encoding=UTF-16BE eol=crlf\n*.latin text working-tree-encoding=ISO-8859-1\n*.bin -text\n' > .gitattributes
printf '*.crlf -text\nupper.txt filter=upper\n' > text/deep/.gitattributes
printf 'one\ntwo\n' > text/windows.crlf
printf 'one\ntwo\n' > text/unix.lf
printf 'one\r\ntwo\n' > text/deep/mixed.crlf
printf 'upper case me\n' > text/deep/upper.txt
printf '$Id$ and $Id: stale $ and $Id: file.c,v 1.2 2001 alice $ and $Id:\n$Id:x$\n' > text/what.id
printf '\xff\xfeg\0r\0\xfc\0' > bin/raw.bin
printf 'h\0i\0\n\0' > text/wide.utf16
printf '\xff\xfeh\0\xe4\0\n\0' > text/marked.bom
printf '\0h\0\xe4\0\r\0\n' > text/big-endian.be
printf 'h\xe4\n' > text/western.latin
printf '#!/bin/sh\n' > bin/run
chmod +x bin/run
: > bin/empty
ln -s nowhere/at/all names/dangling
ln -s ../text names/folder
ln -s /etc/hostname names/absolute
printf 'x' > 'names/with space'
printf 'x' > $'names/with\nnewline'
printf 'x' > $'names/latin-\xe9'
printf 'x' > 'names/grüße'
printf 'x' > 'names/-dash'
printf 'x' > 'names/.gitignored'
printf 'x' > 'names/git~2'
for i in $(seq 1 300); do printf 'file %s\n' "$i" > "many/$i.txt"; done
head -c 200000 /dev/zero | tr '\0' 'z' > bin/large
git add -A
git commit -q -m 'Everything'
git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),modules/vendored"
git commit -q -m 'A submodule'
