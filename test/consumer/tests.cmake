# Outside projects that find the installed package: test/consumer, which compiles every header separately; the examples, which
# are also run; a program that finds it with pkg-config. Also checks the size of each header's includes.
set(prefix ${PROJECT_BINARY_DIR}/consumer/prefix)
set(build_outside -DPREFIX=${prefix} -DROCKSDB=${RocksDB_DIR} -DCOMPILER=${CMAKE_CXX_COMPILER})
if(CCACHE_PROGRAM)
  list(APPEND build_outside -DLAUNCHER=${CCACHE_PROGRAM})
endif()

# Installs to an empty prefix, so that headers that were removed from the sources are missing here.
add_test(NAME consumer/clean COMMAND ${CMAKE_COMMAND} -E rm -rf ${prefix})
add_test(NAME consumer/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix})
set_tests_properties(consumer/clean PROPERTIES FIXTURES_SETUP clean_prefix)
set_tests_properties(consumer/install PROPERTIES FIXTURES_REQUIRED clean_prefix FIXTURES_SETUP installed)

add_test(NAME consumer/documents COMMAND ${CMAKE_COMMAND} -E md5sum ${prefix}/share/man/man1/cairn.1
  ${prefix}/share/bash-completion/completions/cairn ${prefix}/share/zsh/site-functions/_cairn
  ${prefix}/share/fish/vendor_completions.d/cairn.fish)
set_tests_properties(consumer/documents PROPERTIES FIXTURES_REQUIRED installed)

set(binary ${PROJECT_BINARY_DIR}/consumer/build)
add_test(NAME consumer/build COMMAND ${CMAKE_COMMAND} ${build_outside}
  -DSOURCE=${CMAKE_CURRENT_LIST_DIR} -DBINARY=${binary} -P ${CMAKE_CURRENT_LIST_DIR}/build.cmake)
set_tests_properties(consumer/build PROPERTIES
  FIXTURES_REQUIRED installed FIXTURES_SETUP consumer_built TIMEOUT 900 COST 100)
foreach(standard 17 20)
  set(scratch ${PROJECT_BINARY_DIR}/consumer/run${standard})
  add_test(NAME consumer/clean_${standard} COMMAND ${CMAKE_COMMAND} -E rm -rf ${scratch})
  add_test(NAME consumer/run_${standard} COMMAND ${binary}/consumer_${standard} ${scratch})
  set_tests_properties(consumer/clean_${standard} PROPERTIES FIXTURES_SETUP clean_run_${standard})
  set_tests_properties(consumer/run_${standard} PROPERTIES
    FIXTURES_REQUIRED "consumer_built;clean_run_${standard}")
endforeach()

# Another RocksDB than the one that Cairn was built with is rejected, though its own package reports it as compatible.
set(other ${PROJECT_BINARY_DIR}/consumer/other_rocksdb)
file(CONFIGURE OUTPUT ${other}/RocksDBConfig.cmake CONTENT "" @ONLY)
file(CONFIGURE OUTPUT ${other}/RocksDBConfigVersion.cmake @ONLY CONTENT [[
set(PACKAGE_VERSION @RocksDB_VERSION_MAJOR@.999.0)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
]])
add_test(NAME consumer/other_rocksdb COMMAND ${CMAKE_COMMAND} ${build_outside} -DROCKSDB=${other}
  -DSOURCE=${CMAKE_CURRENT_LIST_DIR} -DBINARY=${other}/build -P ${CMAKE_CURRENT_LIST_DIR}/build.cmake)
set_tests_properties(consumer/other_rocksdb PROPERTIES FIXTURES_REQUIRED installed
  PASS_REGULAR_EXPRESSION "was built with RocksDB ${RocksDB_VERSION_MAJOR}[.]${RocksDB_VERSION_MINOR},")

# RocksDB's headers are C++20 from 10.7 on.
set(standard 17)
if(RocksDB_VERSION VERSION_GREATER_EQUAL 10.7)
  set(standard 20)
endif()
add_test(NAME consumer/pkg_config COMMAND ${CMAKE_COMMAND} -DPREFIX=${prefix} -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
  -DROCKSDB=${RocksDB_DIR} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}/consumer.cc -DBINARY=${PROJECT_BINARY_DIR}/consumer/pkg_config
  -DCOMPILER=${CMAKE_CXX_COMPILER} -DSTANDARD=c++${standard} -P ${CMAKE_CURRENT_LIST_DIR}/pkg_config.cmake)
set_tests_properties(consumer/pkg_config PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 900)

# A program in plain C, with a compiler without C++.
find_program(CAIRN_C_COMPILER NAMES cc gcc clang REQUIRED)
add_test(NAME consumer/pkg_config_c COMMAND ${CMAKE_COMMAND} -DPREFIX=${prefix} -DLIBDIR=${CMAKE_INSTALL_LIBDIR}
  -DROCKSDB=${RocksDB_DIR} -DSOURCE=${PROJECT_SOURCE_DIR}/examples/c_batch.c
  -DBINARY=${PROJECT_BINARY_DIR}/consumer/pkg_config_c -DCOMPILER=${CAIRN_C_COMPILER} -DSTANDARD=c99
  -P ${CMAKE_CURRENT_LIST_DIR}/pkg_config.cmake)
set_tests_properties(consumer/pkg_config_c PROPERTIES FIXTURES_REQUIRED installed TIMEOUT 900)

set(binary ${PROJECT_BINARY_DIR}/consumer/examples)
add_test(NAME examples/build COMMAND ${CMAKE_COMMAND} ${build_outside}
  -DSOURCE=${PROJECT_SOURCE_DIR}/examples -DBINARY=${binary} -P ${CMAKE_CURRENT_LIST_DIR}/build.cmake)
set_tests_properties(examples/build PROPERTIES
  LABELS examples FIXTURES_REQUIRED installed FIXTURES_SETUP examples_built TIMEOUT 900)
foreach(example live_index offline_build custom_extractor c_batch)
  set(scratch ${binary}/scratch/${example})
  add_test(NAME examples/${example} COMMAND ${binary}/${example} ${scratch})
endforeach()
add_test(NAME examples/device_pipeline COMMAND ${binary}/device_pipeline)
foreach(example live_index offline_build custom_extractor c_batch device_pipeline)
  set_tests_properties(examples/${example} PROPERTIES
    LABELS examples FIXTURES_REQUIRED examples_built SKIP_RETURN_CODE 77)
endforeach()
set_property(TEST examples/device_pipeline APPEND PROPERTY LABELS gpu)
set_property(TEST examples/live_index PROPERTY
  PASS_REGULAR_EXPRESSION "ana has 2 orders, bo 1, eva 0\norder-2: .*\norder-3: .*\nindex 'total', key 1 of 1: ")

# Configuring for a big-endian target fails.
add_test(NAME consumer/big_endian COMMAND ${CMAKE_COMMAND} -DCMAKE_CXX_BYTE_ORDER=BIG_ENDIAN -DCMAKE_SYSTEM_PROCESSOR=s390x
  -P ${PROJECT_SOURCE_DIR}/cmake/CairnByteOrder.cmake)
set_tests_properties(consumer/big_endian PROPERTIES PASS_REGULAR_EXPRESSION "the target s390x is big-endian")
