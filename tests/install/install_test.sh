#!/bin/bash
# Installs a build into a directory of its own and builds tests/install/consumer.cc against it in
# every way the README promises: find_package and pkg-config, shared and static; looks at what the
# shared library exports; and compiles each installed header alone.
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
cmake -G Ninja -S . -B by_cmake -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release >cmake.log || { cat cmake.log; fail "find_package failed"; }
cmake --build by_cmake >build.log || { cat build.log; fail "the build by find_package failed"; }
./by_cmake/consumer_shared "$work/store1"
./by_cmake/consumer_static "$work/store2"
[[ $(ldd by_cmake/consumer_shared) == *"$prefix/"*libgeardb.so* ]] || fail "not the shared library"
[[ $(ldd by_cmake/consumer_static) != *libgeardb* ]] || fail "static, but needs libgeardb.so"

echo "== exported symbols"
libdir=$(dirname "$(find "$prefix" -name libgeardb.a)")
# Names as in the source; what a type brings along (vtable, type information) counts as the type.
# names NM_OPTION FILE
names() {
  nm -C --defined-only "$@" 2>/dev/null | sed -nE 's/^[0-9a-f]+ [TVWBDR] //p' |
    sed -E 's/^(vtable|typeinfo|typeinfo name) for //' | sort -u
}
names -D "$libdir/libgeardb.so" >exported
# What stands directly in the namespace geardb is public; wal, index and engine lie below it.
public='^geardb::([A-Z]|operator)'
[[ -s exported ]] || fail "the shared library exports nothing"
! grep -vE "$public" exported >others || { head others; fail "the shared library exports these"; }
# And none that is defined in one place only is missing.
nm -C --defined-only "$libdir/libgeardb.a" 2>/dev/null | sed -nE 's/^[0-9a-f]+ [TBDR] //p' |
  grep -E "$public" | sort -u | comm -23 - exported >missing
[[ ! -s missing ]] || { head missing; fail "the shared library does not export these"; }

echo "== pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name geardb.pc)")
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
