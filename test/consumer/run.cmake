# Installs the build in BINARY_DIR to a scratch prefix, builds the consumer project against it, runs it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV} gave ${result}:\n${output}")
  endif()
endfunction()

set(scratch ${BINARY_DIR}/consumer)
file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE_DIR}/test/consumer -B ${scratch}/build
    -DCMAKE_PREFIX_PATH=${scratch}/prefix -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${scratch}/build)
foreach(standard 17 20)
  run(${scratch}/build/consumer_${standard} ${scratch}/db${standard} ${scratch}/index${standard})
endforeach()
file(REMOVE_RECURSE ${scratch})
