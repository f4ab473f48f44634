# What the tree is built with. All are Debian 12 packages, which tools/dev setup installs; the
# library itself needs none of them at run time (xxHash and FlatBuffers are used as headers).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

find_path(GEARDB_XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(GEARDB_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_program(GEARDB_FLATC flatc REQUIRED)

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
