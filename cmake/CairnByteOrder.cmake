# Files are read as they are mapped, and searches take bytes of keys apart: both as little-endian machines have them.
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "cairn: the target ${CMAKE_SYSTEM_PROCESSOR} is big-endian; Cairn runs on little-endian machines only")
endif()
