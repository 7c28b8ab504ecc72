// Shared by all kernels: spans with bounds checks, the type of products, dropout, sums over warps and blocks.
//
// The constants HIDDEN, HEAD_SIZE, BF16 and CHECKED are set when the kernels are compiled for a model, and so are the
// switches ROTARY, WINDOWED and NORM_BIAS. Kernels of models that do not need a switch do not contain its code.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef EMULATED
#include "emulated.h"
#else
extern "C" __device__ int printf(const char*, ...);
#define KERNEL extern "C" __global__ void
#define DEVICE __device__ __forceinline__
#define INFINITY __int_as_float(0x7f800000)
#endif

// False for NaN and infinities. A difference of equal finite numbers is 0.
template <class T>
DEVICE bool is_finite(T x) { return x - x == 0; }

const u32 WARP = 32;
const u32 EVERY_LANE = 0xffffffffu;

// Values in GPU memory with their count. With CHECKED set, an index out of bounds stops the kernel.
template <class T>
struct Span {
    T* data;
    u64 len;

    DEVICE T& operator[](u64 index) const {
#if CHECKED
        if (index >= len) {
            printf("melm: index %llu of %llu\n", index, len);
            __trap();
        }
#endif
        return data[index];
    }

    DEVICE bool is_empty() const { return len == 0; }
};

// The type that products read: bf16 (as its bits) or f32.
#if BF16
typedef u16 product_t;

DEVICE product_t to_product(float x) {
    u32 bits = __float_as_uint(x);
    // A NaN must not round to infinity.
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    // Round to nearest, ties to even.
    return (product_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

DEVICE float from_product(product_t x) { return __uint_as_float((u32)x << 16); }
#else
typedef float product_t;
DEVICE product_t to_product(float x) { return x; }
DEVICE float from_product(product_t x) { return x; }
#endif

// The sentence and position of a row.
struct Place {
    u64 sentence;
    u32 position;
    u32 unused;
};

// The dropout of one site of one layer. It uses the same hash as the CPU.
struct Drop {
    u64 site;
    u32 threshold;
    float scale;
};

// The dropout of one row.
struct RowMask {
    u32 low;
    u32 high;
    u32 threshold;
    float scale;

    DEVICE bool keeps(u32 column) const {
        u32 x = low ^ (column * 0x9e3779b9u);
        x = ((x ^ (x >> 16)) * 0x7feb352du) ^ high;
        x = (x ^ (x >> 15)) * 0x846ca68bu;
        x = x ^ (x >> 16);
        return x >= threshold;
    }

    DEVICE float factor(u32 column) const {
        if (threshold == 0) return 1.0f;
        return keeps(column) ? scale : 0.0f;
    }
};

DEVICE u64 mix(u64 x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

DEVICE RowMask row_mask(Drop drop, u64 sentence, u64 position) {
    RowMask mask;
    mask.threshold = drop.threshold;
    mask.scale = drop.scale;
    mask.low = mask.high = 0;
    if (drop.threshold != 0) {
        u64 key = mix(mix(drop.site ^ sentence) ^ position);
        mask.low = (u32)key;
        mask.high = (u32)(key >> 32);
    }
    return mask;
}

DEVICE float warp_sum(float x) {
    for (u32 step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(EVERY_LANE, x, step);
    return x;
}

DEVICE float warp_max(float x) {
    for (u32 step = WARP / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(EVERY_LANE, x, step));
    return x;
}

DEVICE double warp_sum(double x) {
    for (u32 step = WARP / 2; step > 0; step /= 2) x += __shfl_xor_sync(EVERY_LANE, x, step);
    return x;
}

// The sum over a block of N threads; every thread gets it.
template <u32 N, class T>
DEVICE T sum_of_block(T x) {
    __shared__ T parts[N / WARP];
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    x = 0;
    for (u32 w = 0; w < N / WARP; w++) x += parts[w];
    return x;
}
