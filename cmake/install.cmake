# The library as others see it: libgeardb.a, libgeardb.so, headers under include/geardb,
# find_package(geardb) and `pkg-config geardb`. It needs libstdc++, threads, and the packages of the
# layer engine (cmake/dependencies.cmake): who links it shared gets them by it, who links it static
# finds them named in both.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(compiled_layers GLOBAL PROPERTY GEARDB_COMPILED_LAYERS)
set(objects)
foreach(layer IN LISTS compiled_layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()

add_library(geardb_static STATIC ${objects})
set_target_properties(geardb_static PROPERTIES OUTPUT_NAME geardb)
add_library(geardb_shared SHARED ${objects})
set_target_properties(geardb_shared PROPERTIES
  OUTPUT_NAME geardb EXPORT_NAME geardb
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set(exports ${PROJECT_SOURCE_DIR}/cmake/geardb.map)
target_link_options(geardb_shared PRIVATE -Wl,--no-undefined -Wl,--version-script=${exports})
set_target_properties(geardb_shared PROPERTIES LINK_DEPENDS ${exports})
foreach(library IN ITEMS geardb_static geardb_shared)
  target_link_libraries(${library} PUBLIC Threads::Threads PRIVATE ${GEARDB_PACKAGES_engine})
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} INTERFACE
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/geardb>)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE CXX)
endforeach()

install(TARGETS geardb_static geardb_shared EXPORT geardb_targets)
# Public headers are engine/*.h and what they include of base.
install(DIRECTORY base engine DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/geardb
        FILES_MATCHING PATTERN "*.h" PATTERN "internal" EXCLUDE PATTERN "break.h" EXCLUDE)
if(TARGET geardb_cli)
  install(TARGETS geardb_cli)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/geardb)
install(EXPORT geardb_targets NAMESPACE geardb:: FILE geardb-targets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(cmake/geardb-config.cmake.in geardb-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(geardb-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/geardb-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/geardb-config-version.cmake
        DESTINATION ${package_dir})

list(TRANSFORM GEARDB_PACKAGES_engine PREPEND -l OUTPUT_VARIABLE package_flags)
list(JOIN package_flags " " GEARDB_PC_PACKAGES)
file(RELATIVE_PATH GEARDB_PC_PREFIX /usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig /usr)
configure_file(cmake/geardb.pc.in geardb.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/geardb.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
