# Files are mapped without conversion, and searches split keys into bytes: both assume little-endian byte order.
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "cairn: the target ${CMAKE_SYSTEM_PROCESSOR} is big-endian; Cairn runs on little-endian machines only")
endif()
