// Attention over packed rows on tensor cores, for long sentences. It computes the same as attention.cu, but products read
// tf32: the significands of queries, keys, values, probabilities and gradients are rounded to eleven bits. Sums and the
// softmax are in f32.
//
// A warp works on 16 rows of the block; in the forward pass and for the gradient of queries these are queries, for the
// gradients of keys and values they are keys. The block goes through the rows of the other side in tiles of TILE rows.
//
// One instruction multiplies 16 x 8 by 8 x 8. Lane 4 g + t holds elements (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
// of the left matrix, (t, g), (t + 4, g) of the right matrix, and (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
// of the sum. The columns of a left matrix and the rows of a right one can be taken in any order. So the lane's part of a
// sum of scores becomes its part of the left matrix of the next product if columns 2 t and 2 t + 1 of the scores take the
// places t and t + 4.

const u32 N_WARPS = 4;
const u32 ROWS = 16;
const u32 OWN = N_WARPS * ROWS;
const u32 TILE = 32;
// The columns of a head in groups of 8.
const u32 GROUPS = (HEAD_SIZE + 7) / 8;
// With this stride the lanes of a warp read from different banks of shared memory, along rows and across them.
const u32 STRIDE = GROUPS * 8 + 4;

typedef float Sum[4];
typedef float Tile[TILE][STRIDE];

struct __align__(16) Tiles {
    Tile x[2];
};

#if BF16 && !defined(EMULATED)
DEVICE float to_tf32(float x) {
    u32 bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

// sum += left right
DEVICE void multiply_add(float (&sum)[4], const float (&left)[4], float right_0, float right_1) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
          "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right_0)), "r"(__float_as_uint(right_1)));
}
#elif !defined(EMULATED)
// With f32 precision these kernels are not used, and the GPU may be too old for these instructions.
DEVICE float to_tf32(float x) { return x; }
DEVICE void multiply_add(float (&)[4], const float (&)[4], float, float) { __trap(); }
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

DEVICE void clear(Sum& sum) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) sum[i] = 0.0f;
}

// The 16 rows of a warp as the left matrix of products.
struct LeftRows {
    float x[GROUPS][4];

    // Row r of the block begins at start(r); it has `count` rows. Other rows are zeros.
    template <class Start>
    DEVICE void load(Lane lane, u32 count, Span<const float> from, Start start) {
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 r = lane.row(i % 2), d = k * 8 + lane.t + i / 2 * 4;
                x[k][i] = r < count && d < HEAD_SIZE ? to_tf32(from[start(r) + d]) : 0.0f;
            }
    }

    // The products of the rows of this warp with 8 rows of a tile.
    DEVICE void multiply(Sum& sum, const Tile& tile, u32 row, Lane lane) const {
        clear(sum);
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) {
            const float* right = &tile[row + lane.g][k * 8 + lane.t];
            multiply_add(sum, x[k], right[0], right[4]);
        }
    }
};

// Weighted sums of rows, one for each row of a warp.
struct Sums {
    Sum x[GROUPS];

    DEVICE void clear_all() {
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) clear(x[k]);
    }

    // Adds 8 rows of a tile with the given weights.
    DEVICE void add(const Sum& weights, const Tile& tile, u32 row, Lane lane) {
        Sum left = {to_tf32(weights[0]), to_tf32(weights[2]), to_tf32(weights[1]), to_tf32(weights[3])};
        const float* right = &tile[row + 2 * lane.t][lane.g];
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) multiply_add(x[k], left, right[k * 8], right[k * 8 + STRIDE]);
    }

    // Calls with(r, d, value) for the values of this lane: column d of row r of the block, which has `count` rows.
    template <class With>
    DEVICE void for_each(Lane lane, u32 count, With with) const {
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 r = lane.row(i / 2), d = k * 8 + 2 * lane.t + i % 2;
                if (r < count && d < HEAD_SIZE) with(r, d, x[k][i]);
            }
    }
};

// Copies rows of one head into a tile.
template <class Start>
DEVICE void fill_tile(Tile& tile, u32 count, Span<const float> x, Start start) {
    fill<GROUPS * 8, N_WARPS * WARP>(tile, count, x, start, [](float value) { return to_tf32(value); });
}

KERNEL long_attention_forward(Heads heads, Span<const Task> tasks, Span<product_t> context, Span<float> plain,
                              Span<float> log_sums) {
    __shared__ Tiles tiles;
    auto &keys = tiles.x[0], &values = tiles.x[1];
    Task task = tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    LeftRows queries;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); });
    float largest[2], total[2];
    RowMask masks[2];
    Sums sums;
    sums.clear_all();
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        largest[half] = -INFINITY;
        total[half] = 0.0f;
        masks[half] = heads.mask(task, task.first + lane.row(half));
    }
    u32 end = heads.end_seen(task, n_queries);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill_tile(keys, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 1); });
        fill_tile(values, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 2); });
        __syncthreads();
        Sum scores[TILE / 8];
#pragma unroll
        for (u32 n = 0; n < TILE / 8; n++) queries.multiply(scores[n], keys, n * 8, lane);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (u32 at = 0; at < TILE / 4; at++) {
                float& score = scores[at / 2][half * 2 + at % 2];
                u32 key = at / 2 * 8 + 2 * lane.t + at % 2;
                bool is_seen = key < count && heads.sees(task.first + lane.row(half), from + key);
                score = is_seen ? score * heads.scale : -INFINITY;
                most = fmaxf(most, score);
            }
            most = row_max(most);
            // A query that has not seen a key yet has nothing to shrink.
            float shrink = most == -INFINITY ? 1.0f : expf(largest[half] - most);
            largest[half] = most;
            total[half] *= shrink;
#pragma unroll
            for (u32 at = 0; at < TILE / 4; at++) {
                float& score = scores[at / 2][half * 2 + at % 2];
                float p = score == -INFINITY ? 0.0f : expf(score - most);
                total[half] += p;
                score = p * masks[half].factor(from + at / 2 * 8 + 2 * lane.t + at % 2);
            }
#pragma unroll
            for (u32 k = 0; k < GROUPS; k++) {
                sums.x[k][half * 2] *= shrink;
                sums.x[k][half * 2 + 1] *= shrink;
            }
        }
#pragma unroll
        for (u32 n = 0; n < TILE / 8; n++) sums.add(scores[n], values, n * 8, lane);
    }
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        total[half] = row_sum(total[half]);
        u32 r = lane.row(half);
        u64 at = (u64)(first + r) * heads.n_heads + blockIdx.y;
        if (lane.t == 0 && r < n_queries) log_sums[at] = largest[half] + logf(total[half]);
#pragma unroll
        for (u32 k = 0; k < GROUPS; k++) {
            sums.x[k][half * 2] /= total[half];
            sums.x[k][half * 2 + 1] /= total[half];
        }
    }
    sums.for_each(lane, n_queries, [&](u32 r, u32 d, float value) {
        u64 at = (u64)(first + r) * heads.hidden() + blockIdx.y * HEAD_SIZE + d;
        context[at] = to_product(value);
        if (!plain.is_empty()) plain[at] = value;
    });
}

// The tiles of the backward pass, and what it needs of the queries of a tile.
struct Shared {
    Tiles tiles;
    float means[TILE];
    float log_sums[TILE];
    RowMask masks[TILE];
};

// The gradient of one score before the softmax, and the weight of its value.
struct ScoreGradient {
    float d_score;
    float weight;
};

// `slope` is the gradient of the weight, `mean` the mean gradient of the query's scores.
DEVICE ScoreGradient score_gradient(const Heads& heads, float score, float slope, bool is_seen, float log_sum, float mean,
                                    float factor) {
    float p = is_seen ? expf(score * heads.scale - log_sum) : 0.0f;
    return {heads.scale * p * (slope * factor - mean), p * factor};
}

// Writes the gradients of the rows of a warp: of queries (which = 0), keys (1) or values (2). With ROTARY set, turns the
// gradients of queries and keys back by the angles of their positions; `tiles` is shared memory that is no longer needed.
DEVICE void write_gradient(const Sums& sums, const Heads& heads, Task task, Lane lane, u32 count, u32 which,
                           Tiles& tiles, Span<product_t> d_qkv) {
    u32 first = task.start + task.first;
#if ROTARY
    static_assert(OWN <= 2 * TILE, "the rows of a block fit into two tiles");
    if (which < 2) {
        float(*rows)[STRIDE] = tiles.x[0];
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float value) { rows[r][d] = value; });
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float value) {
            float angle = (float)(task.first + r) * heads.frequencies[d % HALF_HEAD];
            float other = d < HALF_HEAD ? rows[r][d + HALF_HEAD] : -rows[r][d - HALF_HEAD];
            d_qkv[heads.at(first + r, which) + d] = to_product(value * cosf(angle) + other * sinf(angle));
        });
        return;
    }
#endif
    sums.for_each(lane, count, [&](u32 r, u32 d, float value) {
        d_qkv[heads.at(first + r, which) + d] = to_product(value);
    });
}

// Computes the gradients of queries.
DEVICE void long_queries_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    auto &keys = shared.tiles.x[0], &values = shared.tiles.x[1];
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    u64 column = blockIdx.y * HEAD_SIZE;
    auto start = [&](u32 r) { return (u64)(first + r) * heads.hidden() + column; };
    LeftRows queries, d_contexts;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); });
    d_contexts.load(lane, n_queries, in.d_context, start);
    float log_sum[2], mean[2];
    RowMask masks[2];
    Sums sums;
    sums.clear_all();
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 r = lane.row(half);
        float sum = 0.0f;
        if (r < n_queries)
            for (u32 d = lane.t; d < HEAD_SIZE; d += 4) sum += in.d_context[start(r) + d] * in.context[start(r) + d];
        mean[half] = row_sum(sum);
        log_sum[half] = r < n_queries ? in.log_sums[(u64)(first + r) * heads.n_heads + blockIdx.y] : 0.0f;
        masks[half] = heads.mask(task, task.first + r);
    }
    u32 end = heads.end_seen(task, n_queries);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill_tile(keys, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 1); });
        fill_tile(values, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 2); });
        __syncthreads();
#pragma unroll
        for (u32 n = 0; n < TILE / 8; n++) {
            Sum scores, slopes;
            queries.multiply(scores, keys, n * 8, lane);
            d_contexts.multiply(slopes, values, n * 8, lane);
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 half = i / 2, key = n * 8 + 2 * lane.t + i % 2;
                bool is_seen = key < count && heads.sees(task.first + lane.row(half), from + key);
                float factor = masks[half].factor(from + key);
                scores[i] =
                    score_gradient(heads, scores[i], slopes[i], is_seen, log_sum[half], mean[half], factor).d_score;
            }
            sums.add(scores, keys, n * 8, lane);
        }
    }
    write_gradient(sums, heads, task, lane, n_queries, 0, shared.tiles, d_qkv);
}

// Fills the means, sums and masks of the queries of a tile, whose first query has position `from`.
DEVICE void fill_queries(const Backward& in, Shared& shared, Task task, u32 from, u32 count) {
    const Heads& heads = in.heads;
    u32 lane = threadIdx.x % WARP;
    for (u32 r = threadIdx.x / WARP; r < count; r += N_WARPS) {
        u64 row = task.start + from + r, start = row * heads.hidden() + blockIdx.y * HEAD_SIZE;
        float sum = 0.0f;
        for (u32 d = lane; d < HEAD_SIZE; d += WARP) sum += in.d_context[start + d] * in.context[start + d];
        sum = warp_sum(sum);
        if (lane != 0) continue;
        shared.means[r] = sum;
        shared.log_sums[r] = in.log_sums[row * heads.n_heads + blockIdx.y];
        shared.masks[r] = heads.mask(task, from + r);
    }
}

// Computes the gradients of keys and values.
DEVICE void long_keys_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    auto &queries = shared.tiles.x[0], &d_contexts = shared.tiles.x[1];
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_keys = min(OWN, task.length - task.first), first = task.start + task.first;
    u64 column = blockIdx.y * HEAD_SIZE;
    LeftRows keys, values;
    keys.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 1); });
    values.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 2); });
    Sums d_keys, d_values;
    d_keys.clear_all();
    d_values.clear_all();
    u32 end = heads.end_seen(task, n_keys);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill_tile(queries, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 0); });
        fill_tile(d_contexts, count, in.d_context,
                  [&](u32 r) { return (u64)(task.start + from + r) * heads.hidden() + column; });
        fill_queries(in, shared, task, from, count);
        __syncthreads();
#pragma unroll
        for (u32 n = 0; n < TILE / 8; n++) {
            Sum scores, slopes;
            keys.multiply(scores, queries, n * 8, lane);
            values.multiply(slopes, d_contexts, n * 8, lane);
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                u32 query = n * 8 + 2 * lane.t + i % 2, key = task.first + lane.row(i / 2);
                bool is_seen = query < count && heads.sees(from + query, key);
                float log_sum = is_seen ? shared.log_sums[query] : 0.0f, mean = is_seen ? shared.means[query] : 0.0f;
                float factor = is_seen ? shared.masks[query].factor(key) : 0.0f;
                ScoreGradient found = score_gradient(heads, scores[i], slopes[i], is_seen, log_sum, mean, factor);
                scores[i] = found.d_score;
                slopes[i] = found.weight;
            }
            d_values.add(slopes, d_contexts, n * 8, lane);
            d_keys.add(scores, queries, n * 8, lane);
        }
    }
    write_gradient(d_keys, heads, task, lane, n_keys, 1, shared.tiles, d_qkv);
    write_gradient(d_values, heads, task, lane, n_keys, 2, shared.tiles, d_qkv);
}

// Computes the gradients of queries in the blocks with z = 0, and those of keys and values in the blocks with z = 1.
KERNEL long_attention_backward(Backward in, Span<product_t> d_qkv) {
    __shared__ Shared shared;
    if (blockIdx.z == 0) {
        long_queries_backward(in, shared, d_qkv);
    } else {
        long_keys_backward(in, shared, d_qkv);
    }
}
