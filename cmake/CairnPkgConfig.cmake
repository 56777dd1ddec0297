# pkg-config's module: `pkg-config --cflags --libs cairn`. Its requirements are generated from the CMake targets, so that
# the two cannot differ: for a shared libcairn the libraries that its headers include, for a static one all that it links.

# Adds the modules and flags of `target` to the caller's lists `modules` and `flags`.
function(cairn_pkg_config_of target)
  if(target MATCHES "^\\$<LINK_ONLY:(.+)>$")
    set(target ${CMAKE_MATCH_1})
  endif()
  if(target MATCHES "^absl::(.+)")
    list(APPEND modules absl_${CMAKE_MATCH_1})
  elseif(target STREQUAL "RocksDB::rocksdb-shared")
    # As in the CMake package: the same minor version.
    math(EXPR next "${RocksDB_VERSION_MINOR} + 1")
    list(APPEND modules "rocksdb >= ${RocksDB_VERSION_MAJOR}.${RocksDB_VERSION_MINOR}"
                        "rocksdb < ${RocksDB_VERSION_MAJOR}.${next}")
  elseif(target STREQUAL "PkgConfig::hwy")
    list(APPEND modules libhwy libhwy-contrib)
  elseif(target STREQUAL "PkgConfig::hwloc")
    list(APPEND modules hwloc)
  elseif(target STREQUAL "PkgConfig::xxhash")
    list(APPEND modules libxxhash)
  elseif(target STREQUAL "PkgConfig::libzstd")
    list(APPEND modules libzstd)
  elseif(target STREQUAL "TBB::tbb")
    list(APPEND modules tbb)
  elseif(target STREQUAL "simdjson::simdjson")
    list(APPEND modules simdjson)
  elseif(target STREQUAL "Threads::Threads")
    list(APPEND flags -pthread)
  elseif(target STREQUAL "CUDA::cudart_static")
    list(APPEND flags -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt)
  elseif(target MATCHES "^cairn_.*_links$")
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link IN LISTS links)
      cairn_pkg_config_of(${link})
    endforeach()
  else()
    message(FATAL_ERROR "cmake/CairnPkgConfig.cmake: which module of pkg-config is ${target}?")
  endif()
  set(modules ${modules} PARENT_SCOPE)
  set(flags ${flags} PARENT_SCOPE)
endfunction()

set(modules)
set(flags)
get_target_property(links cairn INTERFACE_LINK_LIBRARIES)
foreach(link IN LISTS links)
  cairn_pkg_config_of(${link})
endforeach()
# For programs in C, whose linker does not add the C++ library that a static libcairn needs.
if(CAIRN_STATIC)
  foreach(library IN LISTS CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
    if(library MATCHES "^(stdc\\+\\+|c\\+\\+)$")
      list(APPEND flags -l${library})
    endif()
  endforeach()
  list(APPEND flags -lm)
endif()
list(REMOVE_DUPLICATES modules)
list(REMOVE_DUPLICATES flags)
list(JOIN modules ", " modules)
list(JOIN flags " " flags)

# Absolute in /usr, which compilers search by default; otherwise relative, so that the tree can be moved.
set(prefix /usr)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" prefix "\${pcfiledir}/${prefix}")
endif()
file(CONFIGURE OUTPUT cairn.pc @ONLY CONTENT [[
prefix=@prefix@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: cairn
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Requires: @modules@
Cflags: -I${includedir}
Libs: -L${libdir} -lcairn @flags@
]])
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cairn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
