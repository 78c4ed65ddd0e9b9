# A small history with one of everything that objects can be: merges, an octopus merge, annotated, nested and light
# tags, tags of trees and blobs, executables, symbolic links, a submodule entry, names with spaces and in UTF-8,
# empty files, a renamed folder and a revert. Object ids are the same at every run.
tick() {
    count=$((${count:-1700000000} + 60))
    export GIT_AUTHOR_DATE="$count +0000" GIT_COMMITTER_DATE="$count +0200"
}
commit() {
    tick
    git add -A
    git commit -q -m "$1"
}

mkdir -p src/deep/er docs
seq 1 400 > src/numbers.txt
seq 1 60 > src/deep/er/leaf.txt
printf '#!/bin/sh\necho hello\n' > src/run.sh
chmod +x src/run.sh
ln -s src/run.sh link
: > empty
echo 'grüße' > 'docs/näme with space.md'
commit 'First things'

for i in 1 2 3 4 5; do
    sed -i "$((i * 30))s/.*/changed in step $i/" src/numbers.txt
    echo "note $i" >> docs/notes.md
    commit "Step $i"
done
git tag light
tick
git tag -a -m 'First release' v1.0
tick
git tag -a -m 'A tag of a tag' nested v1.0
git tag blob-tag "$(git rev-parse HEAD:src/numbers.txt)"
git tag tree-tag "$(git rev-parse HEAD:src)"

git checkout -q -b topic HEAD~2
echo topic > topic.txt
commit 'On topic'
git checkout -q -b second main~1
echo second > second.txt
commit 'On second'
git checkout -q main
tick
git merge -q --no-ff -m 'Merge topic' topic
tick
git merge -q --no-ff -m 'Merge second' second
for side in a b c; do
    git checkout -q -b "side-$side" main
    echo "$side" > "side-$side.txt"
    commit "Side $side"
done
git checkout -q main
tick
git merge -q -m 'Octopus' side-a side-b side-c

git mv src/deep src/moved
commit 'Move a folder'
tick
git revert --no-edit HEAD > /dev/null
git update-index --add --cacheinfo "160000,$(git rev-parse HEAD~3),vendored"
tick
git commit -q -m 'A submodule entry'
git branch -q -D side-a side-b side-c
