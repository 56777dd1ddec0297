# Fails where a header preprocesses to more lines than LINES, as C++17 and without the lines that are for the compiler.
#   cmake -DCOMPILER= -DINCLUDE= -DHEADER= -DLINES= -P header_size.cmake
separate_arguments(INCLUDE)
list(TRANSFORM INCLUDE PREPEND -I)
execute_process(COMMAND ${COMPILER} -std=c++17 -E -P ${INCLUDE} -include ${HEADER} -x c++ /dev/null
                RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE errors)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${errors}")
endif()
string(REGEX REPLACE "[^\n]" "" newlines "${text}")
string(LENGTH "${newlines}" lines)
message(STATUS "${HEADER}: ${lines} lines")
if(lines GREATER LINES OR lines LESS 1000)
  message(FATAL_ERROR "${HEADER} preprocesses to ${lines} lines; expected at most ${LINES}")
endif()
