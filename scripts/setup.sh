#!/usr/bin/env bash
# Installs from Debian's packages what building, testing and the demo need; silent when all of it is there.
# On a system without apt-get it names what is missing and fails; build by hand there once it is installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Debian package, and how to see that what it brings is there: a program, a C++ header, a Python module.
requirements=(
  "cmake program cmake"
  "ninja-build program ninja"
  "g++ program g++"
  "libboost-dev header boost/graph/compressed_sparse_row_graph.hpp"
  "libeigen3-dev header eigen3/Eigen/Core"
  "libyaml-cpp-dev header yaml-cpp/yaml.h"
  "libcli11-dev header CLI/CLI.hpp"
  "libfmt-dev header fmt/format.h"
  "libspdlog-dev header spdlog/spdlog.h"
  "nlohmann-json3-dev header nlohmann/json.hpp"
  "libgloo-dev header gloo/config.h"
  "libhiredis-dev header hiredis/hiredis.h"
  "catch2 header catch2/catch.hpp"
  "libbenchmark-dev header benchmark/benchmark.h"
  "iproute2 program ip"
  "python3 program python3"
  "python3-matplotlib module matplotlib"
)

say() { echo "setup: $*" >&2; }

is_there() {
  local what=$1 name=$2 python
  case $what in
    program) command -v "$name" >/dev/null ;;
    header) g++ -std=c++20 -M -x c++ - <<<"#include <$name>" >/dev/null 2>&1 ;;
    module) python=$("$here/find_python.sh") && "$python" -c "import $name" 2>/dev/null ;;
  esac
}

# Sets `missing` to the packages whose content is not there.
find_missing() {
  local row package what name
  missing=()
  for row in "${requirements[@]}"; do
    read -r package what name <<<"$row"
    is_there "$what" "$name" || missing+=("$package")
  done
}

install_packages() {
  local as_root=()
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      say "neither root nor sudo; as root, run: apt-get install $*"
      return 1
    fi
    as_root=(sudo)
  fi
  say "installing with apt-get: $*"
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "$@" >&2
}

find_missing
[[ ${#missing[@]} -eq 0 ]] && exit 0
if ! command -v apt-get >/dev/null; then
  say "no apt-get here; install what these Debian 12 packages hold, then run this again: ${missing[*]}"
  exit 1
fi
install_packages "${missing[@]}"
# What bench_sim compares with, while apt-get is at it.
if [[ ! -e /usr/include/simgrid/s4u.hpp ]] && ! install_packages libsimgrid-dev; then
  say "no libsimgrid-dev: bench_sim will leave out the rows that compare with SimGrid"
fi
find_missing
if [[ ${#missing[@]} -gt 0 ]]; then
  say "still not usable after their installation: ${missing[*]}"
  exit 1
fi
say "done"
