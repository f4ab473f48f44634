# The headers of others, compiled once for many files: of a test's compilation half is GoogleTest.
#
#   geardb_precompiled(NAME FLAGS f ... HEADERS h ...)   precompiles precompiled/NAME.h
#   geardb_use_precompiled(target NAME out)              sets `out` to the options of target's files
#
# Beside each lies the .sum of its text, by which ccache knows it (CCACHE_PCH_EXTSUM): the file
# itself holds the build directory's path.

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(precompiled_suffix pch)
  set(precompile_options -Xclang -fno-pch-timestamp)
  set(precompiled_use_options)
else()
  set(precompiled_suffix gch)
  set(precompile_options)
  set(precompiled_use_options -fpch-preprocess) # ccache reads what is preprocessed.
endif()

function(geardb_precompiled name)
  cmake_parse_arguments(arg "" "" "FLAGS;HEADERS" ${ARGN})
  set(header ${CMAKE_BINARY_DIR}/precompiled/${name}.h)
  set(compiled ${header}.${precompiled_suffix})
  list(TRANSFORM arg_HEADERS REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT ${header} CONTENT "${text}\n" @ONLY)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  set(compile ${CMAKE_CXX_COMPILER} ${flags} ${options} -std=c++${CMAKE_CXX_STANDARD} ${arg_FLAGS}
              -x c++-header precompiled/${name}.h)
  add_custom_command(
    OUTPUT ${compiled} ${compiled}.sum
    COMMAND ${compile} -E -P -o ${compiled}.sum
    COMMAND ${compile} ${precompile_options} -MD -MF ${header}.d -MT ${compiled} -o ${compiled}
    DEPENDS ${header}
    DEPFILE ${header}.d
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
    COMMENT "precompile ${name}.h"
    VERBATIM)
  add_custom_target(precompiled_${name} DEPENDS ${compiled})
endfunction()

# Paths are relative to the build directory, where compilers run: the same for every clone.
function(geardb_use_precompiled target name out)
  set(${out} "" PARENT_SCOPE)
  if(TARGET precompiled_${name})
    add_dependencies(${target} precompiled_${name})
    set(${out} ${precompiled_use_options} -include precompiled/${name}.h PARENT_SCOPE)
  endif()
endfunction()

if(GEARDB_TESTS)
  geardb_precompiled(tests FLAGS -fPIE -O0 -DGTEST_HAS_PTHREAD=1 HEADERS gtest/gtest.h)
endif()
