# Files of a target that are compiled together: two thirds of compiling one is reading what it
# includes. A batch is a file of the build tree that includes them, some eight of them.
#
#   geardb_batches(KIND NAME out files...)   sets `out` to what to compile for these files, of a
#                                            target NAME; KIND is tests or layers
#
# GEARDB_BATCHES says of which kinds: `tests`, `all` or `none`. The layers and programs that are
# installed are compiled file by file, so that each has to say what it includes; sanitizer builds
# need not see that again.
#
# Which batch a file is in depends on its path alone, and their number is a power of two: a file
# that comes or goes changes one batch, and only where a folder doubles all of them.
#
# A batch begins with every header of the tree that its files include: a name in a file's unnamed
# namespace would hide, from headers that a later file includes first, a name of the namespace
# around, and a class would be laid out differently there. Two files of a batch that have one name
# in their unnamed namespaces do not compile; rename one.

set(GEARDB_BATCHES tests CACHE STRING "What is compiled several files at once: tests, all, none")
if(NOT GEARDB_BATCHES MATCHES "^(tests|all|none)$")
  message(FATAL_ERROR "GEARDB_BATCHES is '${GEARDB_BATCHES}'; known: tests, all, none")
endif()

# Two warnings of g++ go by what lies in which file: it takes what a batch includes for headers, and
# where much is inlined it sees uninitialised values where there are none.
set(batch_options)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(batch_options -Wno-subobject-linkage -Wno-maybe-uninitialized)
endif()

function(geardb_batches kind name out)
  if(NOT GEARDB_BATCHES MATCHES "^(all|${kind})$")
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  list(LENGTH ARGN length)
  set(count 1)
  set(fits 10)
  while(length GREATER fits)
    math(EXPR count "2 * ${count}")
    math(EXPR fits "2 * ${fits}")
  endwhile()
  set(batches)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    string(MD5 hash ${path})
    string(SUBSTRING ${hash} 0 4 digits)
    math(EXPR batch "0x${digits} % ${count}")
    list(APPEND batches ${batch})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(STRINGS ${source} headers REGEX "^#include \"")
    list(APPEND headers_${batch} ${headers})
    list(APPEND files_${batch} "#include \"${path}\"")
  endforeach()
  list(REMOVE_DUPLICATES batches)
  set(files)
  foreach(batch IN LISTS batches)
    list(SORT headers_${batch})
    list(REMOVE_DUPLICATES headers_${batch})
    list(JOIN headers_${batch} "\n" headers)
    list(JOIN files_${batch} "\n" sources)
    set(file ${CMAKE_BINARY_DIR}/batches/${name}_${batch}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${headers}\n\n${sources}\n" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS ${batch_options})
  set(${out} ${files} PARENT_SCOPE)
endfunction()
