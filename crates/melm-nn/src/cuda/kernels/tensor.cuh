// Attention over packed rows on tensor cores. It computes the same as attention.cu, but products read numbers in 16 bits
// with a significand of eleven bits (f16): queries, keys, values, probabilities and gradients are rounded. Sums and the
// softmax are in f32.
//
// A warp works on 16 rows of the block; in the forward pass and for the gradient of queries these are queries, for the
// gradients of keys and values they are keys. The block goes through the rows of the other side in tiles of TILE rows.
// While it works on one tile, the next one is on its way from global memory.
//
// One instruction multiplies 16 x 16 by 16 x 8. Two neighbours share a register. Lane 4 g + t holds
// - of the left matrix, rows g and g + 8 in columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9,
// - of the right matrix, column g in rows 2 t, 2 t + 1, 2 t + 8 and 2 t + 9,
// - of the sum, rows g and g + 8 in columns 2 t and 2 t + 1.
// So the sums of two products, rounded, are the left matrix of the next one.
//
// The range of f16 is small: numbers above 65504 become 65504, and numbers below 6e-5 lose bits. Probabilities are at most
// 1, and inputs of attention have about the size of 1. Gradients can be of any size, so they are scaled by powers of 2.
// A gradient of a score that is then still above 65504 is cut off, and the gradients of queries and keys become too small.
// With 64 columns this needs values above 50, and gradients that point in their direction.

const u32 N_WARPS = 4;
const u32 ROWS = 16;
const u32 OWN = N_WARPS * ROWS;
const u32 TILE = 32;  // a word has a bit for each row of a tile
// The columns of a head, filled up to groups of 16.
const u32 COLUMNS = (HEAD_SIZE + 15) / 16 * 16;
// With this stride, eight rows lie in different banks of shared memory.
const u32 STRIDE = COLUMNS + 8;
// The next tile is loaded early where registers have room for it.
const bool LOADS_EARLY = COLUMNS <= 64;
const u32 BUFFERS = LOADS_EARLY ? 2 : 1;
const float LOG2_OF_E = 1.44269504f;
// Gradients of scores are the product of a gradient and a probability, so they are smaller than other gradients.
const float SCORE_SCALE = 16.0f;

typedef u16 F16;
typedef float Sum[4];
typedef u32 Left[4];
typedef F16 Tile[TILE][STRIDE];

struct __align__(16) Tiles {
    Tile x[2];
};

#if BF16 && !defined(EMULATED)
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1201
// Two numbers in f16, in one register.
DEVICE u32 to_halves(float low, float high) {
    u32 halves;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
}
#else
// The nearest number from -65504 to 65504. A NaN stays a NaN.
DEVICE float clamp_to_f16(float x) {
    asm("max.NaN.f32 %0, %0, 0fC77FE000; min.NaN.f32 %0, %0, 0f477FE000;" : "+f"(x));
    return x;
}

// Compilers before CUDA 12.1 do not know the instruction above.
DEVICE u32 to_halves(float low, float high) {
    u32 halves;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(clamp_to_f16(high)), "f"(clamp_to_f16(low)));
    return halves;
}
#endif

// sum += left right
DEVICE void multiply_add(Sum& sum, const Left& left, u32 right_0, u32 right_1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}

// Loads four matrices of 8 x 8. Lane 8 i + r gives the address of row r of matrix i. In each matrix, lane 4 g + t gets
// columns 2 t and 2 t + 1 of row g.
DEVICE void load_matrices(u32 (&out)[4], const F16* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}

// As `load_matrices`, but lane 4 g + t gets rows 2 t and 2 t + 1 of column g.
DEVICE void load_transposed(u32 (&out)[4], const F16* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(row)) : "memory");
}
#elif !defined(EMULATED)
// With f32 precision these kernels are not used, and the GPU may be too old for these instructions.
DEVICE u32 to_halves(float, float) { return 0; }
DEVICE void multiply_add(Sum&, const Left&, u32, u32) { __trap(); }
DEVICE void load_matrices(u32 (&)[4], const F16*) {}
DEVICE void load_transposed(u32 (&)[4], const F16*) {}
#endif

#ifndef EMULATED
// 2 to the power of x, with a relative error of about 2^-22.
DEVICE float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif

// The place of a thread in its block.
struct Lane {
    u32 first;  // the first row of its warp, counted from the first row of the block
    u32 g, t;

    DEVICE u32 row(u32 half) const { return first + g + half * 8; }
};

DEVICE Lane lane_of_thread() {
    u32 lane = threadIdx.x % WARP;
    return {threadIdx.x / WARP * ROWS, lane / 4, lane % 4};
}

// The sum over the four lanes that hold parts of the same row.
DEVICE float row_sum(float x) {
    x += __shfl_xor_sync(EVERY_LANE, x, 1);
    return x + __shfl_xor_sync(EVERY_LANE, x, 2);
}

DEVICE float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(EVERY_LANE, x, 1));
    return fmaxf(x, __shfl_xor_sync(EVERY_LANE, x, 2));
}

// Columns d and d + 1 of the row that begins at `start`. Columns from HEAD_SIZE on are zeros.
DEVICE float2 load_pair(Span<const float> x, u64 start, u32 d) {
    float2 pair = {0.0f, 0.0f};
    if (HEAD_SIZE % 2 == 0) {
        if (d < HEAD_SIZE) pair = *(const float2*)&x[start + d];
    } else {
        if (d < HEAD_SIZE) pair.x = x[start + d];
        if (d + 1 < HEAD_SIZE) pair.y = x[start + d + 1];
    }
    return pair;
}

const float NO_SCALES[2] = {1.0f, 1.0f};

// The 16 rows of a warp as the left matrix of products.
struct LeftRows {
    Left x[COLUMNS / 16];

    // Row r of the block begins at start(r); it has `count` rows. Other rows are zeros. Rows of each half of the warp are
    // multiplied by scales[half].
    template <class Start>
    DEVICE void load(Lane lane, u32 count, Span<const float> from, Start start, const float (&scales)[2]) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 r = lane.row(half);
#pragma unroll
            for (u32 k = 0; k < COLUMNS / 8; k++) {
                float2 pair = {0.0f, 0.0f};
                if (r < count) pair = load_pair(from, start(r), k * 8 + lane.t * 2);
                x[k / 2][half + k % 2 * 2] = to_halves(pair.x * scales[half], pair.y * scales[half]);
            }
        }
    }

    // The products of the rows of this warp with 16 rows of a tile, from row `first` on.
    DEVICE void multiply(Sum (&sums)[2], const Tile& tile, u32 first) const {
        u32 lane = threadIdx.x % WARP;
        const F16* row = &tile[first + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 8];
#pragma unroll
        for (u32 n = 0; n < 2; n++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) sums[n][i] = 0.0f;
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 16; k++) {
            u32 right[4];
            load_matrices(right, row + k * 16);
            multiply_add(sums[0], x[k], right[0], right[1]);
            multiply_add(sums[1], x[k], right[2], right[3]);
        }
    }
};

// Weighted sums of rows, one for each row of a warp.
struct Sums {
    Sum x[COLUMNS / 8];

    DEVICE void clear() {
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) x[k][i] = 0.0f;
    }

    // Adds 16 rows of a tile with the given weights, from row `first` on.
    DEVICE void add(const Sum (&weights)[2], const Tile& tile, u32 first) {
        u32 lane = threadIdx.x % WARP;
        const F16* row = &tile[first + lane % 16][lane / 16 * 8];
        Left left = {to_halves(weights[0][0], weights[0][1]), to_halves(weights[0][2], weights[0][3]),
                     to_halves(weights[1][0], weights[1][1]), to_halves(weights[1][2], weights[1][3])};
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k += 2) {
            u32 right[4];
            load_transposed(right, row + k * 8);
            multiply_add(x[k], left, right[0], right[1]);
            multiply_add(x[k + 1], left, right[2], right[3]);
        }
    }

    DEVICE void scale(u32 half, float factor) {
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k++) {
            x[k][half * 2] *= factor;
            x[k][half * 2 + 1] *= factor;
        }
    }

    // Calls with(r, d, pair) for the sums of this lane: columns d and d + 1 of row r of the block, which has `count` rows.
    template <class With>
    DEVICE void for_each(Lane lane, u32 count, With with) const {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            if (lane.row(half) >= count) continue;
#pragma unroll
            for (u32 k = 0; k < COLUMNS / 8; k++) {
                float2 pair = {x[k][half * 2], x[k][half * 2 + 1]};
                with(lane.row(half), k * 8 + lane.t * 2, pair);
            }
        }
    }
};

// Writes columns d and d + 1 of the row of a head that begins at `start`.
template <class T, class Convert>
DEVICE void store_pair(Span<T> out, u64 start, u32 d, float2 pair, Convert convert) {
    struct __align__(2 * sizeof(T)) Two {
        T x, y;
    };
    if (HEAD_SIZE % 2 == 0) {
        if (d < HEAD_SIZE) *(Two*)&out[start + d] = {convert(pair.x), convert(pair.y)};
    } else {
        if (d < HEAD_SIZE) out[start + d] = convert(pair.x);
        if (d + 1 < HEAD_SIZE) out[start + d + 1] = convert(pair.y);
    }
}

// The rows of a tile on their way from global to shared memory.
typedef Quads<COLUMNS, N_WARPS * WARP, TILE> TileQuads;

DEVICE void store_tile(const TileQuads& quads, Tile& tile, float scale) {
    struct __align__(8) Four {
        u32 low, high;
    };
    quads.for_each([&](u32 r, u32 d, float4 quad) {
        *(Four*)&tile[r][d] = {to_halves(quad.x * scale, quad.y * scale), to_halves(quad.z * scale, quad.w * scale)};
    });
}

// The bits of the weights of `row`, a row of the batch, for keys 32 `word` and the next 31: 1 where dropout keeps them.
DEVICE u32 dropout_word(const Heads& heads, u64 row, u32 word) {
    return word < heads.n_words ? heads.dropout_bits[value_at(row) * heads.n_words + word] : 0xffffffffu;
}

// The bits of the weights of the two queries of a lane, for the keys of a tile and of the next tile.
struct DropoutWords {
    u32 words[2], next[2];

    DEVICE void load(const Heads& heads, Lane lane, u32 count, u32 first, u32 from) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 r = lane.row(half);
            next[half] = r < count ? dropout_word(heads, first + r, from / TILE) : 0;
        }
    }

    DEVICE void advance() {
        words[0] = next[0];
        words[1] = next[1];
    }

    // True if dropout keeps the weight of key `key` + 2 t of the tile.
    DEVICE bool keeps(u32 half, Lane lane, u32 key) const { return words[half] >> (2 * lane.t) >> key & 1; }
};
