#!/bin/sh
# Runs the bundle's program with this file's name, with the bundle's libraries. Two libraries of the machine take precedence,
# because its drivers are made for them: its C library if that is new enough, and its libibverbs, which NCCL loads, too.
self=$(readlink -f "$0") || exit 1
root=${self%/*/*}
libraries=$root/lib/hipress
program=$root/libexec/hipress/${self##*/}
others=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export HIPRESS_DATA="${HIPRESS_DATA:-$root/share/hipress}"

# fits LOADER FOLDERS: succeeds if the program finds all its libraries there, in versions that fit each other.
fits() {
  [ -x "$1" ] && found=$("$1" --library-path "$2$others" --list "$program" 2>&1) || return 1
  case $found in *"not found"*) return 1 ;; esac
}

loader=/lib64/ld-linux-x86-64.so.2
folders=$libraries:$libraries/gcc
fits "$loader" "$folders" || folders=$folders:$libraries/ibverbs
if ! fits "$loader" "$folders"; then
  loader=$libraries/glibc/ld-linux-x86-64.so.2
  folders=$libraries/glibc:$folders
fi
exec "$loader" --library-path "$folders$others" "$program" "$@"
