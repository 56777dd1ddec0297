#pragma once

// For sources that Highway compiles once for each instruction set (hwy/foreach_target.h). Include
// this header after hwy/highway.h.
//
// CAIRN_LEVEL_CASES(call): the cases of a switch over a SimdLevel that each return `call` as
// compiled for that level.
// CAIRN_SIMD_CASES(call): the same without the scalar level, which is left to the switch's default.
#include "cpu_fast/simd/simd_level.h"
#include "hwy/highway.h"

#if (HWY_TARGETS & HWY_SSE4) != 0
#define CAIRN_SIMD_CASE_SSE4(...) \
  case SimdLevel::kSse4:          \
    return N_SSE4::__VA_ARGS__;
#else
#define CAIRN_SIMD_CASE_SSE4(...)
#endif

#if (HWY_TARGETS & HWY_AVX2) != 0
#define CAIRN_SIMD_CASE_AVX2(...) \
  case SimdLevel::kAvx2:          \
    return N_AVX2::__VA_ARGS__;
#else
#define CAIRN_SIMD_CASE_AVX2(...)
#endif

#if (HWY_TARGETS & HWY_AVX3) != 0
#define CAIRN_SIMD_CASE_AVX512(...) \
  case SimdLevel::kAvx512:          \
    return N_AVX3::__VA_ARGS__;
#else
#define CAIRN_SIMD_CASE_AVX512(...)
#endif

#if (HWY_TARGETS & HWY_NEON) != 0
#define CAIRN_SIMD_CASE_NEON(...) \
  case SimdLevel::kNeon:          \
    return N_NEON::__VA_ARGS__;
#else
#define CAIRN_SIMD_CASE_NEON(...)
#endif

#define CAIRN_SIMD_CASES(...)         \
  CAIRN_SIMD_CASE_SSE4(__VA_ARGS__)   \
  CAIRN_SIMD_CASE_AVX2(__VA_ARGS__)   \
  CAIRN_SIMD_CASE_AVX512(__VA_ARGS__) \
  CAIRN_SIMD_CASE_NEON(__VA_ARGS__)

#define CAIRN_LEVEL_CASES(...)  \
  CAIRN_SIMD_CASES(__VA_ARGS__) \
  default:                      \
    return N_SCALAR::__VA_ARGS__;
