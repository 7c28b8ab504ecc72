// The kernels of attention on tensor cores, and the one that computes their bits of dropout. See tensor.cuh.

// Computes the bits of dropout of all layers. One thread for each word, one block in y for each layer.
KERNEL attention_dropout_bits(u64 key, u32 site, u32 threshold, Span<const Place> places, Span<u32> dropout_bits,
                              u32 n_words) {
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x, value = at / n_words;
    if (value >= places.len * N_HEADS) return;
    Place place = places[value / N_HEADS];
    Drop drop = {mix(key ^ ((u64)blockIdx.y << 8 | site)), threshold, 1.0f};
    RowMask mask = row_mask(drop, place.sentence, (u64)place.position * N_HEADS + value % N_HEADS);
    u32 first = at % n_words * 32, bits = 0;
#pragma unroll 8
    for (u32 i = 0; i < 32; i++) bits |= (u32)mask.keeps(first + i) << i;
    dropout_bits[blockIdx.y * places.len * N_HEADS * n_words + at] = bits;
}

// Goes through rows `from` to `end` of the other side in pairs of tiles. load(i, from) starts to read tile i of the pair
// that begins at row `from`, store(i, buffer) writes it to shared memory, use(buffer, from) works on the pair.
template <class Load, class Store, class Use>
DEVICE void for_each_tile(u32 from, u32 end, Load load, Store store, Use use) {
    // Registers cannot be indexed by a variable. Each tile has a constant index, so that it does not lie on the stack.
#pragma unroll
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
            if (next < end) load(0, next), store(0, buffer), load(1, next), store(1, buffer);
        }
    }
}

KERNEL __launch_bounds__(N_WARPS * WARP, COLUMNS <= 64 ? 3 : 2)
tensor_attention_forward(Heads heads, Span<const Task> tasks, Span<product_t> context, Span<float> plain,
                         Span<float> log_sums) {
    __shared__ Tiles tiles[BUFFERS];
    Task task = tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    LeftRows queries;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); }, NO_SCALES);
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
    DropoutWords dropout;
    auto load = [&](u32 i, u32 from) {
        u64 row = task.start + from;
        quads[i].load(min(TILE, end - from), heads.qkv, [&](u32 r) { return heads.at(row + r, 1 + i); });
        if (i == 0) dropout.load(heads, lane, n_queries, first, from);
    };
    auto store = [&](u32 i, u32 buffer) {
        store_tile(quads[i], tiles[buffer].x[i], 1.0f);
        if (i == 0) dropout.advance();
    };
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_queries) return;
        auto &keys = tiles[buffer].x[0], &values = tiles[buffer].x[1];
        Sum scores[TILE / 16][2];
#pragma unroll
        for (u32 n = 0; n < TILE / 16; n++) queries.multiply(scores[n], keys, n * 16);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            float most = largest[half];
#pragma unroll
            for (u32 at = 0; at < TILE / 4; at++) {
                float& score = scores[at / 4][at / 2 % 2][half * 2 + at % 2];
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
                float& score = scores[at / 4][at / 2 % 2][half * 2 + at % 2];
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
            if (!dropout.keeps(i / 2, lane, n * 8 + i % 2)) scores[n / 2][n % 2][i] = 0.0f;
        }
#pragma unroll
        for (u32 n = 0; n < TILE / 16; n++) sums.add(scores[n], values, n * 16);
    });
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        total[half] = row_sum(total[half]);
        u32 r = lane.row(half);
        if (lane.t == 0 && r < n_queries) log_sums[value_at(first + r)] = largest[half] * heads.scale + logf(total[half]);
        sums.scale(half, heads.drop.scale / total[half]);
    }
    sums.for_each(lane, n_queries, [&](u32 r, u32 d, float2 pair) {
        u64 start = head_at(first + r);
        store_pair(context, start, d, pair, [](float value) { return to_product(value); });
        if (!plain.is_empty()) store_pair(plain, start, d, pair, [](float value) { return value; });
    });
}

// What the backward pass needs of a query.
struct __align__(16) Query {
    float mean;     // the mean gradient of its scores
    float log_sum;  // the logarithm of its softmax denominator, to base 2
    float largest;  // the largest gradient in its context, without its sign
    u32 unused;
};

// The query of a row after the end of the sentence: all its probabilities are 0.
DEVICE Query no_query() { return {0.0f, INFINITY, 0.0f, 0}; }

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
    float sum = 0.0f, largest = 0.0f;
    for (u32 d = lane; d < HEAD_SIZE; d += WARP) {
        float gradient = d_context[start + d];
        sum += gradient * context[start + d];
        largest = fmaxf(largest, fabsf(gradient));
    }
    sum = warp_sum(sum);
    largest = warp_max(largest);
    if (lane == 0) queries[at] = {sum, log_sums[at] * LOG2_OF_E, largest, 0};
}

// The power of 2 that brings the largest of some gradients to at least 1 and below 2; 1 if the exponent is extreme.
DEVICE float scale_of(float largest) {
    u32 exponent = __float_as_uint(largest) >> 23;
    return exponent < 8 || exponent > 246 ? 1.0f : __uint_as_float((254 - exponent) << 23);
}

// The tiles of the backward pass, and the queries of a tile.
struct Shared {
    union {
        Tiles tiles[BUFFERS];
        // The gradients of a block, to turn them back.
        float rows[ROTARY ? OWN : 1][COLUMNS + 4];
    };
    Query queries[BUFFERS][TILE];
    u32 dropout_words[BUFFERS][TILE][OWN / 32];
};

// The probability of a score; `scale` is that of scores to base 2. A probability above 1 is a rounding error, or that of a
// key after the end of the sentence, whose row is zero.
DEVICE float probability(float score, float scale, bool is_seen, float log_sum) {
    float p = power_of_2(fminf(score * scale - log_sum, 0.0f));
    return is_seen ? p : 0.0f;
}

// Writes the gradients of the rows of a warp: of queries (which = 0), keys (1) or values (2). With ROTARY set, turns the
// gradients of queries and keys back by the angles of their positions.
DEVICE void write_gradient(const Sums& sums, const Heads& heads, Task task, Lane lane, u32 count, u32 which, Shared& shared,
                           Span<product_t> d_qkv) {
    u32 first = task.start + task.first;
#if ROTARY
    if (which < 2) {
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float2 pair) { *(float2*)&shared.rows[r][d] = pair; });
        __syncthreads();
        sums.for_each(lane, count, [&](u32 r, u32 d, float2 pair) {
            auto turned = [&](u32 column, float value) {
                if (column >= HEAD_SIZE) return 0.0f;
                float angle = (float)(task.first + r) * heads.frequencies[column % HALF_HEAD];
                const float* row = shared.rows[r];
                float other = column < HALF_HEAD ? row[column + HALF_HEAD] : -row[column - HALF_HEAD];
                return value * cosf(angle) + other * sinf(angle);
            };
            pair = {turned(d, pair.x), turned(d + 1, pair.y)};
            store_pair(d_qkv, heads.at(first + r, which), d, pair, [](float value) { return to_product(value); });
        });
        return;
    }
#endif
    sums.for_each(lane, count, [&](u32 r, u32 d, float2 pair) {
        store_pair(d_qkv, heads.at(first + r, which), d, pair, [](float value) { return to_product(value); });
    });
}

// Computes the gradients of queries.
DEVICE void tensor_queries_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_queries = min(OWN, task.length - task.first), first = task.start + task.first;
    float scale = heads.scale * LOG2_OF_E, gradient_scales[2], means[2], log_sums[2];
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        u32 r = lane.row(half);
        Query query = r < n_queries ? in.queries[value_at((u64)first + r)] : no_query();
        gradient_scales[half] = scale_of(query.largest);
        means[half] = query.mean * gradient_scales[half] * SCORE_SCALE;
        log_sums[half] = query.log_sum;
    }
    LeftRows queries, d_contexts;
    queries.load(lane, n_queries, heads.qkv, [&](u32 r) { return heads.at(first + r, 0); }, NO_SCALES);
    d_contexts.load(lane, n_queries, in.d_context, [&](u32 r) { return head_at((u64)first + r); }, gradient_scales);
    Sums sums;
    sums.clear();
    u32 end = heads.end_seen(task, n_queries);
    TileQuads quads[2];
    DropoutWords dropout;
    auto load = [&](u32 i, u32 from) {
        u64 row = task.start + from;
        quads[i].load(min(TILE, end - from), heads.qkv, [&](u32 r) { return heads.at(row + r, 1 + i); });
        if (i == 0) dropout.load(heads, lane, n_queries, first, from);
    };
    auto store = [&](u32 i, u32 buffer) {
        store_tile(quads[i], shared.tiles[buffer].x[i], 1.0f);
        if (i == 0) dropout.advance();
    };
    float slope_scale = heads.drop.scale * SCORE_SCALE;
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_queries) return;
        auto &keys = shared.tiles[buffer].x[0], &values = shared.tiles[buffer].x[1];
#pragma unroll
        for (u32 row = 0; row < TILE; row += 16) {
            if (from + row >= end) return;
            Sum scores[2], slopes[2];
            queries.multiply(scores, keys, row);
            d_contexts.multiply(slopes, values, row);
#pragma unroll
            for (u32 at = 0; at < 8; at++) {
                u32 n = at / 4, i = at % 4, half = i / 2, key = row + n * 8 + i % 2;
                bool is_seen = heads.sees(task.first + lane.row(half), from + key + 2 * lane.t);
                float slope = dropout.keeps(half, lane, key) ? slopes[n][i] * slope_scale : 0.0f;
                scores[n][i] = probability(scores[n][i], scale, is_seen, log_sums[half]) * (slope - means[half]);
            }
            sums.add(scores, keys, row);
        }
    });
#pragma unroll
    for (u32 half = 0; half < 2; half++) sums.scale(half, heads.scale / (gradient_scales[half] * SCORE_SCALE));
    write_gradient(sums, heads, task, lane, n_queries, 0, shared, d_qkv);
}

// Computes the gradients of keys and values.
DEVICE void tensor_keys_backward(const Backward& in, Shared& shared, Span<product_t> d_qkv) {
    Heads heads = in.heads;
    Task task = in.tasks[blockIdx.x];
    Lane lane = lane_of_thread();
    u32 n_keys = min(OWN, task.length - task.first), first = task.start + task.first;
    float scale = heads.scale * LOG2_OF_E;
    LeftRows keys, values;
    keys.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 1); }, NO_SCALES);
    values.load(lane, n_keys, heads.qkv, [&](u32 r) { return heads.at(first + r, 2); }, NO_SCALES);
    Sums d_keys, d_values;
    d_keys.clear();
    d_values.clear();
    u32 end = heads.end_seen(task, n_keys);
    TileQuads quads[2];
    Query query;
    bool has_query;
    u32 words[OWN / 32];
    // The gradients of a tile are scaled by those up to the tile, so that no sum gets larger numbers than f16 holds. When
    // a tile lowers the scale, the sums so far are scaled too. All warps load the same queries and get the same scale.
    float largest = 0.0f, gradient_scale = 1.0f, shrink = 1.0f;
    auto load = [&](u32 i, u32 from) {
        u32 count = min(TILE, end - from);
        u64 row = task.start + from;
        if (i == 0) {
            quads[i].load(count, heads.qkv, [&](u32 r) { return heads.at(row + r, 0); });
            u32 r = threadIdx.x % TILE;
            // Each thread loads some query: a condition here would wait for the load.
            has_query = r < count;
            query = in.queries[value_at(row + min(r, count - 1))];
#pragma unroll
            for (u32 w = 0; w < OWN / 32; w++)
                words[w] = r < count ? dropout_word(heads, row + r, task.first / 32 + w) : 0;
        } else {
            quads[i].load(count, in.d_context, [&](u32 r) { return head_at(row + r); });
        }
    };
    auto store = [&](u32 i, u32 buffer) {
        if (i == 0) {
            if (!has_query) query = no_query();
            float before = largest == 0.0f ? 0.0f : gradient_scale;
            largest = fmaxf(largest, warp_max(query.largest));
            gradient_scale = scale_of(largest);
            shrink = before == 0.0f ? 1.0f : gradient_scale / before;
            // A change of `query` itself would wait for the load too.
            Query scaled = query;
            scaled.mean *= gradient_scale * SCORE_SCALE;
            if (threadIdx.x < TILE) {
                shared.queries[buffer][threadIdx.x] = scaled;
#pragma unroll
                for (u32 w = 0; w < OWN / 32; w++) shared.dropout_words[buffer][threadIdx.x][w] = words[w];
            }
        }
        store_tile(quads[i], shared.tiles[buffer].x[i], i == 0 ? 1.0f : gradient_scale);
    };
    float slope_scale = heads.drop.scale * SCORE_SCALE;
    for_each_tile(heads.first_seen(task) / TILE * TILE, end, load, store, [&](u32 buffer, u32 from) {
        if (lane.first >= n_keys) return;
        auto &queries = shared.tiles[buffer].x[0], &d_contexts = shared.tiles[buffer].x[1];
        if (shrink != 1.0f)
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                d_keys.scale(half, shrink);
                d_values.scale(half, shrink);
            }
#pragma unroll
        for (u32 row = 0; row < TILE; row += 16) {
            if (from + row >= end) return;
            Sum scores[2], slopes[2];
            keys.multiply(scores, queries, row);
            values.multiply(slopes, d_contexts, row);
#pragma unroll
            for (u32 at = 0; at < 8; at++) {
                u32 n = at / 4, i = at % 4, r = row + n * 8 + 2 * lane.t + i % 2, key = lane.row(i / 2);
                Query query = shared.queries[buffer][r];
                bool is_used = shared.dropout_words[buffer][r][lane.first / 32] >> (key % 32) & 1;
                float p = probability(scores[n][i], scale, heads.sees(from + r, task.first + key), query.log_sum);
                float slope = is_used ? slopes[n][i] * slope_scale : 0.0f;
                scores[n][i] = p * (slope - query.mean);
                slopes[n][i] = is_used ? p : 0.0f;
            }
            d_values.add(slopes, d_contexts, row);
            d_keys.add(scores, queries, row);
        }
    });
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        d_keys.scale(half, heads.scale / (gradient_scale * SCORE_SCALE));
        d_values.scale(half, heads.drop.scale / gradient_scale);
    }
    write_gradient(d_keys, heads, task, lane, n_keys, 1, shared, d_qkv);
    write_gradient(d_values, heads, task, lane, n_keys, 2, shared, d_qkv);
}

// Computes the gradients of keys and values in the blocks with z = 0, and those of queries in the blocks with z = 1. The
// first take longer, so they start first.
KERNEL __launch_bounds__(N_WARPS * WARP, 2) tensor_attention_backward(Backward in, Span<product_t> d_qkv) {
    __shared__ Shared shared;
    if (blockIdx.z == 0) {
        tensor_keys_backward(in, shared, d_qkv);
    } else {
        tensor_queries_backward(in, shared, d_qkv);
    }
}
