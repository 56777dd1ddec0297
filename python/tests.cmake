# pytest as ctest tests, with the libcairn of this build: python/package installs the package, and python/pytest runs its tests.
# python/ray runs those of cairn.ray, which start clusters of Ray on this machine; without Ray they are reported as skipped.
if(CAIRN_PYTHON)
  add_test(NAME python/package COMMAND ${PROJECT_SOURCE_DIR}/tools/python-package ${PROJECT_BINARY_DIR} test,examples,ray)
  set_tests_properties(python/package PROPERTIES LABELS python TIMEOUT 900 FIXTURES_SETUP cairn_python)
  set(pytest ${PROJECT_BINARY_DIR}/python/venv/bin/pytest -c ${PROJECT_SOURCE_DIR}/python/pyproject.toml -p no:cacheprovider)
  set(tests ${PROJECT_SOURCE_DIR}/python/tests)
  add_test(NAME python/pytest
    COMMAND ${pytest} ${tests} --ignore-glob=${tests}/test_ray*.py
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  add_test(NAME python/ray COMMAND ${pytest} -rs ${tests}/test_ray.py ${tests}/test_ray_aggregates.py ${tests}/test_ray_faults.py
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(python/pytest python/ray PROPERTIES LABELS python TIMEOUT 900 FIXTURES_REQUIRED cairn_python
    ENVIRONMENT "CAIRN=$<TARGET_FILE:cairn_tool>;MPLBACKEND=Agg")
  # Starts first if ctest knows no times of an earlier run: others would wait for these at the end.
  set_tests_properties(python/package PROPERTIES COST 1000)
  set_tests_properties(python/pytest python/ray PROPERTIES COST 500)
  # pytest's status if all modules are skipped: no test was collected.
  set_tests_properties(python/ray PROPERTIES SKIP_RETURN_CODE 5)
  # 200 kills in each step of a build and of hosts under load: half an hour.
  add_test(NAME python/ray_soak COMMAND ${pytest} -rP ${tests}/test_ray_faults.py WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(python/ray_soak PROPERTIES LABELS "python;slow;soak" TIMEOUT 5400 FIXTURES_REQUIRED cairn_python
    SKIP_RETURN_CODE 5 ENVIRONMENT "CAIRN_TEST_KILLS=200")
endif()
