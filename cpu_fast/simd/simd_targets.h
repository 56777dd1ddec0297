#pragma once

// The targets for which Highway compiles a source: those of SimdLevel, even if the compiler may
// assume better ones, and no others. Include this header before Highway's.
#define HWY_COMPILE_ALL_ATTAINABLE
#define HWY_DISABLED_TARGETS (~(HWY_SCALAR | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_NEON))
// Highway's other target in plain C++, HWY_EMU128, is affected by bugs of GCC. Each version of
// Highway avoids it for other versions of GCC.
#define HWY_BROKEN_EMU128 1
