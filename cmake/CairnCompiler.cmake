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
  # Checkouts in different folders share what one of them has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
                                  CCACHE_NOHASHDIR=true ${CCACHE_PROGRAM})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(cairn_compiler INTERFACE)
target_compile_options(cairn_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${CAIRN_WERROR}>>:-Werror>)
# Layout arithmetic of index/ is constexpr, and used in kernels as it is. The host's passes over a .cu
# file get the warnings, but -Wpedantic, which nvcc's own code does not stand. nvcc takes an assignment
# to a [[nodiscard]] class for a value that is thrown away (2810).
target_compile_options(cairn_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--extended-lambda;-diag-suppress=2810;-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${CAIRN_WERROR}>>:-Werror=all-warnings>)
if(CAIRN_LINEINFO)
  target_compile_options(cairn_compiler INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>)
endif()
# GCC 12 warns of overlaps in std::string's operator+ that are not there (GCC bug 105651).
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

# cairn_add_floor(NAME SOURCES... [ALONE SOURCES...] LINKS...): one folder's object library `cairn_NAME`, and
# `cairn_NAME_links`, what the whole library must link because of it. Where CAIRN_ROOMS_TOGETHER says so, SOURCES of a
# room are compiled as one, but those that are ALONE: kernels that Highway compiles several times, sources with flags of
# their own.
function(cairn_add_floor name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;LINKS" ${ARGN})
  add_library(cairn_${name}_links INTERFACE)
  target_link_libraries(cairn_${name}_links INTERFACE ${ARG_LINKS})
  if(CAIRN_ROOMS_TOGETHER)
    cairn_join_rooms(ARG_SOURCES ${ARG_SOURCES})
  endif()
  add_library(cairn_${name} OBJECT ${ARG_SOURCES} ${ARG_ALONE})
  target_link_libraries(cairn_${name} PRIVATE cairn_compiler cairn_${name}_links)
endfunction()

# cairn_join_rooms(OUT SOURCES...): sources, in the build's folder, that include those of the current folder's SOURCES: one
# for each room (what stands in the floor's folder itself is one, too), in CUDA, and one for as many C++ rooms in a row as come to 100 KB. Where that is one source, it stays as it
# is. CMake's own UNITY_BUILD takes CUDA from 3.31 on, and names files by absolute paths, so that ccache could not share what
# it compiles between checkouts.
function(cairn_join_rooms out)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE floor)
  set(rooms)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH room)
    if(NOT room)
      cmake_path(GET floor FILENAME room)
    endif()
    cmake_path(GET source EXTENSION LAST_ONLY extension)
    set(room ${room}${extension})
    if(NOT room IN_LIST rooms)
      list(APPEND rooms ${room})
      set(size_${room} 0)
    endif()
    list(APPEND sources_${room} ${source})
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} size)
    math(EXPR size_${room} "${size_${room}} + ${size}")
  endforeach()
  set(groups)  # by the name of their first room
  foreach(room IN LISTS rooms)
    if(NOT room MATCHES "[.]cc$")
      list(APPEND groups ${room})
      continue()
    endif()
    if(DEFINED group)
      math(EXPR together "${size_${group}} + ${size_${room}}")
      if(together LESS_EQUAL 100000)
        list(APPEND sources_${group} ${sources_${room}})
        set(size_${group} ${together})
        continue()
      endif()
    endif()
    set(group ${room})
    list(APPEND groups ${group})
  endforeach()
  set(joined)
  foreach(group IN LISTS groups)
    list(LENGTH sources_${group} count)
    if(count EQUAL 1)
      list(APPEND joined ${sources_${group}})
      continue()
    endif()
    list(TRANSFORM sources_${group} REPLACE "(.+)" "#include \"${floor}/\\1\"\n" OUTPUT_VARIABLE includes)
    list(JOIN includes "" includes)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/rooms/${group})
    file(CONFIGURE OUTPUT ${file} CONTENT "${includes}" @ONLY)
    # GCC takes what the included sources keep to themselves for a header's.
    set_source_files_properties(${file} PROPERTIES
      COMPILE_OPTIONS $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    list(APPEND joined ${file})
  endforeach()
  set(${out} ${joined} PARENT_SCOPE)
endfunction()
