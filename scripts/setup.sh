#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the demo need. Prints nothing if all are installed. On a system without
# apt-get, it lists the missing ones and fails; install them by hand there. --no-launch leaves out packages that only tests need:
# PyTorch, clang-format and clang-tidy, and for `ctest -L launch` Slurm, Open MPI, Redis and a root file system.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Debian packages, each with a program, a C++ header or a Python module that shows that it is installed.
requirements=(
  "cmake program cmake"
  "ninja-build program ninja"
  "g++ program g++"
  "libboost-dev header boost/multiprecision/cpp_int.hpp"
  "libeigen3-dev header eigen3/Eigen/Core"
  "libyaml-cpp-dev header yaml-cpp/yaml.h"
  "libcli11-dev header CLI/CLI.hpp"
  "libfmt-dev header fmt/format.h"
  "libspdlog-dev header spdlog/spdlog.h"
  "nlohmann-json3-dev header nlohmann/json.hpp"
  "libgloo-dev header gloo/config.h"
  "libssl-dev header openssl/evp.h"
  "zlib1g-dev header zlib.h"
  "libtinyxml2-dev header tinyxml2.h"
  "catch2 header catch2/catch.hpp"
  "libbenchmark-dev header benchmark/benchmark.h"
  "iproute2 program ip"
  "python3 program python3"
  "python3-matplotlib module matplotlib"
)

# Packages of tests that compare with PyTorch, which are skipped without it. PyTorch multiplies matrices twenty times as fast with
# OpenBLAS as with the BLAS that it comes with.
test_requirements=(
  "python3-torch debian_module torch"
  "libtorch-dev header torch/library.h"
  "libopenblas0-openmp library libopenblas.so.0"
)
# Packages of scripts/lint.py, which is skipped without them.
lint_requirements=(
  "clang-format-14 program clang-format-14"
  "clang-tidy-14 program clang-tidy-14"
)
# Packages of `ctest -L launch`; everything else works without them.
launch_requirements=(
  "slurmctld daemon slurmctld"
  "slurmd daemon slurmd"
  "slurm-client program srun"
  "munge daemon munged"
  "openmpi-bin program mpirun"
  "redis-server program redis-server"
  "busybox-static program busybox"
)
# Services that Debian would start now and at every boot. They stay off: tests start their own.
services=(slurmctld slurmd munge redis-server)

say() { echo "setup: $*" >&2; }

is_there() {
  local what=$1 name=$2 python
  case $what in
    program) command -v "$name" >/dev/null ;;
    daemon) PATH=$PATH:/usr/sbin command -v "$name" >/dev/null ;;
    library) [[ $(PATH=$PATH:/usr/sbin ldconfig -p) == *"$name"* ]] ;;
    header) g++ -std=c++20 -M -x c++ - <<<"#include <$name>" >/dev/null 2>&1 ;;
    debian_module) /usr/bin/python3 -c "import $name" 2>/dev/null ;;
    module) python=$("$here/find_python.sh") && "$python" -c "import $name" 2>/dev/null ;;
  esac
}

# Sets `missing` to the packages among these rows whose content is not there.
find_missing() {
  local row package what name
  missing=()
  for row in "$@"; do
    read -r package what name <<<"$row"
    is_there "$what" "$name" || missing+=("$package")
  done
}

# Runs a command as root.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "neither root nor sudo; as root, run: $*"
    return 1
  fi
}

install_packages() {
  say "installing with apt-get: $*"
  as_root apt-get update -qq >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >&2
}

policy=/usr/sbin/policy-rc.d
forbid_services() { printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"; }
allow_services() { as_root rm -f "$policy" || say "remove $policy: no service starts while it is there"; }

# Installs packages as install_packages does, but starts no service, now or later. Debian asks policy-rc.d before it starts one. A
# machine's own policy-rc.d is kept; ours is removed however this function ends.
install_without_services() {
  local status=0 service
  if [[ ! -e $policy ]]; then
    trap allow_services EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    forbid_services || return 1
  fi
  install_packages "$@" || status=1
  if [[ -d /run/systemd/system ]]; then
    for service in "${services[@]}"; do
      [[ " $* " != *" $service "* ]] || as_root systemctl disable --quiet "$service" >&2 ||
        say "the service $service may start at the next boot: systemctl disable $service"
    done
  fi
  return $status
}

install_requirements() {
  find_missing "${requirements[@]}"
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here; install what these Debian 12 packages hold, then run this again: ${missing[*]}"
    return 1
  fi
  install_packages "${missing[@]}"
  # bench_sim compares with SimGrid, which is optional.
  if [[ ! -e /usr/include/simgrid/s4u.hpp ]] && ! install_packages libsimgrid-dev; then
    say "no libsimgrid-dev: bench_sim will leave out the rows that compare with SimGrid"
  fi
  find_missing "${requirements[@]}"
  if [[ ${#missing[@]} -gt 0 ]]; then
    say "still not usable after their installation: ${missing[*]}"
    return 1
  fi
  say "done"
}

# Never fails: a test is skipped if its package is missing.
install_test_requirements() {
  find_missing "${test_requirements[@]}"
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if command -v apt-get >/dev/null && install_packages "${missing[@]}"; then
    find_missing "${test_requirements[@]}"
  fi
  if [[ ${#missing[@]} -gt 0 ]]; then
    say "tests that compare with PyTorch are skipped, or slow, without what these Debian 12 packages hold: ${missing[*]}"
  fi
}

# Never fails: a test is skipped if its package is missing.
install_lint_requirements() {
  find_missing "${lint_requirements[@]}"
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if command -v apt-get >/dev/null && install_packages "${missing[@]}"; then
    find_missing "${lint_requirements[@]}"
  fi
  if [[ ${#missing[@]} -gt 0 ]]; then
    say "scripts/lint.py is skipped without what these Debian 12 packages hold: ${missing[*]}"
  fi
}

# Never fails itself; a test fails if its package is missing.
install_launch_requirements() {
  find_missing "${launch_requirements[@]}"
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if command -v apt-get >/dev/null && install_without_services "${missing[@]}"; then
    find_missing "${launch_requirements[@]}"
  fi
  if [[ ${#missing[@]} -gt 0 ]]; then
    say "'ctest -L launch' will fail without what these Debian 12 packages hold: ${missing[*]}"
  fi
}

case ${1:-} in
  "") wants_launch=yes ;;
  --no-launch) wants_launch="" ;;
  *)
    say "unknown option '$1'; it takes --no-launch or nothing"
    exit 2
    ;;
esac
install_requirements
[[ -z $wants_launch ]] || install_test_requirements
[[ -z $wants_launch ]] || install_lint_requirements
[[ -z $wants_launch ]] || install_launch_requirements
