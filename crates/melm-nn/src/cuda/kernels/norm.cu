// Layer norm, fused with the operations before and after it, and the embedding layer, which ends in a norm. One warp for
// each row.

const u32 PER_LANE = (HIDDEN + WARP - 1) / WARP;
// Rows of one block: as many as fit into shared memory with their partial sums.
const u32 ROWS = HIDDEN <= 2048 ? 4 : 2;

struct Affine {
    Span<const float> weight;
    Span<const float> bias;
    float eps;
    u32 unused;
};

struct Normed {
    Span<float> rows;
    Span<float> scale;
    Span<float> y;
    Span<product_t> y_product;
};

// The elements of a row that one lane holds: lane, lane + 32, ...
struct Row {
    float x[PER_LANE];
};

DEVICE u32 lane_of_thread() { return threadIdx.x % WARP; }
DEVICE u32 row_of_warp() { return blockIdx.x * ROWS + threadIdx.x / WARP; }

#define EACH_COLUMN(i, c) \
    _Pragma("unroll") for (u32 i = 0, c = lane_of_thread(); i < PER_LANE; i++, c += WARP) if (c < HIDDEN)

// Loads a lane's elements. All loads are issued before the first is used.
DEVICE void load(Row& row, Span<const float> from, u64 start) {
    EACH_COLUMN(i, c) row.x[i] = from[start + c];
}

DEVICE void normalise(Row& row, u32 at, Affine affine, RowMask mask, Normed out) {
    Row weight;
    load(weight, affine.weight, 0);
#if NORM_BIAS
    Row bias;
    load(bias, affine.bias, 0);
#endif
    float sum = 0.0f;
    EACH_COLUMN(i, c) sum += row.x[i];
    float mean = warp_sum(sum) / HIDDEN;
    sum = 0.0f;
    EACH_COLUMN(i, c) sum += (row.x[i] - mean) * (row.x[i] - mean);
    float scale = 1.0f / sqrtf(warp_sum(sum) / HIDDEN + affine.eps);
    u64 start = (u64)at * HIDDEN;
    EACH_COLUMN(i, c) {
        float x = (row.x[i] - mean) * scale;
#if NORM_BIAS
        float y = (x * weight.x[i] + bias.x[i]) * mask.factor(c);
#else
        float y = x * weight.x[i] * mask.factor(c);
#endif
        out.rows[start + c] = x;
        if (!out.y.is_empty()) out.y[start + c] = y;
        out.y_product[start + c] = to_product(y);
    }
    if (lane_of_thread() == 0) out.scale[at] = scale;
}

// Without dropout `places` is not read: the rows of a head are not those of the batch.
DEVICE RowMask mask_at(Drop drop, Span<const Place> places, u32 at) {
    RowMask all = {0, 0, 0, 1.0f};
    return drop.threshold == 0 ? all : row_mask(drop, places[at].sentence, places[at].position);
}

// y = norm(residual + dropout(x + bias)); bias and residual may be empty.
KERNEL norm_forward(Span<const float> x, Span<const float> bias, Span<const float> residual, Affine affine, Drop drop,
                    Span<const Place> places, Normed out, u32 n_rows) {
    u32 at = row_of_warp();
    if (at >= n_rows) return;
    RowMask mask = mask_at(drop, places, at);
    u64 start = (u64)at * HIDDEN;
    Row row, shift, other;
    load(row, x, start);
    if (!bias.is_empty()) load(shift, bias, 0);
    if (!residual.is_empty()) load(other, residual, start);
    EACH_COLUMN(i, c) {
        float value = row.x[i];
        if (!bias.is_empty()) value += shift.x[i];
        value *= mask.factor(c);
        if (!residual.is_empty()) value += other.x[i];
        row.x[i] = value;
    }
    RowMask all = {0, 0, 0, 1.0f};
    normalise(row, at, affine, all, out);
}

// sum += dropout(x); y = norm(sum). For models whose residual is the running sum of all parts, which is not normalised.
KERNEL sum_norm_forward(Span<const float> x, Span<float> sum, Affine affine, Drop drop, Span<const Place> places,
                        Normed out, u32 n_rows) {
    u32 at = row_of_warp();
    if (at >= n_rows) return;
    RowMask mask = mask_at(drop, places, at);
    u64 start = (u64)at * HIDDEN;
    Row row, before;
    load(row, x, start);
    EACH_COLUMN(i, c) before.x[i] = sum[start + c];
    EACH_COLUMN(i, c) {
        row.x[i] = before.x[i] + row.x[i] * mask.factor(c);
        sum[start + c] = row.x[i];
    }
    RowMask all = {0, 0, 0, 1.0f};
    normalise(row, at, affine, all, out);
}

// y = dropout(norm(piece + position + type)). `kind` is empty if the model has no token types. A model with rotary
// positions adds no position vectors.
KERNEL embed_forward(Span<const float> table, Span<const float> positions, Span<const float> kind, Affine affine,
                     Drop drop, Span<const u32> pieces, Span<const Place> places, u32 first_position, Normed out,
                     u32 n_rows) {
    u32 at = row_of_warp();
    if (at >= n_rows) return;
    u64 piece = (u64)pieces[at] * HIDDEN;
#if !ROTARY
    u64 position = (u64)(first_position + places[at].position) * HIDDEN;
#endif
    Row row;
    EACH_COLUMN(i, c) {
        float value = table[piece + c];
        if (!kind.is_empty()) value += kind[c];
#if ROTARY
        row.x[i] = value;
#else
        row.x[i] = value + positions[position + c];
#endif
    }
    normalise(row, at, affine, row_mask(drop, places[at].sentence, places[at].position), out);
}

// Goes from the gradient after a norm to that before it; `weighed` is the contribution to the gradient of the weight.
DEVICE void denormalise(Row& d, Row& weighed, u32 at, Span<const float> weight, Span<const float> normed,
                        Span<const float> scale) {
    Row x;
    float sum = 0.0f, slope = 0.0f;
    EACH_COLUMN(i, c) {
        x.x[i] = normed[(u64)at * HIDDEN + c];
        weighed.x[i] = d.x[i] * x.x[i];
        d.x[i] *= weight[c];
        sum += d.x[i];
        slope += d.x[i] * x.x[i];
    }
    float mean = warp_sum(sum) / HIDDEN;
    slope = warp_sum(slope) / HIDDEN;
    float factor = scale[at];
    EACH_COLUMN(i, c) d.x[i] = factor * (d.x[i] - mean - x.x[i] * slope);
}

// Adds up `row` over the rows of a block, into partial[block, part, :]. Each block has `n_parts` parts.
DEVICE void block_sum(const Row& row, bool is_row, Span<float> partial, u32 part, u32 n_parts = 3) {
    __shared__ float rows[ROWS][HIDDEN];
    u32 warp = threadIdx.x / WARP;
    EACH_COLUMN(i, c) rows[warp][c] = is_row ? row.x[i] : 0.0f;
    __syncthreads();
    for (u32 c = threadIdx.x; c < HIDDEN; c += ROWS * WARP) {
        float sum = 0.0f;
        for (u32 r = 0; r < ROWS; r++) sum += rows[r][c];
        partial[((u64)blockIdx.x * n_parts + part) * HIDDEN + c] = sum;
    }
    __syncthreads();
}

// The backward pass of norm_forward. `d` becomes the gradient of the residual, `dx` that of x. The partial sums are
// those of the norm's weight, the norm's bias, and the bias of x.
KERNEL norm_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
                     Span<const Place> places, Span<float> d, Span<product_t> dx, Span<float> partial, u32 n_rows) {
    u32 at = row_of_warp();
    bool is_row = at < n_rows;
    Row shift, weighed, row;
    if (is_row) {
        u64 start = (u64)at * HIDDEN;
        EACH_COLUMN(i, c) shift.x[i] = row.x[i] = d[start + c];
        denormalise(row, weighed, at, weight, normed, scale);
        RowMask mask = mask_at(drop, places, at);
        EACH_COLUMN(i, c) {
            d[start + c] = row.x[i];
            row.x[i] *= mask.factor(c);
            if (!dx.is_empty()) dx[start + c] = to_product(row.x[i]);
        }
    }
    block_sum(weighed, is_row, partial, 0);
    block_sum(shift, is_row, partial, 1);
    block_sum(row, is_row, partial, 2);
}

// The backward pass of sum_norm_forward. `d` is the gradient of y, `d_sum` that of the sum, to which the gradient of the
// norm's input is added. `dx` becomes the gradient of x. The partial sums are those of the norm's weight.
KERNEL sum_norm_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
                         Span<const Place> places, Span<const float> d, Span<float> d_sum, Span<product_t> dx,
                         Span<float> partial, u32 n_rows) {
    u32 at = row_of_warp();
    bool is_row = at < n_rows;
    Row weighed, row;
    if (is_row) {
        u64 start = (u64)at * HIDDEN;
        EACH_COLUMN(i, c) row.x[i] = d[start + c];
        denormalise(row, weighed, at, weight, normed, scale);
        RowMask mask = mask_at(drop, places, at);
        EACH_COLUMN(i, c) {
            float total = d_sum[start + c] + row.x[i];
            d_sum[start + c] = total;
            dx[start + c] = to_product(total * mask.factor(c));
        }
    }
    block_sum(weighed, is_row, partial, 0, 1);
}

// The backward pass of embed_forward. `out` is the gradient of each row's three vectors. The partial sums are those of
// the norm's weight, the norm's bias, and the type vector.
KERNEL embed_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
                      Span<const Place> places, Span<const float> d, Span<float> out, Span<float> partial,
                      u32 n_rows) {
    u32 at = row_of_warp();
    bool is_row = at < n_rows;
    Row shift, weighed, row;
    if (is_row) {
        u64 start = (u64)at * HIDDEN;
        RowMask mask = row_mask(drop, places[at].sentence, places[at].position);
        EACH_COLUMN(i, c) shift.x[i] = row.x[i] = d[start + c] * mask.factor(c);
        denormalise(row, weighed, at, weight, normed, scale);
        EACH_COLUMN(i, c) out[start + c] = row.x[i];
    }
    block_sum(weighed, is_row, partial, 0);
    block_sum(shift, is_row, partial, 1);
    block_sum(row, is_row, partial, 2);
}

// The gradient of the position vectors. Block p adds up the rows at position p, sentence by sentence.
KERNEL position_gradient(Span<const float> d, Span<const u32> starts, u32 n_sentences, u32 first_position,
                         Span<float> gradient) {
    for (u32 c = threadIdx.x; c < HIDDEN; c += blockDim.x) {
        float sum = 0.0f;
        for (u32 s = 0; s < n_sentences; s++) {
            u32 row = starts[s] + blockIdx.x;
            if (row < starts[s + 1]) sum += d[(u64)row * HIDDEN + c];
        }
        gradient[(u64)(first_position + blockIdx.x) * HIDDEN + c] += sum;
    }
}
