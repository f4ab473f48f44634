# Files of a target that are compiled together: two thirds of compiling one is reading what it
# includes. A batch is a file of the build tree that includes them, some eight of them.
#
#   geardb_batches(NAME out files...)   sets `out` to what to compile for these files
#
# Which batch a file is in depends on its path alone, and their number is a power of two: a file
# that comes or goes changes one batch, and only where a folder doubles all of them.
#
# So names in unnamed namespaces must differ between the files of a folder; and a file could use
# what another one includes. Other builds compile every file
# by itself.

# Off unless asked for: a name in an unnamed namespace hides, from headers that are first included
# behind it, a name of the namespace around; a class is laid out differently then, and nobody says
# so. (A test's own `Batch` made of quickstart::Replay another class.)

# Two warnings of g++ go by what lies in which file: it takes what a batch includes for headers, and
# where much is inlined it sees uninitialised values where there are none.
set(batch_options)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(batch_options -Wno-subobject-linkage -Wno-maybe-uninitialized)
endif()

function(geardb_batches name out)
  if(NOT GEARDB_BATCHES)
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
    string(APPEND text_${batch} "#include \"${path}\"\n")
    list(APPEND batches ${batch})
  endforeach()
  list(REMOVE_DUPLICATES batches)
  set(files)
  foreach(batch IN LISTS batches)
    set(file ${CMAKE_BINARY_DIR}/batches/${name}_${batch}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${batch}}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS ${batch_options})
  set(${out} ${files} PARENT_SCOPE)
endfunction()
