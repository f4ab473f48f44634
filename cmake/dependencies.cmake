# What the tree is built with. All are Debian 12 packages, which tools/dev setup installs. At run
# time the library needs RocksDB, LZ4 and Zstandard, shared (the cold store); xxHash and FlatBuffers
# are used as headers.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

find_path(GEARDB_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(GEARDB_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_program(GEARDB_FLATC flatc REQUIRED)

# Linked by the layer engine alone, by these names: so the installed package names them, too, and
# finds them where the linker does.
find_path(GEARDB_ROCKSDB_INCLUDE rocksdb/db.h REQUIRED)
find_library(GEARDB_ROCKSDB_LIBRARY rocksdb REQUIRED)
find_path(GEARDB_LZ4_INCLUDE lz4.h REQUIRED)
find_library(GEARDB_LZ4_LIBRARY lz4 REQUIRED)
find_path(GEARDB_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(GEARDB_ZSTD_LIBRARY zstd REQUIRED)
set(GEARDB_PACKAGES_engine rocksdb lz4 zstd)

if(GEARDB_TESTS OR GEARDB_FUZZ)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

if(GEARDB_TOOLS)
  find_package(CLI11 REQUIRED)
  find_package(Eigen3 REQUIRED NO_MODULE)
  find_package(benchmark REQUIRED)
  # In executables only: a library that brings its own malloc cannot be loaded by dlopen. A
  # sanitizer has its own.
  set(GEARDB_JEMALLOC)
  if(NOT GEARDB_SANITIZE)
    pkg_check_modules(JEMALLOC IMPORTED_TARGET jemalloc)
    if(JEMALLOC_FOUND)
      set(GEARDB_JEMALLOC PkgConfig::JEMALLOC)
    endif()
  endif()
endif()
