# The installed package: find_package(cairn), target cairn::cairn.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS cairn cairn_compiler cairn_index_links cairn_cpu_fast_links cairn_gpu_links
                cairn_engine_links
        EXPORT cairn
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/cairn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT cairn NAMESPACE cairn:: FILE cairnTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
configure_package_config_file(cmake/cairnConfig.cmake.in cairnConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
write_basic_package_version_file(cairnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cairnConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cairnConfigVersion.cmake
              cmake/CairnDependencies.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cairn)
