// Attention over packed rows in f32, for models in f32 and for heads of more than 96 columns. For others,
// tensor_attention.cu computes the same. Scores are never written to global memory.
//
// A warp works on a group of GROUP rows; each of its lanes works on one row of a tile of TILE rows. In the forward pass
// and for the gradient of queries the group holds queries and the tile keys. For the gradients of keys and values the
// group holds keys and the tile queries.
//
// With WINDOWED set, a query sees only keys at a limited distance. Tiles that no row of the block sees are skipped. With
// ROTARY set, queries and keys are rotated by an angle that depends on their position.

const u32 GROUP = 4;
// Fewer warps for large heads, so that their rows fit into shared memory.
const u32 WARPS = HEAD_SIZE <= 96 ? 4 : 2;
const u32 TILE = WARP;
const u32 HEAD_PADDED = (HEAD_SIZE + 3) / 4 * 4;
// Rows start in different banks of shared memory, and at multiples of 16 bytes.
const u32 STRIDE = HEAD_PADDED + 4;
const u32 PER_HEAD_LANE = (HEAD_SIZE + WARP - 1) / WARP;

// Rows of one head in shared memory. Unused rows are zeros.
template <u32 N>
struct __align__(16) Rows {
    float x[N][STRIDE];
};

// Copies `count` rows of one head into shared memory. Row r begins at start(r).
template <u32 N, class Start>
DEVICE void fill(Rows<N>& rows, u32 count, Span<const float> x, Start start) {
    Quads<HEAD_PADDED, WARPS * WARP, N> quads;
    quads.load(count, x, start);
    quads.for_each([&](u32 r, u32 d, float4 quad) { *(float4*)&rows.x[r][d] = quad; });
}

// The dot products of one row with the GROUP rows of a group.
DEVICE void dots(const float* row, const float (*group)[STRIDE], float out[GROUP]) {
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) out[g] = 0.0f;
#pragma unroll 4
    for (u32 d = 0; d < HEAD_PADDED; d += 4) {
        float4 a = *(const float4*)(row + d);
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            float4 b = *(const float4*)(group[g] + d);
            out[g] += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
        }
    }
}

// Weighted sums of rows, one for each row of a group; each lane holds some columns.
struct Sums {
    float x[GROUP][PER_HEAD_LANE];

    DEVICE void clear() {
#pragma unroll
        for (u32 g = 0; g < GROUP; g++)
#pragma unroll
            for (u32 i = 0; i < PER_HEAD_LANE; i++) x[g][i] = 0.0f;
    }
    // x[g] += the sum over the tile of weights[g] times the tile's rows. Each lane holds the weights of one row of the
    // tile. Weights and rows from `count` on are zeros.
    DEVICE void add(const float weights[GROUP], const float (*tile)[STRIDE], u32 count, u32 lane) {
        for (u32 first = 0; first < count; first += 8) {
#pragma unroll
            for (u32 j = first; j < first + 8; j++) {
                float w[GROUP];
#pragma unroll
                for (u32 g = 0; g < GROUP; g++) w[g] = __shfl_sync(EVERY_LANE, weights[g], j);
#pragma unroll
                for (u32 i = 0; i < PER_HEAD_LANE; i++) {
                    u32 d = lane + i * WARP;
                    float row = d < HEAD_SIZE ? tile[j][d] : 0.0f;
#pragma unroll
                    for (u32 g = 0; g < GROUP; g++) x[g][i] += w[g] * row;
                }
            }
        }
    }
};

// Rotates queries and keys in place: columns d and d + HALF_HEAD of a head are a point in the plane, which is turned by
// the angle position * frequencies[d]. One block for each row.
KERNEL rotate(Span<float> qkv, Span<const float> frequencies, Span<const Place> places) {
    u64 start = (u64)blockIdx.x * 3 * HIDDEN;
    float position = (float)places[blockIdx.x].position;
    // The pairs of the queries come before those of the keys.
    for (u32 pair = threadIdx.x; pair < HIDDEN; pair += blockDim.x) {
        u32 head = pair / HALF_HEAD, d = pair % HALF_HEAD;
        u64 at = start + head * HEAD_SIZE + d;
        float angle = position * frequencies[d], x = qkv[at], y = qkv[at + HALF_HEAD];
        float cosine = cosf(angle), sine = sinf(angle);
        qkv[at] = x * cosine - y * sine;
        qkv[at + HALF_HEAD] = y * cosine + x * sine;
    }
}

#if ROTARY
// Turns gradients of rotated rows back by the angles of their positions, which start at `position`. `rows` are the rows
// of the group in shared memory, which the caller no longer needs.
DEVICE void rotate_back(Sums& sums, float (*rows)[STRIDE], const Heads& heads, u32 position, u32 lane) {
    __syncthreads();
#pragma unroll
    for (u32 g = 0; g < GROUP; g++)
#pragma unroll
        for (u32 i = 0; i < PER_HEAD_LANE; i++) {
            u32 d = lane + i * WARP;
            if (d < HEAD_SIZE) rows[g][d] = sums.x[g][i];
        }
    __syncthreads();
#pragma unroll
    for (u32 g = 0; g < GROUP; g++)
#pragma unroll
        for (u32 i = 0; i < PER_HEAD_LANE; i++) {
            u32 d = lane + i * WARP;
            if (d >= HEAD_SIZE) continue;
            float angle = (float)(position + g) * heads.frequencies[d % HALF_HEAD];
            float other = d < HALF_HEAD ? rows[g][d + HALF_HEAD] : -rows[g][d - HALF_HEAD];
            sums.x[g][i] = sums.x[g][i] * cosf(angle) + other * sinf(angle);
        }
}
#endif

// The context, as an operand of products and (for the backward pass) in f32, and the logarithm of each query's softmax
// denominator. The maximum and the denominator are updated tile by tile.
KERNEL attention_forward(Heads heads, Span<const Task> tasks, Span<product_t> context, Span<float> plain,
                         Span<float> log_sums) {
    __shared__ Rows<GROUP * WARPS> queries;
    __shared__ Rows<TILE> keys, values;
    Task task = tasks[blockIdx.x];
    u32 lane = threadIdx.x % WARP, own = threadIdx.x / WARP * GROUP;
    u32 n_queries = min(GROUP * WARPS, task.length - task.first);
    fill(queries, n_queries, heads.qkv, [&](u32 r) { return heads.at(task.start + task.first + r, 0); });
    float largest[GROUP], total[GROUP];
    RowMask masks[GROUP];
    Sums sums;
    sums.clear();
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) {
        largest[g] = -INFINITY;
        total[g] = 0.0f;
        masks[g] = heads.mask(task, task.first + own + g);
    }
    u32 end = heads.end_seen(task, n_queries);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill(keys, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 1); });
        fill(values, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 2); });
        __syncthreads();
        float scores[GROUP];
        dots(keys.x[lane], queries.x + own, scores);
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            bool is_seen = lane < count && heads.sees(task.first + own + g, from + lane);
            float score = is_seen ? scores[g] * heads.scale : -INFINITY;
            float most = fmaxf(largest[g], warp_max(score));
            float shrink = expf(largest[g] - most);
#if WINDOWED
            // The query may see no key up to this tile.
            if (most == -INFINITY) shrink = 1.0f;
#endif
            float p = is_seen ? expf(score - most) : 0.0f;
            total[g] = total[g] * shrink + warp_sum(p);
            largest[g] = most;
            scores[g] = p * masks[g].factor(from + lane);
#pragma unroll
            for (u32 i = 0; i < PER_HEAD_LANE; i++) sums.x[g][i] *= shrink;
        }
        sums.add(scores, values.x, count, lane);
    }
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) {
        if (own + g >= n_queries) continue;
        u32 row = task.start + task.first + own + g;
#pragma unroll
        for (u32 i = 0; i < PER_HEAD_LANE; i++) {
            u32 d = lane + i * WARP;
            if (d >= HEAD_SIZE) continue;
            u64 at = head_at(row) + d;
            float value = sums.x[g][i] / total[g];
            context[at] = to_product(value);
            if (!plain.is_empty()) plain[at] = value;
        }
        if (lane == 0) log_sums[value_at(row)] = largest[g] + logf(total[g]);
    }
}

// The inputs of the backward pass. The context is the f32 one: the backward pass subtracts nearly equal numbers, whose
// difference would be lost in the rounding to bf16.
struct Backward {
    Heads heads;
    Span<const Task> tasks;
    Span<const float> context;
    Span<const float> log_sums;
    Span<const float> d_context;
};

// The rows of a block in the backward pass: the group whose gradients it computes, and a tile of the other side.
struct Shared {
    Rows<GROUP * WARPS> own[2];
    Rows<TILE> tile[2];
    float means[TILE];
};

// The dot product of a row's context and its gradient: the mean gradient of its scores. Computed by one warp.
DEVICE float context_dot(const Backward& in, u64 row, const float* d_context, u32 lane) {
    u64 start = head_at(row);
    float sum = 0.0f;
    for (u32 d = lane; d < HEAD_SIZE; d += WARP) sum += d_context[d] * in.context[start + d];
    return warp_sum(sum);
}

// Computes the gradients of queries.
DEVICE void queries_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    auto &queries = shared.own[0], &d_queries = shared.own[1];
    auto &keys = shared.tile[0], &values = shared.tile[1];
    Task task = in.tasks[blockIdx.x];
    u32 lane = threadIdx.x % WARP, own = threadIdx.x / WARP * GROUP;
    u32 n_queries = min(GROUP * WARPS, task.length - task.first);
    u32 first = task.start + task.first;
    fill(queries, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); });
    fill(d_queries, n_queries, in.d_context, [&](u32 r) { return head_at(first + r); });
    __syncthreads();
    float log_sum[GROUP], mean[GROUP];
    RowMask masks[GROUP];
    Sums sums;
    sums.clear();
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) {
        bool is_row = own + g < n_queries;
        u64 row = first + own + g;
        mean[g] = is_row ? context_dot(in, row, d_queries.x[own + g], lane) : 0.0f;
        log_sum[g] = is_row ? in.log_sums[value_at(row)] : 0.0f;
        masks[g] = heads.mask(task, task.first + own + g);
    }
    u32 end = heads.end_seen(task, n_queries);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill(keys, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 1); });
        fill(values, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 2); });
        __syncthreads();
        float scores[GROUP], slopes[GROUP];
        dots(keys.x[lane], queries.x + own, scores);
        dots(values.x[lane], d_queries.x + own, slopes);
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            bool is_seen = lane < count && heads.sees(task.first + own + g, from + lane);
            float p = is_seen ? expf(scores[g] * heads.scale - log_sum[g]) : 0.0f;
            scores[g] = heads.scale * p * (slopes[g] * masks[g].factor(from + lane) - mean[g]);
        }
        sums.add(scores, keys.x, count, lane);
    }
#if ROTARY
    rotate_back(sums, queries.x + own, heads, task.first + own, lane);
#endif
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) {
        if (own + g >= n_queries) continue;
#pragma unroll
        for (u32 i = 0; i < PER_HEAD_LANE; i++) {
            u32 d = lane + i * WARP;
            if (d < HEAD_SIZE) d_qkv[heads.at(first + own + g, 0) + d] = to_product(sums.x[g][i]);
        }
    }
}

// Computes the gradients of keys and values.
DEVICE void keys_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    auto &keys = shared.own[0], &values = shared.own[1];
    auto &queries = shared.tile[0], &d_queries = shared.tile[1];
    Task task = in.tasks[blockIdx.x];
    u32 lane = threadIdx.x % WARP, own = threadIdx.x / WARP * GROUP;
    u32 n_keys = min(GROUP * WARPS, task.length - task.first);
    u32 first = task.start + task.first;
    fill(keys, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 1); });
    fill(values, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 2); });
    Sums d_keys, d_values;
    d_keys.clear();
    d_values.clear();
    u32 end = heads.end_seen(task, n_keys);
    for (u32 from = heads.first_seen(task); from < end; from += TILE) {
        u32 count = min(TILE, end - from);
        __syncthreads();
        fill(queries, count, heads.qkv, [&](u32 r) { return heads.at(task.start + from + r, 0); });
        fill(d_queries, count, in.d_context,
             [&](u32 r) { return head_at(task.start + from + r); });
        __syncthreads();
        for (u32 r = threadIdx.x / WARP; r < count; r += WARPS) {
            float mean = context_dot(in, task.start + from + r, d_queries.x[r], lane);
            if (lane == 0) shared.means[r] = mean;
        }
        __syncthreads();
        float scores[GROUP], slopes[GROUP], weights[GROUP];
        dots(queries.x[lane], keys.x + own, scores);
        dots(d_queries.x[lane], values.x + own, slopes);
        u64 row = task.start + from + lane;
        float log_sum = lane < count ? in.log_sums[value_at(row)] : 0.0f;
        float mean = lane < count ? shared.means[lane] : 0.0f;
        RowMask mask = heads.mask(task, from + lane);
#pragma unroll
        for (u32 g = 0; g < GROUP; g++) {
            bool is_seen = lane < count && heads.sees(from + lane, task.first + own + g);
            float p = is_seen ? expf(scores[g] * heads.scale - log_sum) : 0.0f;
            float factor = mask.factor(task.first + own + g);
            weights[g] = p * factor;
            scores[g] = heads.scale * p * (slopes[g] * factor - mean);
        }
        d_values.add(weights, d_queries.x, count, lane);
        d_keys.add(scores, queries.x, count, lane);
    }
#if ROTARY
    rotate_back(d_keys, keys.x + own, heads, task.first + own, lane);
#endif
#pragma unroll
    for (u32 g = 0; g < GROUP; g++) {
        if (own + g >= n_keys) continue;
#pragma unroll
        for (u32 i = 0; i < PER_HEAD_LANE; i++) {
            u32 d = lane + i * WARP;
            if (d >= HEAD_SIZE) continue;
            d_qkv[heads.at(first + own + g, 1) + d] = to_product(d_keys.x[g][i]);
            d_qkv[heads.at(first + own + g, 2) + d] = to_product(d_values.x[g][i]);
        }
    }
}

// Computes the gradients of queries in the blocks with z = 0, and those of keys and values in the blocks with z = 1.
KERNEL attention_backward(Backward in, Span<product_t> d_qkv) {
    __shared__ Shared shared;
    if (blockIdx.z == 0) {
        queries_backward(in, shared, d_qkv);
    } else {
        keys_backward(in, shared, d_qkv);
    }
}
