# Compiles a program with the Cairn that is installed in PREFIX, with the flags of pkg-config, and runs it.
#   cmake -DPREFIX= -DLIBDIR= -DROCKSDB= -DSOURCE= -DBINARY= -DCOMPILER= -DSTANDARD= -P pkg_config.cmake
# ROCKSDB is the folder of RocksDB's CMake package, whose module of pkg-config is in the same lib/.
function(run output)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN} gave ${result}:\n${text}${errors}")
  endif()
  string(STRIP "${text}" text)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

set(ENV{PKG_CONFIG_PATH} "${PREFIX}/${LIBDIR}/pkgconfig:${ROCKSDB}/../../pkgconfig:$ENV{PKG_CONFIG_PATH}")
run(version pkg-config --modversion cairn)
run(flags pkg-config --cflags --libs cairn)
separate_arguments(flags)
run(directories pkg-config --libs-only-L cairn)
string(REGEX REPLACE " *-L" ":" directories "${directories}")

file(REMOVE_RECURSE ${BINARY})
file(MAKE_DIRECTORY ${BINARY})
run(ignored ${COMPILER} -std=${STANDARD} -Wall -Wextra -Wpedantic -Werror "-DPACKAGE_VERSION=\"${version}\"" ${SOURCE} ${flags}
    -o ${BINARY}/consumer)
set(ENV{LD_LIBRARY_PATH} "${directories}:$ENV{LD_LIBRARY_PATH}")
run(ignored ${BINARY}/consumer ${BINARY}/run)
