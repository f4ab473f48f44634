#!/bin/bash
# Installs a build into a directory of its own and builds tests/install/consumer.cc against it in
# every way the README promises: find_package and pkg-config, shared and static; and compiles each
# installed header alone.
#   install_test.sh SOURCE_DIR BUILD_DIR CXX
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3

work=$(mktemp -d "${TMPDIR:-/tmp}/geardb_install_XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "install_test: $*" >&2
  exit 1
}

cmake --install "$build_dir" --prefix "$prefix" >"$work/install.log"
# From here on the tree itself must not be needed.
cp "$source_dir/tests/install/CMakeLists.txt" "$source_dir/tests/install/consumer.cc" "$work"
cd "$work"

echo "== find_package"
cmake -S . -B by_cmake -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release >cmake.log || { cat cmake.log; fail "find_package failed"; }
cmake --build by_cmake >build.log || { cat build.log; fail "the build by find_package failed"; }
./by_cmake/consumer_shared "$work/store1"
./by_cmake/consumer_static "$work/store2"
[[ $(ldd by_cmake/consumer_shared) == *"$prefix/"*libgeardb.so* ]] || fail "not the shared library"
[[ $(ldd by_cmake/consumer_static) != *libgeardb* ]] || fail "static, but needs libgeardb.so"

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name geardb.pc)")
libdir=$(dirname "$(find "$prefix" -name libgeardb.a)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # The flags are words.
"$cxx" -std=c++20 consumer.cc $(pkg-config --cflags --libs geardb) -o pc_shared
LD_LIBRARY_PATH=$libdir ./pc_shared "$work/store3"
rm "$libdir"/libgeardb.so*
# shellcheck disable=SC2046
"$cxx" -std=c++20 consumer.cc $(pkg-config --cflags --static --libs geardb) -o pc_static
./pc_static "$work/store4"

echo "== every public header compiles alone"
for header in "$prefix"/include/geardb/engine/*.h; do
  "$cxx" -std=c++20 -fsyntax-only -I"$prefix/include/geardb" -x c++ "$header" 2>header.log ||
    { cat header.log; fail "$(basename "$header") does not compile alone"; }
done
echo "install_test: passed"
