#pragma once

// Before a loop in code that kernels use too: unrolls it there, so that what it indexes stays in
// registers.
#ifdef __CUDA_ARCH__
#define CAIRN_UNROLL _Pragma("unroll")
#else
#define CAIRN_UNROLL
#endif
