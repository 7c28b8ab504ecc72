// Emulates a GPU for tests. The threads of a block take turns on one CPU thread, each with its own stack. Tests see what
// the kernels compute, and with CHECKED that they stay within their spans.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#define KERNEL extern "C" void
#define DEVICE inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

struct Dim {
    u32 x, y, z;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) float2 {
    float x, y;
};

struct alignas(8) ushort4 {
    u16 x, y, z, w;
};

static Dim threadIdx, blockIdx, blockDim, gridDim;

// The stack of an emulated thread, and the stack pointer where it stopped.
struct Fiber {
    std::vector<char> stack;
    void* at;
    bool is_done;
};

// A barrier for the lanes of a warp or the threads of a block.
struct Meeting {
    u32 n_members, n_waiting, n_held;
};

static std::vector<Fiber> fibers;
static std::vector<Meeting> warps;
static Meeting whole;
static u32 current;
static void* scheduler;
static void (*body)();
static u64 exchange[2048];

// Saves the callee-saved registers and continues where another stack stopped.
extern "C" void switch_stacks(void** from, void* to);
asm(R"(
.text
.globl switch_stacks
switch_stacks:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

static void give_way() { switch_stacks(&fibers[current].at, scheduler); }

static void release(Meeting& meeting) {
    if (meeting.n_waiting == meeting.n_members && meeting.n_waiting > 0) {
        meeting.n_waiting = 0;
        meeting.n_held++;
    }
}

static void meet(Meeting& meeting) {
    u32 turn = meeting.n_held;
    meeting.n_waiting++;
    release(meeting);
    while (meeting.n_held == turn) give_way();
}

static void run_thread() {
    body();
    fibers[current].is_done = true;
    warps[current / 32].n_members--;
    release(warps[current / 32]);
    whole.n_members--;
    release(whole);
    while (true) give_way();
}

static void run_block(u32 n_threads) {
    const size_t SIZE = 1 << 16;
    if (fibers.size() < n_threads) fibers.resize(n_threads);
    warps.assign((n_threads + 31) / 32, {0, 0, 0});
    whole = {n_threads, 0, 0};
    for (u32 t = 0; t < n_threads; t++) {
        Fiber& fiber = fibers[t];
        fiber.stack.resize(SIZE);
        fiber.is_done = false;
        warps[t / 32].n_members++;
        uintptr_t top = (uintptr_t)(fiber.stack.data() + SIZE) & ~(uintptr_t)15;
        void** frame = (void**)(top - 64);
        // Six registers, and the address that the first switch returns to. The stack is then aligned as after a call.
        for (int i = 0; i < 6; i++) frame[i] = nullptr;
        frame[6] = (void*)run_thread;
        fiber.at = frame;
    }
    for (u32 n_left = n_threads; n_left > 0;) {
        n_left = 0;
        for (u32 t = 0; t < n_threads; t++) {
            if (fibers[t].is_done) continue;
            n_left++;
            current = t;
            threadIdx = {t, 0, 0};
            switch_stacks(&scheduler, fibers[t].at);
        }
    }
}

static inline void __syncthreads() { meet(whole); threadIdx = {current, 0, 0}; }

template <class T>
static T exchanged(T value, u32 lane) {
    u32 warp = current / 32;
    memcpy(&exchange[current], &value, sizeof(T));
    meet(warps[warp]);
    T other;
    memcpy(&other, &exchange[warp * 32 + lane], sizeof(T));
    meet(warps[warp]);
    threadIdx = {current, 0, 0};
    return other;
}

template <class T>
static T __shfl_xor_sync(u32, T value, u32 step) {
    return exchanged(value, (current % 32) ^ step);
}

template <class T>
static T __shfl_sync(u32, T value, u32 lane) {
    return exchanged(value, lane);
}

static inline u32 __float_as_uint(float x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float __uint_as_float(u32 bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline float power_of_2(float x) { return exp2f(x); }

// The number in f16, rounded to the nearest; 65504 if it is larger.
static inline u32 to_half(float x) {
    u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
    if (x != x) return 0x7fff;
    float size = fminf(fabsf(x), 65504.0f);
    if (size < 6.103515625e-5f) return sign | (u32)nearbyintf(size * 16777216.0f);
    bits = __float_as_uint(size);
    bits += 0xfff + (bits >> 13 & 1);
    return sign | ((bits >> 13) - (112 << 10));
}

static inline float from_half(u16 half) {
    u32 exponent = half >> 10 & 31, rest = half & 1023;
    float size = exponent == 0    ? rest / 16777216.0f
                 : exponent == 31 ? (rest == 0 ? INFINITY : NAN)
                                  : __uint_as_float((exponent + 112) << 23 | rest << 13);
    return half & 0x8000 ? -size : size;
}

static inline u32 to_halves(float low, float high) { return to_half(low) | to_half(high) << 16; }

// The product of a 16 x 16 and a 16 x 8 matrix that a warp holds in parts. tensor.cuh describes the parts.
static inline void multiply_add(float (&sum)[4], const u32 (&left)[4], u32 right_0, u32 right_1) {
    static u16 lefts[1024][8], rights[1024][4];
    u32 warp = current / 32 * 32, g = current % 32 / 4, t = current % 4;
    memcpy(lefts[current], left, sizeof(left));
    memcpy(rights[current], &right_0, 4);
    memcpy(rights[current] + 2, &right_1, 4);
    meet(warps[warp / 32]);
    for (u32 i = 0; i < 4; i++) {
        u32 row = g + i / 2 * 8, column = 2 * t + i % 2;
        for (u32 k = 0; k < 16; k++) {
            u32 lane = k % 8 / 2, part = k / 8 * 2 + k % 2;
            float a = from_half(lefts[warp + row % 8 * 4 + lane][k / 8 * 4 + row / 8 * 2 + k % 2]);
            sum[i] += a * from_half(rights[warp + column * 4 + lane][part]);
        }
    }
    meet(warps[warp / 32]);
    threadIdx = {current, 0, 0};
}

static inline void load_parts(u32 (&out)[4], const u16* row, bool is_transposed) {
    static const u16* rows[1024];
    u32 warp = current / 32 * 32, g = current % 32 / 4, t = current % 4;
    rows[current] = row;
    meet(warps[warp / 32]);
    for (u32 i = 0; i < 4; i++) {
        const u16** matrix = rows + warp + 8 * i;
        u16 low = is_transposed ? matrix[2 * t][g] : matrix[g][2 * t];
        u16 high = is_transposed ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
        out[i] = low | (u32)high << 16;
    }
    meet(warps[warp / 32]);
    threadIdx = {current, 0, 0};
}

static inline void load_matrices(u32 (&out)[4], const u16* row) { load_parts(out, row, false); }
static inline void load_transposed(u32 (&out)[4], const u16* row) { load_parts(out, row, true); }

static inline float __fdividef(float x, float y) { return x / y; }
static inline float atomicAdd(float* at, float x) { return *at += x; }
static inline u32 min(u32 a, u32 b) { return a < b ? a : b; }
static inline void __trap() { abort(); }

// The addresses of the kernel's arguments.
static void** arguments;

template <class... T, size_t... I>
static void call(void (*kernel)(T...), std::index_sequence<I...>) {
    kernel(*(T*)arguments[I]...);
}

template <class... T>
static void call(void (*kernel)(T...)) {
    call(kernel, std::index_sequence_for<T...>{});
}

static void run_grid(void (*with_arguments)(), const u32* grid, u32 n_threads, void** list) {
    body = with_arguments;
    arguments = list;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {n_threads, 1, 1};
    for (u32 z = 0; z < grid[2]; z++)
        for (u32 y = 0; y < grid[1]; y++)
            for (u32 x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                run_block(n_threads);
            }
}

// Defines the function `run_<kernel>`, which runs a kernel over a grid. The Rust side looks it up by name.
#define EMULATE(kernel)                                                                      \
    extern "C" void run_##kernel(const u32* grid, u32 n_threads, void** list) {               \
        run_grid([] { call(kernel); }, grid, n_threads, list);                                \
    }
