// Attention over packed rows on tensor cores. It computes the same as attention.cu, but products read tf32: the
// significands of queries, keys, values, probabilities and gradients are rounded to eleven bits. Sums and the
// softmax are in f32.
//
// A warp works on 16 rows of the block; in the forward pass and for the gradient of queries these are queries, for the
// gradients of keys and values they are keys. The block goes through the rows of the other side in tiles of TILE rows.
// While it works on one tile, the next one is on its way from global memory.
//
// One instruction multiplies 16 x 8 by 8 x 8. Lane 4 g + t holds elements (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
// of the left matrix, (t, g), (t + 4, g) of the right matrix, and (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
// of the sum. The columns of a left matrix and the rows of a right one can be taken in any order, and so can the columns
// of a right matrix and of the sum. The orders here let a lane read and write four neighbours at once:
// - Of each 32 columns of a head, lane t holds columns 8 t to 8 t + 7 in the left matrix and in the sum.
// - Scores become the left matrix of the next product if their columns 2 t and 2 t + 1 take the places t and t + 4.

const u32 N_WARPS = 4;
const u32 ROWS = 16;
const u32 OWN = N_WARPS * ROWS;
const u32 TILE = 32;  // a word has a bit for each row of a tile
// The columns of a head, filled up to parts of 32.
const u32 PARTS = (HEAD_SIZE + 31) / 32;
const u32 COLUMNS = PARTS * 32;
// With this stride the lanes of a warp read from different banks of shared memory, along rows and across them.
const u32 STRIDE = COLUMNS + 4;
// The next tile is loaded early where registers and shared memory have room for it.
const bool LOADS_EARLY = COLUMNS <= 64;
const u32 BUFFERS = LOADS_EARLY ? 2 : 1;
// The rows of a tile that the backward pass works on at once, in groups of 8.
const u32 AT_ONCE = LOADS_EARLY ? 2 : 1;
const float LOG2_OF_E = 1.44269504f;

typedef float Sum[4];
typedef float Tile[TILE][STRIDE];

struct __align__(16) Tiles {
    Tile x[2];
};

#if BF16 && !defined(EMULATED)
// Rounds to eleven bits: 4097 x is 2^12 x + x, so that the difference to it loses the lower bits of x.
DEVICE float to_tf32(float x) {
    float large = __fmul_rn(x, 4097.0f);
    return __fadd_rn(large, __fsub_rn(x, large));
}

// As `to_tf32` for numbers that are not NaN, in one instruction: products ignore the bits that are left.
DEVICE float finite_to_tf32(float x) { return __uint_as_float(__float_as_uint(x) + 0x1000u); }

// sum += left right
DEVICE void multiply_add(float (&sum)[4], const float (&left)[4], float right_0, float right_1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
          "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right_0)), "r"(__float_as_uint(right_1)));
}
#elif !defined(EMULATED)
// With f32 precision these kernels are not used, and the GPU may be too old for these instructions.
DEVICE float to_tf32(float x) { return x; }
DEVICE float finite_to_tf32(float x) { return x; }
DEVICE void multiply_add(float (&)[4], const float (&)[4], float, float) { __trap(); }
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

// The 16 rows of a warp as the left matrix of products.
struct LeftRows {
    float x[COLUMNS / 8][4];

    // Row r of the block begins at start(r); it has `count` rows. Other rows are zeros.
    template <class Start>
    DEVICE void load(Lane lane, u32 count, Span<const float> from, Start start) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 r = lane.row(half);
#pragma unroll
            for (u32 k = 0; k < COLUMNS / 8; k += 2) {
                float4 quad = {0.0f, 0.0f, 0.0f, 0.0f};
                if (r < count) quad = load_quad(from, start(r), k / 4 * 32 + lane.t * 8 + k % 4 * 2);
                x[k][half] = to_tf32(quad.x);
                x[k][half + 2] = to_tf32(quad.y);
                x[k + 1][half] = to_tf32(quad.z);
                x[k + 1][half + 2] = to_tf32(quad.w);
            }
        }
    }

    // The products of the rows of this warp with 8 N rows of a tile, from row `first` on.
    template <u32 N>
    DEVICE void multiply(Sum (&sums)[N], const Tile& tile, u32 first, Lane lane) const {
#pragma unroll
        for (u32 n = 0; n < N; n++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) sums[n][i] = 0.0f;
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k += 2)
#pragma unroll
            for (u32 n = 0; n < N; n++) {
                float4 right = *(const float4*)&tile[first + n * 8 + lane.g][k / 4 * 32 + lane.t * 8 + k % 4 * 2];
                multiply_add(sums[n], x[k], right.x, right.y);
                multiply_add(sums[n], x[k + 1], right.z, right.w);
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

    // Adds 8 rows of a tile with the given weights, from row `first` on.
    DEVICE void add(const Sum& weights, const Tile& tile, u32 first, Lane lane) {
        // Where a weight is NaN, so are the softmax denominator and the loss, which are not rounded.
        Sum left = {finite_to_tf32(weights[0]), finite_to_tf32(weights[2]), finite_to_tf32(weights[1]),
                    finite_to_tf32(weights[3])};
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k += 4) {
            float4 even = *(const float4*)&tile[first + 2 * lane.t][k * 8 + lane.g * 4];
            float4 odd = *(const float4*)&tile[first + 2 * lane.t + 1][k * 8 + lane.g * 4];
            multiply_add(x[k], left, even.x, odd.x);
            multiply_add(x[k + 1], left, even.y, odd.y);
            multiply_add(x[k + 2], left, even.z, odd.z);
            multiply_add(x[k + 3], left, even.w, odd.w);
        }
    }

    DEVICE void scale(u32 half, float factor) {
#pragma unroll
        for (u32 k = 0; k < COLUMNS / 8; k++) {
            x[k][half * 2] *= factor;
            x[k][half * 2 + 1] *= factor;
        }
    }

    // Calls with(r, d, quad) for the sums of this lane: columns d to d + 3 of row r of the block, which has `count` rows.
    template <class With>
    DEVICE void for_each(Lane lane, u32 count, With with) const {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            if (lane.row(half) >= count) continue;
#pragma unroll
            for (u32 k = 0; k < COLUMNS / 8; k += 4)
#pragma unroll
                for (u32 i = 0; i < 2; i++) {
                    u32 at = half * 2 + i;
                    float4 quad = {x[k][at], x[k + 1][at], x[k + 2][at], x[k + 3][at]};
                    with(lane.row(half), k * 8 + lane.t * 8 + i * 4, quad);
                }
        }
    }
};

// Writes columns d to d + 3 of the row of a head that begins at `start`.
template <class T, class Convert>
DEVICE void store_quad(Span<T> out, u64 start, u32 d, float4 quad, Convert convert) {
    struct __align__(4 * sizeof(T)) Four {
        T x, y, z, w;
    };
    if (HEAD_SIZE % 4 == 0) {
        if (d < HEAD_SIZE) *(Four*)&out[start + d] = {convert(quad.x), convert(quad.y), convert(quad.z), convert(quad.w)};
    } else {
        if (d < HEAD_SIZE) out[start + d] = convert(quad.x);
        if (d + 1 < HEAD_SIZE) out[start + d + 1] = convert(quad.y);
        if (d + 2 < HEAD_SIZE) out[start + d + 2] = convert(quad.z);
        if (d + 3 < HEAD_SIZE) out[start + d + 3] = convert(quad.w);
    }
}

// The rows of a tile on their way from global to shared memory.
typedef Quads<COLUMNS, N_WARPS * WARP, TILE> TileQuads;

DEVICE void store_tile(const TileQuads& quads, Tile& tile) {
    quads.store(tile, [](float value) { return to_tf32(value); });
}

// The bits of the weights of `row`, a row of the batch, for keys 32 `word` and the next 31: 1 where dropout keeps them.
DEVICE u32 kept_word(const Heads& heads, u64 row, u32 word) {
    return word < heads.n_words ? heads.kept[value_at(row) * heads.n_words + word] : 0xffffffffu;
}

// Computes those bits for all layers. One thread for each word, one block in y for each layer.
KERNEL tensor_attention_kept(u64 key, u32 site, u32 threshold, Span<const Place> places, Span<u32> kept, u32 n_words) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x, value = at / n_words;
    if (value >= places.len * N_HEADS) return;
    Place place = places[value / N_HEADS];
    Drop drop = {mix(key ^ ((u64)blockIdx.y << 8 | site)), threshold, 1.0f};
    RowMask mask = row_mask(drop, place.sentence, (u64)place.position * N_HEADS + value % N_HEADS);
    u32 first = at % n_words * 32, bits = 0;
#pragma unroll 8
    for (u32 i = 0; i < 32; i++) bits |= (u32)mask.keeps(first + i) << i;
    kept[blockIdx.y * places.len * N_HEADS * n_words + at] = bits;
}

// The bits of the weights of the two queries of a lane, for the keys of a tile and of the next tile.
struct KeptWords {
    u32 words[2], next[2];

    DEVICE void load(const Heads& heads, Lane lane, u32 count, u32 first, u32 from) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 r = lane.row(half);
            next[half] = r < count ? kept_word(heads, first + r, from / TILE) : 0;
        }
    }

    DEVICE void advance() {
        words[0] = next[0];
        words[1] = next[1];
    }

    // True if dropout keeps the weight of key `key` + 2 t of the tile.
    DEVICE bool has(u32 half, Lane lane, u32 key) const { return words[half] >> (2 * lane.t) >> key & 1; }
};

// Goes through rows `from` to `end` of the other side in pairs of tiles. load(i, from) starts to read tile i of the pair
// that begins at row `from`, store(i, buffer) writes it to shared memory, use(buffer, from) works on the pair.
template <class Load, class Store, class Use>
DEVICE void for_each_tile(u32 from, u32 end, Load load, Store store, Use use) {
    for (u32 i = 0; i < 2; i++) load(i, from), store(i, 0);
    for (u32 buffer = 0; from < end; from += TILE) {
        u32 next = from + TILE;
        __syncthreads();
        if (LOADS_EARLY) {
            if (next < end) load(0, next), load(1, next);
            use(buffer, from);
            buffer = 1 - buffer;
            if (next < end) store(0, buffer), store(1, buffer);
        } else {
            use(buffer, from);
            __syncthreads();
            for (u32 i = 0; i < 2 && next < end; i++) load(i, next), store(i, buffer);
        }
    }
}

KERNEL __launch_bounds__(N_WARPS * WARP, COLUMNS <= 64 ? 3 : 2) tensor_attention_forward(Heads heads, Span<const Task> tasks, Span<product_t> context, Span<float> plain,
                              Span<float> log_sums) {
    __shared__ Tiles tiles[BUFFERS];
    Task task = tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    LeftRows queries;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); });
    float largest[2], total[2], scale = heads.scale * LOG2_OF_E;
    Sums sums;
    sums.clear();
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        largest[half] = -INFINITY;
        total[half] = 0.0f;
    }
    u32 end = heads.end_seen(task, n_queries);
    TileQuads quads[2];
    KeptWords kept;
    auto load = [&](u32 i, u32 from) {
        u64 row = task.start + from;
        quads[i].load(min(TILE, end - from), heads.qkv, [&](u32 r) { return heads.at(row + r, 1 + i); });
        if (i == 0) kept.load(heads, lane, n_queries, first, from);
    };
    auto store = [&](u32 i, u32 buffer) {
        store_tile(quads[i], tiles[buffer].x[i]);
        if (i == 0) kept.advance();
    };
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_queries) return;
        auto &keys = tiles[buffer].x[0], &values = tiles[buffer].x[1];
        Sum scores[TILE / 8];
        queries.multiply(scores, keys, 0, lane);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (u32 at = 0; at < TILE / 4; at++) {
                float& score = scores[at / 2][half * 2 + at % 2];
                u32 key = from + at / 2 * 8 + 2 * lane.t + at % 2;
                bool is_seen = key < end && heads.sees(task.first + lane.row(half), key);
                if (!is_seen) score = -INFINITY;
                most = fmaxf(most, score);
            }
            most = row_max(most);
            float shrink = power_of_2((largest[half] - most) * scale);
#if WINDOWED
            // The query may see no key up to this tile.
            if (most == -INFINITY) shrink = 1.0f;
#endif
            largest[half] = most;
            total[half] *= shrink;
#pragma unroll
            for (u32 at = 0; at < TILE / 4; at++) {
                float& score = scores[at / 2][half * 2 + at % 2];
#if WINDOWED
                float p = score == -INFINITY ? 0.0f : power_of_2(score * scale - most * scale);
#else
                float p = power_of_2(score * scale - most * scale);
#endif
                total[half] += p;
                score = p;
            }
            sums.scale(half, shrink);
        }
#pragma unroll
        for (u32 at = 0; at < TILE / 2; at++) {
            u32 n = at / 4, i = at % 4;
            if (!kept.has(i / 2, lane, n * 8 + i % 2)) scores[n][i] = 0.0f;
        }
#pragma unroll
        for (u32 n = 0; n < TILE / 8; n++) sums.add(scores[n], values, n * 8, lane);
    });
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        total[half] = row_sum(total[half]);
        u32 r = lane.row(half);
        if (lane.t == 0 && r < n_queries) log_sums[value_at(first + r)] = largest[half] * heads.scale + logf(total[half]);
        sums.scale(half, heads.drop.scale / total[half]);
    }
    sums.for_each(lane, n_queries, [&](u32 r, u32 d, float4 quad) {
        u64 start = head_at(first + r);
        store_quad(context, start, d, quad, [](float value) { return to_product(value); });
        if (!plain.is_empty()) store_quad(plain, start, d, quad, [](float value) { return value; });
    });
}

// What the backward pass needs of a query.
struct __align__(8) Query {
    float mean;     // the mean gradient of its scores
    float log_sum;  // the logarithm of its softmax denominator, to base 2
};

// The query of a row without a sentence: all its probabilities are 0.
DEVICE Query no_query() { return {0.0f, INFINITY}; }

// The inputs of the backward pass.
struct Backward {
    Heads heads;
    Span<const Task> tasks;
    Span<const Query> queries;  // [rows, heads]
    Span<const float> d_context;
};

// Prepares the backward pass. One warp for each head of each row.
KERNEL tensor_attention_queries(Span<const float> context, Span<const float> d_context, Span<const float> log_sums,
                                Span<Query> queries) {
    u64 at = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / WARP, start = at * HEAD_SIZE;
    if (at >= queries.len) return;
    u32 lane = threadIdx.x % WARP;
    float sum = 0.0f;
    for (u32 d = lane; d < HEAD_SIZE; d += WARP) sum += d_context[start + d] * context[start + d];
    sum = warp_sum(sum);
    if (lane == 0) queries[at] = {sum, log_sums[at] * LOG2_OF_E};
}

// The tiles of the backward pass, and the queries of a tile.
struct Shared {
    Tiles tiles[BUFFERS];
    Query queries[BUFFERS][TILE];
    u32 kept[BUFFERS][TILE][OWN / 32];
};

// The probability of a score; `scale` is that of scores to base 2. A probability above 1 is a rounding error, or that of a
// key after the end of the sentence, whose row is zero.
DEVICE float probability(float score, float scale, bool is_seen, Query query) {
    float p = power_of_2(fminf(score * scale - query.log_sum, 0.0f));
    return is_seen ? p : 0.0f;
}

// Writes the sums of the rows of a warp, times `scale`: the gradients of queries (which = 0), keys (1) or values (2). With
// ROTARY set, turns the gradients of queries and keys back by the angles of their positions; `tiles` is shared memory that
// is no longer needed.
DEVICE void write_gradient(Sums& sums, float scale, const Heads& heads, Task task, Lane lane, u32 count, u32 which,
                           Tiles& tiles, Span<product_t> d_qkv) {
    u32 first = task.start + task.first;
    for (u32 half = 0; half < 2; half++) sums.scale(half, scale);
#if ROTARY
    static_assert(OWN <= 2 * TILE, "the rows of a block fit into two tiles");
    if (which < 2) {
        float(*rows)[STRIDE] = tiles.x[0];
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float4 quad) { *(float4*)&rows[r][d] = quad; });
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float4 quad) {
            auto turned = [&](u32 column, float value) {
                if (column >= HEAD_SIZE) return 0.0f;
                float angle = (float)(task.first + r) * heads.frequencies[column % HALF_HEAD];
                float other = column < HALF_HEAD ? rows[r][column + HALF_HEAD] : -rows[r][column - HALF_HEAD];
                return value * cosf(angle) + other * sinf(angle);
            };
            quad = {turned(d, quad.x), turned(d + 1, quad.y), turned(d + 2, quad.z), turned(d + 3, quad.w)};
            store_quad(d_qkv, heads.at(first + r, which), d, quad, [](float value) { return to_product(value); });
        });
        return;
    }
#endif
    sums.for_each(lane, count, [&](u32 r, u32 d, float4 quad) {
        store_quad(d_qkv, heads.at(first + r, which), d, quad, [](float value) { return to_product(value); });
    });
}

// Computes the gradients of queries.
DEVICE void tensor_queries_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    float scale = heads.scale * LOG2_OF_E;
    LeftRows queries, d_contexts;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); });
    d_contexts.load(lane, n_queries, in.d_context,
                    [&](u32 r) { return head_at((u64)first + r); });
    Query own[2];
    Sums sums;
    sums.clear();
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 r = lane.row(half);
        own[half] = r < n_queries ? in.queries[value_at((u64)first + r)] : no_query();
    }
    u32 end = heads.end_seen(task, n_queries);
    TileQuads quads[2];
    KeptWords kept;
    auto load = [&](u32 i, u32 from) {
        u64 row = task.start + from;
        quads[i].load(min(TILE, end - from), heads.qkv, [&](u32 r) { return heads.at(row + r, 1 + i); });
        if (i == 0) kept.load(heads, lane, n_queries, first, from);
    };
    auto store = [&](u32 i, u32 buffer) {
        store_tile(quads[i], shared.tiles[buffer].x[i]);
        if (i == 0) kept.advance();
    };
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_queries) return;
        auto &keys = shared.tiles[buffer].x[0], &values = shared.tiles[buffer].x[1];
#pragma unroll AT_ONCE
        for (u32 row = 0; row < TILE; row += AT_ONCE * 8) {
            if (from + row >= end) return;
            Sum scores[AT_ONCE], slopes[AT_ONCE];
            queries.multiply(scores, keys, row, lane);
            d_contexts.multiply(slopes, values, row, lane);
#pragma unroll
            for (u32 at = 0; at < AT_ONCE * 4; at++) {
                u32 n = at / 4, i = at % 4, half = i / 2, key = from + row + n * 8 + 2 * lane.t + i % 2;
                bool is_seen = heads.sees(task.first + lane.row(half), key);
                bool is_kept = kept.has(half, lane, row + n * 8 + i % 2);
                float slope = is_kept ? slopes[n][i] * heads.drop.scale : 0.0f;
                scores[n][i] =
                    probability(scores[n][i], scale, is_seen, own[half]) * (slope - own[half].mean);
            }
#pragma unroll
            for (u32 n = 0; n < AT_ONCE; n++) sums.add(scores[n], keys, row + n * 8, lane);
        }
    });
    write_gradient(sums, heads.scale, heads, task, lane, n_queries, 0, shared.tiles[0], d_qkv);
}

// Computes the gradients of keys and values.
DEVICE void tensor_keys_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_keys = min(OWN, task.length - task.first), first = task.start + task.first;
    float scale = heads.scale * LOG2_OF_E;
    LeftRows keys, values;
    keys.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 1); });
    values.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 2); });
    Sums d_keys, d_values;
    d_keys.clear();
    d_values.clear();
    u32 end = heads.end_seen(task, n_keys);
    TileQuads quads[2];
    Query query;
    u32 words[OWN / 32];
    auto load = [&](u32 i, u32 from) {
        u32 count = min(TILE, end - from);
        u64 row = task.start + from;
        if (i == 0) {
            quads[i].load(count, heads.qkv, [&](u32 r) { return heads.at(row + r, 0); });
            u32 r = threadIdx.x;
            query = r < count ? in.queries[value_at(row + r)] : no_query();
#pragma unroll
            for (u32 w = 0; w < OWN / 32; w++)
                words[w] = r < count ? kept_word(heads, row + r, task.first / 32 + w) : 0;
        } else {
            quads[i].load(count, in.d_context, [&](u32 r) { return head_at(row + r); });
        }
    };
    auto store = [&](u32 i, u32 buffer) {
        store_tile(quads[i], shared.tiles[buffer].x[i]);
        if (i == 0 && threadIdx.x < TILE) {
            shared.queries[buffer][threadIdx.x] = query;
#pragma unroll
            for (u32 w = 0; w < OWN / 32; w++) shared.kept[buffer][threadIdx.x][w] = words[w];
        }
    };
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_keys) return;
        auto &queries = shared.tiles[buffer].x[0], &d_contexts = shared.tiles[buffer].x[1];
#pragma unroll AT_ONCE
        for (u32 row = 0; row < TILE; row += AT_ONCE * 8) {
            if (from + row >= end) return;
            Sum scores[AT_ONCE], slopes[AT_ONCE];
            keys.multiply(scores, queries, row, lane);
            values.multiply(slopes, d_contexts, row, lane);
#pragma unroll
            for (u32 at = 0; at < AT_ONCE * 4; at++) {
                u32 n = at / 4, i = at % 4, r = row + n * 8 + 2 * lane.t + i % 2, key = task.first + lane.row(i / 2);
                Query query = shared.queries[buffer][r];
                bool is_seen = heads.sees(from + r, key);
                bool is_kept = shared.kept[buffer][r][lane.first / 32] >> (lane.row(i / 2) % 32) & 1;
                float slope = is_kept ? slopes[n][i] * heads.drop.scale : 0.0f;
                float p = probability(scores[n][i], scale, is_seen, query);
                scores[n][i] = p * (slope - query.mean);
                slopes[n][i] = is_kept ? p : 0.0f;
            }
#pragma unroll
            for (u32 n = 0; n < AT_ONCE; n++) {
                d_values.add(slopes[n], d_contexts, row + n * 8, lane);
                d_keys.add(scores[n], queries, row + n * 8, lane);
            }
        }
    });
    write_gradient(d_keys, heads.scale, heads, task, lane, n_keys, 1, shared.tiles[0], d_qkv);
    write_gradient(d_values, heads.drop.scale, heads, task, lane, n_keys, 2, shared.tiles[0], d_qkv);
}

// Computes the gradients of keys and values in the blocks with z = 0, and those of queries in the blocks with z = 1. The
// first take longer, so they start first.
KERNEL tensor_attention_backward(Backward in, Span<product_t> d_qkv) {
    __shared__ Shared shared;
    if (blockIdx.z == 0) {
        tensor_keys_backward(in, shared, d_qkv);
    } else {
        tensor_queries_backward(in, shared, d_qkv);
    }
}
