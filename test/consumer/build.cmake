# Builds an outside project with the Cairn that is installed in PREFIX.
#   cmake -DPREFIX= -DROCKSDB= -DSOURCE= -DBINARY= -DCOMPILER= -DLAUNCHER= -P build.cmake
# ROCKSDB is the folder of RocksDB's CMake package.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV} gave ${result}:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${BINARY})
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE} -B ${BINARY} -DCMAKE_PREFIX_PATH=${PREFIX} -DRocksDB_DIR=${ROCKSDB}
    -DCMAKE_CXX_COMPILER=${COMPILER} "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${BINARY})
