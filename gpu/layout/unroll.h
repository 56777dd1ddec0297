#pragma once

// Unrolls the following loop in device code, so that arrays that it indexes stay in registers. Has
// no effect in host code.
#ifdef __CUDA_ARCH__
#define CAIRN_UNROLL _Pragma("unroll")
#else
#define CAIRN_UNROLL
#endif
