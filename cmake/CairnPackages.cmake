# Debian packages, by cpack: libcairn0.1, libcairn-dev and cairn-tools. tools/make-packages builds them, under the preset
# `packages`: a shared library, in /usr.
set(CAIRN_PACKAGE_CONTACT "The Cairn authors <cairn@example.invalid>" CACHE STRING "Maintainer of the packages that cpack makes")

if(CAIRN_STATIC OR NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  return()
endif()
get_target_property(soversion cairn SOVERSION)
set(library libcairn${soversion})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cairn)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# 0.1.0-1~deb12: packages of several releases differ in version and name, and sort by them.
cmake_host_system_information(RESULT distribution QUERY DISTRIB_INFO)
string(REPLACE "debian" "deb" release "1~${distribution_ID}${distribution_VERSION_ID}")
set(CPACK_DEBIAN_PACKAGE_RELEASE ${release})
set(CPACK_PACKAGE_CONTACT ${CAIRN_PACKAGE_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library development tools)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

# The library and its dependents must have the same version: there is no stable ABI before 1.0.
set(this_library "${library} (= ${PROJECT_VERSION}-${release})")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "The shared library. Cairn keeps secondary indexes of a RocksDB database, and
answers batches of queries from them.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libcairn-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "The headers, the CMake package and the module for pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${this_library}, librocksdb-dev, libabsl-dev")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME cairn-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION database)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "The program cairn builds, queries, verifies and updates indexes of RocksDB
databases.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS ${this_library})
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_CURRENT_BINARY_DIR})

foreach(component_package "library;${library}" "development;libcairn-dev" "tools;cairn-tools")
  list(GET component_package 0 component)
  list(GET component_package 1 package)
  install(FILES cmake/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
endforeach()
include(CPack)
