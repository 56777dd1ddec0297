# Every library comes from the distribution's packages (tools/packages lists them). It is also read
# by the installed package, so that a static libcairn finds what it links.
include(CMakeFindDependencyMacro)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(TBB REQUIRED)
find_package(RocksDB REQUIRED)
find_package(simdjson REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Highway by pkg-config: the CMake package also wants the test library.
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy libhwy-contrib)
