# Flags and tools that hold for every target: optimisation, sanitizers, named bugs, linker, ccache.

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

# Paths in messages and debug information begin at the root of the tree.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# The same bits on every machine: no fused multiply-add behind the author's back.
add_compile_options(-ffp-contract=off)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

if(GEARDB_SANITIZE STREQUAL "address")
  set(sanitize_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(GEARDB_SANITIZE STREQUAL "thread")
  set(sanitize_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(GEARDB_SANITIZE)
  message(FATAL_ERROR "GEARDB_SANITIZE is '${GEARDB_SANITIZE}'; known: address, thread")
endif()
if(GEARDB_SANITIZE)
  # -O1 compiles faster, and the instrumented code loses little by it.
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")
endif()
add_compile_options(${sanitize_flags})
add_link_options(${sanitize_flags})
# What fuzzers look into: the libraries. Tests compile a quarter faster without it.
set(GEARDB_LIBRARY_FLAGS)
if(GEARDB_FUZZ)
  set(GEARDB_LIBRARY_FLAGS -fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

# A named bug: the names are the first column of the table in base/break.h. The choice goes into a
# generated header, so that changing it compiles only the files that ask for it.
file(READ ${PROJECT_SOURCE_DIR}/base/break.h break_table)
string(REGEX MATCHALL "\n  X\\([a-z0-9_]+," break_rows "${break_table}")
set(break_names)
foreach(row IN LISTS break_rows)
  string(REGEX REPLACE ".*\\((.*)," "\\1" break_name "${row}")
  list(APPEND break_names ${break_name})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/base/break.h)
if(GEARDB_BREAK AND NOT GEARDB_BREAK IN_LIST break_names)
  list(JOIN break_names " " known)
  message(FATAL_ERROR "GEARDB_BREAK is '${GEARDB_BREAK}'; known: ${known}")
endif()
if(GEARDB_BREAK)
  message(WARNING "This build has the bug '${GEARDB_BREAK}' on purpose.")
  set(break_define "#define GEARDB_BREAK_NAME \"${GEARDB_BREAK}\"")
else()
  set(break_define "// No bug is built in.")
endif()
file(CONFIGURE OUTPUT generated/geardb_break_choice.h CONTENT "${break_define}\n")

foreach(linker IN ITEMS mold lld)
  find_program(GEARDB_LINKER_${linker} NAMES ${linker} ld.${linker})
  if(GEARDB_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()

find_program(GEARDB_CCACHE ccache)
if(GEARDB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GEARDB_CCACHE})
endif()
