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
    // Kernels pass what they write to functions that only read.
    DEVICE operator Span<const T>() const { return {data, len}; }
};

// The type that products read: bf16 (as its bits) or f32.
#if BF16
typedef u16 product_t;
typedef ushort4 product4_t;

#if !defined(EMULATED) && __CUDA_ARCH__ >= 800
DEVICE product_t to_product(float x) {
    product_t rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
    return rounded;
}
#else
DEVICE product_t to_product(float x) {
    u32 bits = __float_as_uint(x);
    // A NaN must not round to infinity.
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    // Round to nearest, ties to even.
    return (product_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#endif

DEVICE float from_product(product_t x) { return __uint_as_float((u32)x << 16); }
#else
typedef float product_t;
typedef float4 product4_t;

DEVICE product_t to_product(float x) { return x; }
DEVICE float from_product(product_t x) { return x; }
#endif

// Four consecutive numbers, which a thread loads and stores together.
struct Quad {
    float x[4];
};

// True if the quads of the span can be accessed as vectors. `width` is the width of its rows.
template <class T>
DEVICE bool has_vectors(Span<T> span, u64 width) {
    return width % 4 == 0 && (u64)span.data % (4 * sizeof(T)) == 0;
}

// The address of a vector of four numbers.
template <class V, class T>
DEVICE V* vector_at(Span<T> span, u64 at) {
    T* last = &span[at + 3];
#if CHECKED
    if ((u64)(last - 3) % sizeof(V) != 0) {
        printf("melm: no vector at index %llu\n", at);
        __trap();
    }
#endif
    return (V*)(last - 3);
}

// Loads the `n` numbers from `at` on, at most four; the others are 0. With VECTOR the n numbers are a whole vector.
template <bool VECTOR>
DEVICE Quad load_quad(Span<const float> from, u64 at, u32 n) {
    Quad quad;
    if (VECTOR) {
        float4 v = *vector_at<const float4>(from, at);
        quad.x[0] = v.x, quad.x[1] = v.y, quad.x[2] = v.z, quad.x[3] = v.w;
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) quad.x[i] = i < n ? from[at + i] : 0.0f;
    }
    return quad;
}

#if BF16
template <bool VECTOR>
DEVICE Quad load_quad(Span<const product_t> from, u64 at, u32 n) {
    Quad quad;
    if (VECTOR) {
        product4_t v = *vector_at<const product4_t>(from, at);
        quad.x[0] = from_product(v.x), quad.x[1] = from_product(v.y);
        quad.x[2] = from_product(v.z), quad.x[3] = from_product(v.w);
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++) quad.x[i] = i < n ? from_product(from[at + i]) : 0.0f;
    }
    return quad;
}
#endif

template <bool VECTOR>
DEVICE void store_quad(const Quad& quad, Span<float> to, u64 at, u32 n) {
    if (VECTOR) {
        *vector_at<float4>(to, at) = {quad.x[0], quad.x[1], quad.x[2], quad.x[3]};
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (i < n) to[at + i] = quad.x[i];
    }
}

// Rounds a quad to the type that products read, and stores it.
template <bool VECTOR>
DEVICE void store_rounded(const Quad& quad, Span<product_t> to, u64 at, u32 n) {
    product_t x[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) x[i] = to_product(quad.x[i]);
    if (VECTOR) {
        *vector_at<product4_t>(to, at) = {x[0], x[1], x[2], x[3]};
    } else {
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (i < n) to[at + i] = x[i];
    }
}

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
