#!/usr/bin/env bash
# Builds the commit that is checked out twice, one build after the other, and compares the results bit by bit. The folders have
# different names; the first build runs one job at a time, the second two, without ccache. A KIND is one of the functions below.
#   scripts/reproducible.sh [--keep FOLDER] [KIND...]        default: tools
# Exit status: 0 equal; 1 they differ (diffoscope, if installed, shows how), or a build failed; 2 the request is wrong.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

configure() {  # configures the build from which packages are made
  cmake -S . -B build/package -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DHIPRESS_PACKAGE=ON -DHIPRESS_ONE_LIBRARY=ON -DHIPRESS_TESTS=OFF -DHIPRESS_BENCHMARKS=OFF \
    -DHIPRESS_CUDA=OFF >&2
}
# Each of these functions runs in a source tree, and leaves the files to compare in results/; $1 is the number of jobs.
compll() { configure && cmake --build build/package -j "$1" --target hipress-compll >&2 && cp build/package/bin/hipress-compll results; }
tools() {
  configure && cmake --build build/package -j "$1" >&2
  cp build/package/bin/* build/package/runtime/libhipress.so results
  cp -r build/package/share results
}
bundle() { tools "$1" && (cd build/package && cpack >&2) && cp build/package/hipress-*.tar.gz results; }
wheel() {
  CMAKE_BUILD_PARALLEL_LEVEL=$1 _PYTHON_HOST_PLATFORM=manylinux_2_35_x86_64 "${PYTHON:-python3}" -m pip wheel . --no-deps -w results \
    -C build-dir=build/wheel >&2
}

refuse() {
  echo "reproducible: $*" >&2
  exit 2
}
keep="" kinds=()
while (($#)); do
  case $1 in
    --keep) keep=${2:?"reproducible: --keep needs a folder"}; shift 2 ;;
    compll | tools | bundle | wheel) kinds+=("$1"); shift ;;
    *) refuse "unknown word '$1'; it takes --keep FOLDER, compll, tools, bundle, wheel" ;;
  esac
done
((${#kinds[@]})) || kinds=(tools)

commit=$(git -C "$root" rev-parse HEAD) || refuse "$root is no clone: the commit and its time are those of the build"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8
work=${keep:-$(mktemp -d)}
mkdir -p "$work"
work=$(realpath "$work")
[[ -n $keep ]] || trap 'rm -rf "$work"' EXIT

# build TREE JOBS: unpacks the commit into a folder, and makes its results.
build() {
  mkdir -p "$1/results"
  git -C "$root" archive "$commit" | tar -x -C "$1"
  cd "$1"
  for kind in "${kinds[@]}"; do "$kind" "$2" || { echo "reproducible: $kind was not built" >&2; return 1; }; done
}
# With --keep, a further run does not compile again what the folder has.
(CMAKE_CXX_COMPILER_LAUNCHER=$(command -v ccache || true) CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=$work/one \
  build "$work/one" 1) || exit 1
(CCACHE_DISABLE=1 TZ=Asia/Tokyo build "$work/the second/of two" 2) || exit 1

status=0
first=$work/one/results second="$work/the second/of two/results"
diff <(cd "$first" && find . -type f | sort) <(cd "$second" && find . -type f | sort) || status=1
while read -r file; do
  if cmp -s "$first/$file" "$second/$file"; then
    echo "equal    $(sha256sum <"$first/$file" | cut -c1-16)  ${file#./}"
  else
    echo "differs  ${file#./}"
    status=1
    ! command -v diffoscope >/dev/null || diffoscope --max-report-size 4000 "$first/$file" "$second/$file" || true
  fi
done < <(cd "$first" && find . -type f | sort)
exit $status
