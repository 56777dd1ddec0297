# The installed package: find_package(cairn), target cairn::cairn; and pkg-config's module cairn. In three components:
# library (the shared one), development and tools.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# With a shared libcairn, programs need not link its dependencies; with a static one they must.
get_target_property(cairn_type cairn TYPE)
set(CAIRN_STATIC OFF)
if(cairn_type STREQUAL "STATIC_LIBRARY")
  set(CAIRN_STATIC ON)
  install(TARGETS cairn_compiler cairn_index_links cairn_cpu_fast_links cairn_gpu_links cairn_engine_links
          EXPORT cairn)
endif()
install(TARGETS cairn EXPORT cairn
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT library)
install(DIRECTORY include/cairn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(EXPORT cairn NAMESPACE cairn:: FILE cairnTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn COMPONENT development)
configure_package_config_file(cmake/cairnConfig.cmake.in cairnConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
write_basic_package_version_file(cairnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cairnConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cairnConfigVersion.cmake
              cmake/CairnDependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn COMPONENT development)

include(CairnPkgConfig)
include(CairnPackages)
