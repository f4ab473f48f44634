# The headers of others, compiled once for all files of a sanitizer's build, of whose time they are
# a third. The other builds go without, so every file still has to say what it includes.
#
#   geardb_precompiled(NAME FLAGS f ... HEADERS h ...)   makes precompiled/NAME.h.pch
#   geardb_use_precompiled(target NAME out)              sets `out` to the options of target's files
#
# Beside each lies the .sum of its text, by which ccache knows it (CCACHE_PCH_EXTSUM): the file
# itself holds the build directory's path.

function(geardb_precompiled name)
  cmake_parse_arguments(arg "" "" "FLAGS;HEADERS" ${ARGN})
  if(NOT GEARDB_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  set(header ${CMAKE_BINARY_DIR}/precompiled/${name}.h)
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT ${header} CONTENT "${text}\n" @ONLY)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  set(compile ${CMAKE_CXX_COMPILER} ${flags} ${options} -std=c++${CMAKE_CXX_STANDARD} ${arg_FLAGS}
              -x c++-header precompiled/${name}.h)
  add_custom_command(
    OUTPUT ${header}.pch ${header}.pch.sum
    COMMAND ${compile} -E -P -o ${header}.pch.sum
    COMMAND ${compile} -Xclang -fno-pch-timestamp -MD -MF ${header}.d -MT precompiled/${name}.h.pch
            -o ${header}.pch
    DEPENDS ${header}
    DEPFILE ${header}.d
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    COMMENT "precompile ${name}.h"
    VERBATIM)
  add_custom_target(precompiled_${name} DEPENDS ${header}.pch)
endfunction()

# Paths are relative to the build directory, where compilers run: the same for every clone.
function(geardb_use_precompiled target name out)
  set(${out} "" PARENT_SCOPE)
  if(TARGET precompiled_${name})
    add_dependencies(${target} precompiled_${name})
    set(${out} -include precompiled/${name}.h PARENT_SCOPE)
  endif()
endfunction()

set(standard_headers
  algorithm array atomic bit chrono cmath cstdint cstring deque functional map memory mutex optional
  set span string string_view thread utility vector)
geardb_precompiled(libraries FLAGS -fPIC ${GEARDB_LIBRARY_FLAGS}
                   HEADERS ${standard_headers} flatbuffers/flatbuffers.h)
geardb_precompiled(tests FLAGS -fPIE -O0 -DGTEST_HAS_PTHREAD=1
                   HEADERS ${standard_headers} sstream gtest/gtest.h)
