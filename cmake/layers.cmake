# One folder, one layer, one target; adding a file needs no edit here or in CMakeLists.txt.
#
#   geardb_layer(NAME DEPENDS ...)   library NAME from NAME/*.cc, NAME/internal/*.cc and NAME/*.fbs
#   geardb_tool(NAME TARGET t ...)   program t from tools/NAME/*.cc; absent folders are skipped
#   geardb_tests()                   one GoogleTest program per folder below tests/
#   geardb_fuzzers()                 one libFuzzer program per tests/fuzz/x_fuzz.cc
#
# Files are compiled in batches where that is asked for (batches.cmake), except for tools/bench.
#
# A schema NAME/x.fbs is compiled into the build tree; include it as "NAME/x_generated.h".

set(GEARDB_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)

# What every target of the tree has in common.
function(geardb_common target)
  geardb_warnings(${target})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_compile_options(${target} PRIVATE ${GEARDB_LIBRARY_FLAGS})
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${GEARDB_GENERATED_DIR})
endfunction()

# Compiles the schemas of a folder; sets `out_headers` to the generated headers.
function(geardb_schemas folder out_headers)
  file(GLOB schemas CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.fbs)
  set(headers)
  foreach(schema IN LISTS schemas)
    get_filename_component(stem ${schema} NAME_WE)
    set(header ${GEARDB_GENERATED_DIR}/${folder}/${stem}_generated.h)
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${GEARDB_FLATC} --cpp --cpp-std c++17 --scoped-enums -I ${PROJECT_SOURCE_DIR}
              -o ${GEARDB_GENERATED_DIR}/${folder} ${schema}
      DEPENDS ${schema}
      COMMENT "flatc ${folder}/${stem}.fbs"
      VERBATIM)
    list(APPEND headers ${header})
  endforeach()
  set(${out_headers} ${headers} PARENT_SCOPE)
endfunction()

function(geardb_layer name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cc
       ${PROJECT_SOURCE_DIR}/${name}/internal/*.cc)
  geardb_schemas(${name} headers)
  if(headers)
    add_custom_target(${name}_schemas DEPENDS ${headers})
  endif()
  set_property(GLOBAL APPEND PROPERTY GEARDB_LAYERS ${name})
  if(NOT sources)
    # A layer of headers, or one that is not written yet.
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${arg_DEPENDS} Threads::Threads)
    if(headers)
      add_dependencies(${name} ${name}_schemas)
    endif()
    return()
  endif()
  geardb_batches(layers ${name} sources ${sources})
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME geardb_layer_${name})
  geardb_common(${name})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} Threads::Threads
                        PRIVATE ${GEARDB_PACKAGES_${name}}) # cmake/dependencies.cmake
  foreach(layer IN ITEMS ${name} ${arg_DEPENDS})
    if(TARGET ${layer}_schemas)
      add_dependencies(${name} ${layer}_schemas)
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY GEARDB_COMPILED_LAYERS ${name})
endfunction()

# The programs under tools/. All but main.cc becomes a library `tool_NAME`, which tests can link.
# Those that tests run (TESTED) are built with sanitizers too.
function(geardb_tool name)
  cmake_parse_arguments(arg "TESTED" "TARGET;OUTPUT_NAME" "LINKS" ${ARGN})
  set(folder ${PROJECT_SOURCE_DIR}/tools/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cc ${folder}/sql/*.cc)
  list(REMOVE_ITEM sources ${folder}/main.cc)
  if(NOT EXISTS ${folder}/main.cc)
    return()
  endif()
  set(links ${arg_LINKS} engine)
  if(sources)
    if(NOT name STREQUAL "bench")
      geardb_batches(layers tool_${name} sources ${sources})
    endif()
    add_library(tool_${name} STATIC ${sources})
    if(GEARDB_SANITIZE)
      set_target_properties(tool_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    geardb_common(tool_${name})
    target_link_libraries(tool_${name} PUBLIC ${links})
    list(PREPEND links tool_${name})
  endif()
  add_executable(${arg_TARGET} ${folder}/main.cc)
  geardb_common(${arg_TARGET})
  target_link_libraries(${arg_TARGET} PRIVATE ${links} ${GEARDB_JEMALLOC})
  set_target_properties(${arg_TARGET} PROPERTIES
    OUTPUT_NAME ${arg_OUTPUT_NAME} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(GEARDB_SANITIZE AND NOT arg_TESTED)
    set_target_properties(${arg_TARGET} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# Removes from the list `sources` the tests without a suite named *ConcurrentTest: the thread
# sanitizer has nothing to find in them. Sets `out` to what is left, empty when no test is.
function(geardb_concurrent_only out sources)
  set(kept)
  set(any OFF)
  foreach(source IN LISTS sources)
    if(source MATCHES "_test\\.cc$")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      file(STRINGS ${source} suites REGEX "^TEST.*ConcurrentTest" LIMIT_COUNT 1)
      if(NOT suites)
        continue()
      endif()
      set(any ON)
    endif()
    list(APPEND kept ${source})
  endforeach()
  if(any)
    set(${out} ${kept} PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# One program for the tests of one folder, `path` relative to tests/.
function(geardb_test_folder path)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${path}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_fuzz\\.cc$")
  if(GEARDB_SANITIZE STREQUAL "thread")
    geardb_concurrent_only(sources "${sources}")
    if(NOT sources)
      return()
    endif()
  endif()
  string(REPLACE "/" "_" target ${path}_test)
  string(REGEX REPLACE "/.*" "" first ${path})
  string(REGEX REPLACE "^tools/" "" tool ${path})
  if(tool STREQUAL "bench" AND GEARDB_SANITIZE)
    return() # It is no part of what users run, and takes long to compile.
  endif()
  get_property(layers GLOBAL PROPERTY GEARDB_LAYERS)
  set(links geardb_testing_engine)
  if(first IN_LIST layers AND NOT first STREQUAL "engine")
    set(links geardb_testing ${first})
  elseif(TARGET tool_${tool})
    list(PREPEND links tool_${tool})
  endif()
  set(models ${sources})
  list(FILTER models EXCLUDE REGEX "_test\\.cc$")
  list(FILTER sources INCLUDE REGEX "_test\\.cc$")
  if(NOT tool STREQUAL "bench")
    geardb_batches(tests ${target} sources ${sources})
    geardb_batches(tests ${target}_models models ${models})
  endif()
  add_executable(${target} ${sources} ${models})
  geardb_common(${target})
  # Assertions, which compile faster so; models and oracles stand in files of other names.
  geardb_use_precompiled(${target} tests options)
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O0 ${options})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${target} PRIVATE ${links} GTest::gmock GTest::gtest_main)
  add_dependencies(test_programs ${target})
  if(path STREQUAL "fuzz") # corpus_test.cc
    target_compile_definitions(
      ${target} PRIVATE GEARDB_FUZZ_CORPUS="${PROJECT_SOURCE_DIR}/tests/fuzz/corpus")
  endif()
  if(first STREQUAL "tools" AND TARGET geardb_cli)
    add_dependencies(${target} geardb_cli)
    target_compile_definitions(${target} PRIVATE GEARDB_CLI="$<TARGET_FILE:geardb_cli>")
  endif()

  set(label unit)
  if(first MATCHES "^(crash|conformance)$")
    set(label ${first})
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST TEST_FILTER "-*ConcurrentTest*.*"
                       PROPERTIES LABELS ${label})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST TEST_FILTER "*ConcurrentTest*.*"
                       PROPERTIES LABELS concurrent)
endfunction()

# What tests share: tests/testing/*.cc. Files that see the engine become a library of their own,
# which only tests of the engine link, so that the tests of a layer build without those above it.
function(geardb_testing_libraries)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/testing/*.cc)
  set(of_base)
  set(of_engine)
  foreach(source IN LISTS sources)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    string(REGEX REPLACE "\\.cc$" ".h" header ${source})
    file(READ ${source} text)
    if(EXISTS ${header})
      file(READ ${header} header_text)
      string(APPEND text "${header_text}")
    endif()
    if(text MATCHES "#include \"engine/")
      list(APPEND of_engine ${source})
    else()
      list(APPEND of_base ${source})
    endif()
  endforeach()
  geardb_batches(tests geardb_testing of_base ${of_base})
  add_library(geardb_testing STATIC ${of_base})
  geardb_common(geardb_testing)
  target_link_libraries(geardb_testing PUBLIC base GTest::gtest)
  if(of_engine)
    geardb_batches(tests geardb_testing_engine of_engine ${of_engine})
    add_library(geardb_testing_engine STATIC ${of_engine})
    geardb_common(geardb_testing_engine)
    add_dependencies(geardb_testing_engine engine_schemas)  # It includes what they make.
  else()
    add_library(geardb_testing_engine INTERFACE)
  endif()
  target_link_libraries(geardb_testing_engine INTERFACE geardb_testing engine GTest::gtest)
endfunction()

function(geardb_tests)
  add_custom_target(test_programs)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests
       ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  set(folders)
  foreach(test IN LISTS tests)
    get_filename_component(folder ${test} DIRECTORY)
    list(APPEND folders ${folder})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    geardb_test_folder(${folder})
  endforeach()
endfunction()

# tests/fuzz/x_fuzz.cc reads its seeds from tests/fuzz/corpus/x; other .cc files there are shared.
function(geardb_fuzzers)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "GEARDB_FUZZ needs clang (CMAKE_CXX_COMPILER=clang++), "
                        "but the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/tests/fuzz)
  file(GLOB shared CONFIGURE_DEPENDS ${folder}/*.cc)
  list(FILTER shared EXCLUDE REGEX "_(fuzz|test)\\.cc$")
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_fuzz.cc)
  add_custom_target(fuzz_programs)
  foreach(source IN LISTS sources)
    get_filename_component(target ${source} NAME_WE)
    add_executable(${target} ${source} ${shared})
    geardb_common(${target})
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_libraries(${target} PRIVATE geardb_testing_engine)
    add_dependencies(fuzz_programs ${target})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  endforeach()
endfunction()
