# Every library comes from the distribution's packages (tools/packages lists them). The installed package also reads this
# file: it requires the libraries that the headers include and, if libcairn is static, those that it links.
include(CMakeFindDependencyMacro)
find_package(absl REQUIRED)
if(NOT DEFINED CAIRN_STATIC OR CAIRN_STATIC)
  find_package(Threads REQUIRED)
  # Before RocksDB, whose own module for TBB does not define TBB::tbb.
  find_package(TBB REQUIRED)
  find_package(simdjson REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
  pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
  pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
  # Highway by pkg-config: the CMake package also requires the test library.
  pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy libhwy-contrib)
endif()
# The installed package sets the one that Cairn was built with.
find_package(RocksDB ${CAIRN_ROCKSDB_VERSION} REQUIRED)
