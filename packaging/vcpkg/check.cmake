# Runs a portfile with vcpkg's functions as stubs, which finds syntax errors and names that vcpkg does not have.
#   cmake -DPORTFILE=FILE -P check.cmake
foreach(name check_linkage download_distfile extract_source_archive find_acquire_program cmake_configure cmake_install
        cmake_config_fixup fixup_pkgconfig copy_tools install_copyright)
  cmake_language(EVAL CODE "function(vcpkg_${name})\nendfunction()")
endforeach()
set(CURRENT_PACKAGES_DIR ${CMAKE_CURRENT_BINARY_DIR}/no-such-folder)
include(${PORTFILE})
