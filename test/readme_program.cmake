# Runs the README's program in a fresh directory and checks what it prints.
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
execute_process(COMMAND ${PROGRAM} WORKING_DIRECTORY ${SCRATCH}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(REMOVE_RECURSE ${SCRATCH})
if(NOT result EQUAL 0 OR NOT output STREQUAL [[ana: {"city": "Lisbon"}
eva: {"city": "Lisbon"}
bo: {"city": "Oslo"}
]])
  message(FATAL_ERROR "exit status ${result}\n${output}${errors}")
endif()
