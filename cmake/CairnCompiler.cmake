# Compiler settings shared by every target of this project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET default)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Checkouts in different folders share compiled objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=true ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(cairn_compiler INTERFACE)
target_compile_options(cairn_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${CAIRN_WERROR}>>:-Werror>)
# Kernels call the constexpr layout functions of index/. When the host compiler reads a .cu file, it uses the
# warnings except -Wpedantic, which nvcc's own code violates. nvcc mistakes an assignment to a
# [[nodiscard]] class for a discarded value (2810).
target_compile_options(cairn_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--extended-lambda;-diag-suppress=2810;-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CAIRN_WERROR}>>:-Werror=all-warnings>)
if(CAIRN_LINEINFO)
  target_compile_options(cairn_compiler INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
endif()
# GCC 12 warns about overlaps in std::string's operator+ that do not exist (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(cairn_compiler INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_include_directories(cairn_compiler INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

if(CAIRN_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CAIRN_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  if(CAIRN_SANITIZE MATCHES "undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  endif()
  add_link_options(-fsanitize=${CAIRN_SANITIZE})
endif()
if(CAIRN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CAIRN_FUZZ needs clang, for libFuzzer")
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link,address,undefined>)
  add_link_options(-fsanitize=address,undefined)
endif()
if(CAIRN_COVERAGE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--coverage>)
  add_link_options(--coverage)
endif()

include(CairnModules)

# cairn_add_floor(NAME SOURCES... [ALONE SOURCES...] LINKS...): one folder's object library `cairn_NAME`, and
# `cairn_NAME_links`, the libraries that the whole library must link for it. With CAIRN_UNITY_BUILD, the SOURCES of a
# module are compiled as one, except those that are ALONE: kernels that Highway compiles several times, and sources with
# their own flags.
function(cairn_add_floor name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;LINKS" ${ARGN})
  add_library(cairn_${name}_links INTERFACE)
  target_link_libraries(cairn_${name}_links INTERFACE ${ARG_LINKS})
  if(CAIRN_UNITY_BUILD)
    cairn_unity_build(ARG_SOURCES ${ARG_SOURCES})
  endif()
  add_library(cairn_${name} OBJECT ${ARG_SOURCES} ${ARG_ALONE})
  target_link_libraries(cairn_${name} PRIVATE cairn_compiler cairn_${name}_links)
endfunction()
