# Runs the README's program twice in a fresh directory, and checks its output each time: the
# second run finds the index and the rows of the first.
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
foreach(run first second)
  execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${SCRATCH}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0 OR NOT output STREQUAL [[ana: {"city": "Lisbon"}
eva: {"city": "Lisbon"}
bo: {"city": "Oslo"}
]])
    message(FATAL_ERROR "${run} run: exit status ${result}\n${output}${errors}")
  endif()
endforeach()
file(REMOVE_RECURSE ${SCRATCH})
