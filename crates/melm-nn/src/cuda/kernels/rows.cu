// Element-wise operations and sums: gelu, gated gelu, gather, scatter, column sums.

// Rows whose columns one block adds up.
const u32 ROWS_PER_SUM = 16;
// Rows that a thread loads before it uses the first.
const u32 AT_ONCE = 4;

DEVICE float gelu_cumulative(float u) { return 0.5f * (1.0f + erff(u * 0.70710678118654752f)); }

// g = gelu(u). One thread for each column. `g` is an operand of products, `plain` is f32; empty spans are not written.
KERNEL gelu_forward(Span<const float> u, Span<product_t> g, Span<float> plain, u32 width, u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float x[AT_ONCE];
    u32 first = blockIdx.y * AT_ONCE;
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) x[i] = first + i < n_rows ? u[(u64)(first + i) * width + c] : 0.0f;
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
        if (first + i >= n_rows) break;
        u64 at = (u64)(first + i) * width + c;
        float y = x[i] * gelu_cumulative(x[i]);
        if (!g.is_empty()) g[at] = to_product(y);
        if (!plain.is_empty()) plain[at] = y;
    }
}

// Goes from the gradient of gelu(u) in `d` to that of u. partial[block, :] is its sum over the rows of the block.
KERNEL gelu_backward(Span<const float> u, Span<const float> d, Span<product_t> du, Span<float> partial, u32 width,
                     u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float sum = 0.0f;
    for (u32 first = blockIdx.y * ROWS_PER_SUM; first < (blockIdx.y + 1) * ROWS_PER_SUM; first += AT_ONCE) {
        float x[AT_ONCE], y[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            bool is_row = first + i < n_rows;
            u64 at = (u64)(first + i) * width + c;
            x[i] = is_row ? u[at] : 0.0f;
            y[i] = is_row ? d[at] : 0.0f;
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            if (first + i >= n_rows) break;
            float slope = gelu_cumulative(x[i]) + x[i] * 0.3989422804014327f * expf(-0.5f * x[i] * x[i]);
            float value = y[i] * slope;
            du[(u64)(first + i) * width + c] = to_product(value);
            sum += value;
        }
    }
    partial[(u64)blockIdx.y * width + c] = sum;
}

// g = dropout(gelu(input) * gate). The first `width` columns of `u` are the input, the others the gate. One thread for
// each column of `g`.
KERNEL geglu_forward(Span<const float> u, Drop drop, Span<const Place> places, Span<product_t> g, u32 width,
                     u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float x[AT_ONCE], gate[AT_ONCE];
    u32 first = blockIdx.y * AT_ONCE;
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
        bool is_row = first + i < n_rows;
        u64 at = (u64)(first + i) * 2 * width + c;
        x[i] = is_row ? u[at] : 0.0f;
        gate[i] = is_row ? u[at + width] : 0.0f;
    }
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
        u32 row = first + i;
        if (row >= n_rows) break;
        float factor = row_mask(drop, places[row].sentence, places[row].position).factor(c);
        g[(u64)row * width + c] = to_product(x[i] * gelu_cumulative(x[i]) * gate[i] * factor);
    }
}

// Goes from the gradient of the output of geglu_forward in `d` to that of u.
KERNEL geglu_backward(Span<const float> u, Span<const float> d, Drop drop, Span<const Place> places, Span<product_t> du,
                      u32 width, u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float x[AT_ONCE], gate[AT_ONCE], y[AT_ONCE];
    u32 first = blockIdx.y * AT_ONCE;
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
        u64 row = first + i, at = row * 2 * width + c;
        bool is_row = row < n_rows;
        x[i] = is_row ? u[at] : 0.0f;
        gate[i] = is_row ? u[at + width] : 0.0f;
        y[i] = is_row ? d[row * width + c] : 0.0f;
    }
#pragma unroll
    for (u32 i = 0; i < AT_ONCE; i++) {
        u32 row = first + i;
        if (row >= n_rows) break;
        u64 at = (u64)row * 2 * width + c;
        float dropped = y[i] * row_mask(drop, places[row].sentence, places[row].position).factor(c);
        float slope = gelu_cumulative(x[i]) + x[i] * 0.3989422804014327f * expf(-0.5f * x[i] * x[i]);
        du[at] = to_product(dropped * gate[i] * slope);
        du[at + width] = to_product(dropped * x[i] * gelu_cumulative(x[i]));
    }
}

// partial[block, :] = the sum over the rows of the block.
KERNEL column_sums(Span<const product_t> x, Span<float> partial, u32 width, u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float sum = 0.0f;
    u32 end = min(n_rows, (blockIdx.y + 1) * ROWS_PER_SUM);
    for (u32 r = blockIdx.y * ROWS_PER_SUM; r < end; r++) sum += from_product(x[(u64)r * width + c]);
    partial[(u64)blockIdx.y * width + c] = sum;
}

KERNEL column_sums_plain(Span<const float> x, Span<float> partial, u32 width, u32 n_rows) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= width) return;
    float sum = 0.0f;
    u32 end = min(n_rows, (blockIdx.y + 1) * ROWS_PER_SUM);
    for (u32 r = blockIdx.y * ROWS_PER_SUM; r < end; r++) sum += x[(u64)r * width + c];
    partial[(u64)blockIdx.y * width + c] = sum;
}

// One sum: the rows of `partial` from offset `partial` on, added up into the gradient from offset `out` on.
struct Sum {
    u64 partial;
    u64 out;
    u32 n_partials;
    u32 stride;
    u32 width;
    u32 accumulates;
};

// Adds up all partial sums of a backward pass, in a fixed order.
KERNEL finish_sums(Span<const Sum> sums, Span<const float> partial, Span<float> gradient) {
    Sum sum = sums[blockIdx.y];
    u32 c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= sum.width) return;
    float total = 0.0f;
#pragma unroll 8
    for (u32 p = 0; p < sum.n_partials; p++) total += partial[sum.partial + (u64)p * sum.stride + c];
    if (sum.accumulates) total += gradient[sum.out + c];
    gradient[sum.out + c] = total;
}

// out[i, c] = x[i, first + c] for `n` columns; 0 in the columns after them. The rows of `x` are `stride` wide, those of
// `out` `out_stride`.
KERNEL copy_columns(Span<const product_t> x, Span<product_t> out, u32 first, u32 n, u32 stride, u32 out_stride) {
    u64 from = (u64)blockIdx.x * stride + first, to = (u64)blockIdx.x * out_stride;
    for (u32 c = threadIdx.x; c < out_stride; c += blockDim.x) out[to + c] = c < n ? x[from + c] : to_product(0.0f);
}

// out[i] = x[rows[i]].
KERNEL gather(Span<const product_t> x, Span<const u32> rows, Span<product_t> out, u32 width) {
    u64 from = (u64)rows[blockIdx.x] * width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) out[(u64)blockIdx.x * width + c] = x[from + c];
}

// out[i] = dropout(x[rows[i]]).
KERNEL gather_dropped(Span<const float> x, Span<const u32> rows, Drop drop, Span<const Place> places, Span<float> out,
                      u32 width) {
    u32 row = rows[blockIdx.x];
    RowMask mask = row_mask(drop, places[row].sentence, places[row].position);
    for (u32 c = threadIdx.x; c < width; c += blockDim.x)
        out[(u64)blockIdx.x * width + c] = x[(u64)row * width + c] * mask.factor(c);
}

// out[rows[i]] += dropout(d[i]). A row is rarely named twice, and the order of two additions to zero does not matter.
KERNEL scatter(Span<const float> d, Span<const u32> rows, Drop drop, Span<const Place> places, Span<float> out,
               u32 width) {
    u32 row = rows[blockIdx.x];
    RowMask mask = row_mask(drop, places[row].sentence, places[row].position);
    for (u32 c = threadIdx.x; c < width; c += blockDim.x)
        atomicAdd(&out[(u64)row * width + c], d[(u64)blockIdx.x * width + c] * mask.factor(c));
}

// out[i] = dropout(x[i]), where x[i] belongs to row rows[i] of the batch. `out` may be `x`.
KERNEL drop_rows(Span<const float> x, Span<const u32> rows, Drop drop, Span<const Place> places, Span<float> out,
                 u32 width) {
    u32 row = rows[blockIdx.x];
    RowMask mask = row_mask(drop, places[row].sentence, places[row].position);
    u64 start = (u64)blockIdx.x * width;
    for (u32 c = threadIdx.x; c < width; c += blockDim.x) out[start + c] = x[start + c] * mask.factor(c);
}

// Rounds the weights to the type that products read.
KERNEL round_weights(Span<const float> values, Span<product_t> out) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < values.len; i += (u64)gridDim.x * blockDim.x)
        out[i] = to_product(values[i]);
}

// out = the sum of `n_parts` consecutive parts.
KERNEL add_parts(Span<const float> parts, Span<float> out, u32 n_parts) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < out.len; i += (u64)gridDim.x * blockDim.x) {
        float sum = 0.0f;
        for (u32 p = 0; p < n_parts; p++) sum += parts[(u64)p * out.len + i];
        out[i] = sum;
    }
}
