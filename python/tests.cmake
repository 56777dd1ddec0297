# pytest as a ctest test, over the libcairn of this build: python/package installs, python/pytest runs.
if(CAIRN_PYTHON)
  add_test(NAME python/package COMMAND ${PROJECT_SOURCE_DIR}/tools/python-package ${PROJECT_BINARY_DIR} test,examples)
  set_tests_properties(python/package PROPERTIES LABELS python TIMEOUT 900 FIXTURES_SETUP cairn_python)
  add_test(NAME python/pytest
    COMMAND ${PROJECT_BINARY_DIR}/python/venv/bin/pytest ${PROJECT_SOURCE_DIR}/python/tests -c ${PROJECT_SOURCE_DIR}/python/pyproject.toml
      -p no:cacheprovider
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(python/pytest PROPERTIES LABELS python TIMEOUT 900 FIXTURES_REQUIRED cairn_python
    ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_tool>;MPLBACKEND=Agg")
endif()
