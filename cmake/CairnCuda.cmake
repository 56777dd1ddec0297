# CUDA is on where nvcc is found, off elsewhere; CAIRN_CUDA=ON makes its absence an error.
include(CheckLanguage)
if(NOT DEFINED CAIRN_CUDA OR CAIRN_CUDA STREQUAL "AUTO")
  set(CAIRN_CUDA AUTO CACHE STRING "Build the GPU code: AUTO (where nvcc is found), ON or OFF")
  # /usr/local/cuda is where NVIDIA's packages put nvcc, on or off the PATH.
  find_program(CAIRN_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(CAIRN_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${CAIRN_NVCC})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CAIRN_WITH_CUDA ON)
  else()
    set(CAIRN_WITH_CUDA OFF)
  endif()
else()
  set(CAIRN_WITH_CUDA ${CAIRN_CUDA})
endif()

if(CAIRN_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "CUDA architectures")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  # CMake 3.25 does not know that nvcc takes C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Machine code a quarter as large, which the driver unpacks; it takes as long as compiling a small kernel, so only
  # where there is code for several architectures.
  list(LENGTH CMAKE_CUDA_ARCHITECTURES architectures)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8 AND
     (architectures GREATER 1 OR CMAKE_CUDA_ARCHITECTURES MATCHES "all"))
    target_compile_options(cairn_compiler INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
  endif()
  message(STATUS "cairn: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "cairn: no CUDA; the CPU answers everything")
endif()
