// Element-wise operations and sums: gelu, gated gelu, gather, scatter, column sums.

// Rows whose columns one block adds up.
const u32 ROWS_PER_SUM = 16;
// Rows that a thread loads before it uses the first.
const u32 AT_ONCE = 4;
// A block that adds up columns: the quads of columns, and the groups of threads that share the rows.
const u32 QUADS = 64;
const u32 GROUPS = ROWS_PER_SUM / AT_ONCE;
static_assert(GROUPS == 4, "one thread for each column");

// The columns and rows of one thread of such a block.
struct Part {
    u32 column;
    u32 n_columns;
    u32 row;
    u32 n_rows;

    DEVICE u64 at(u32 r, u32 width) const { return (u64)(row + r) * width + column; }
};

DEVICE Part part_of_thread(u32 width, u32 n_rows) {
    Part part;
    part.column = (blockIdx.x * QUADS + threadIdx.x % QUADS) * 4;
    part.n_columns = part.column < width ? min(4, width - part.column) : 0;
    part.row = blockIdx.y * ROWS_PER_SUM + threadIdx.x / QUADS * AT_ONCE;
    part.n_rows = part.n_columns > 0 && part.row < n_rows ? min(AT_ONCE, n_rows - part.row) : 0;
    return part;
}

// Adds up the quads of the groups, into partial[block, :]. Every thread of the block has to call it.
DEVICE void store_partial(const Quad& sum, Span<float> partial, u32 width) {
    __shared__ float sums[GROUPS][4 * QUADS];
#pragma unroll
    for (u32 i = 0; i < 4; i++) sums[threadIdx.x / QUADS][threadIdx.x % QUADS * 4 + i] = sum.x[i];
    __syncthreads();
    u32 c = blockIdx.x * 4 * QUADS + threadIdx.x;
    if (c >= width) return;
    float total = 0.0f;
#pragma unroll
    for (u32 g = 0; g < GROUPS; g++) total += sums[g][threadIdx.x];
    partial[(u64)blockIdx.y * width + c] = total;
}

// The distribution function and the density of the normal distribution.
struct Normal {
    float cumulative;
    float density;
};

// Formula 26.2.17 of Abramowitz and Stegun, with an absolute error below 1e-7. It takes half as many instructions as
// erff and expf.
DEVICE Normal normal_at(float u) {
    float density = 0.3989422804014327f * exp2f(-0.72134752044448170f * u * u);
    float t = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(u));
    float tail = t * (0.31938153f + t * (-0.356563782f + t * (1.781477937f + t * (-1.821255978f + t * 1.330274429f))));
    tail *= density;
    Normal normal = {u > 0.0f ? 1.0f - tail : tail, density};
    return normal;
}

DEVICE float gelu(float u) { return u * normal_at(u).cumulative; }

DEVICE float gelu_slope(float u) {
    Normal normal = normal_at(u);
    return normal.cumulative + u * normal.density;
}

template <bool VECTOR>
DEVICE void gelu_forward_as(Part part, Span<const float> u, Span<product_t> g, Span<float> plain, u32 width) {
    Quad x[AT_ONCE];
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++)
        if (r < part.n_rows) x[r] = load_quad<VECTOR>(u, part.at(r, width), part.n_columns);
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++) {
        if (r >= part.n_rows) break;
#pragma unroll
        for (u32 i = 0; i < 4; i++) x[r].x[i] = gelu(x[r].x[i]);
        if (!g.is_empty()) store_rounded<VECTOR>(x[r], g, part.at(r, width), part.n_columns);
        if (!plain.is_empty()) store_quad<VECTOR>(x[r], plain, part.at(r, width), part.n_columns);
    }
}

// g = gelu(u). `g` is an operand of products, `plain` is f32; empty spans are not written.
KERNEL gelu_forward(Span<const float> u, Span<product_t> g, Span<float> plain, u32 width, u32 n_rows) {
    Part part = part_of_thread(width, n_rows);
    if (has_vectors(u, width) && has_vectors(g, width) && has_vectors(plain, width)) {
        gelu_forward_as<true>(part, u, g, plain, width);
    } else {
        gelu_forward_as<false>(part, u, g, plain, width);
    }
}

template <bool VECTOR>
DEVICE Quad gelu_backward_as(Part part, Span<const float> u, Span<const float> d, Span<product_t> du, u32 width) {
    Quad x[AT_ONCE], y[AT_ONCE], sum = {};
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++)
        if (r < part.n_rows) {
            x[r] = load_quad<VECTOR>(u, part.at(r, width), part.n_columns);
            y[r] = load_quad<VECTOR>(d, part.at(r, width), part.n_columns);
        }
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++) {
        if (r >= part.n_rows) break;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            y[r].x[i] *= gelu_slope(x[r].x[i]);
            sum.x[i] += y[r].x[i];
        }
        store_rounded<VECTOR>(y[r], du, part.at(r, width), part.n_columns);
    }
    return sum;
}

// Computes the gradient of u from that of gelu(u) in `d`, in place. partial[block, :] is its sum over the rows of the block.
KERNEL gelu_backward(Span<const float> u, Span<const float> d, Span<product_t> du, Span<float> partial, u32 width,
                     u32 n_rows) {
    Part part = part_of_thread(width, n_rows);
    Quad sum;
    if (has_vectors(u, width) && has_vectors(d, width) && has_vectors(du, width)) {
        sum = gelu_backward_as<true>(part, u, d, du, width);
    } else {
        sum = gelu_backward_as<false>(part, u, d, du, width);
    }
    store_partial(sum, partial, width);
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
        g[(u64)row * width + c] = to_product(gelu(x[i]) * gate[i] * factor);
    }
}

// Computes the gradient of u from that of the output of geglu_forward in `d`.
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
        du[at] = to_product(dropped * gate[i] * gelu_slope(x[i]));
        du[at + width] = to_product(dropped * gelu(x[i]));
    }
}

template <bool VECTOR, class T>
DEVICE Quad sum_of_part(Part part, Span<const T> x, u32 width) {
    Quad quads[AT_ONCE], sum = {};
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++)
        if (r < part.n_rows) quads[r] = load_quad<VECTOR>(x, part.at(r, width), part.n_columns);
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; r++) {
        if (r >= part.n_rows) break;
#pragma unroll
        for (u32 i = 0; i < 4; i++) sum.x[i] += quads[r].x[i];
    }
    return sum;
}

template <class T>
DEVICE void add_columns(Span<const T> x, Span<float> partial, u32 width, u32 n_rows) {
    Part part = part_of_thread(width, n_rows);
    Quad sum;
    if (has_vectors(x, width)) {
        sum = sum_of_part<true>(part, x, width);
    } else {
        sum = sum_of_part<false>(part, x, width);
    }
    store_partial(sum, partial, width);
}

// partial[z, block, :] = the sum over the rows of the block, of matrix z. Matrices begin at a distance of `distance`.
KERNEL column_sums(Span<const product_t> x, u64 distance, Span<float> partial, u32 width, u32 n_rows) {
    u64 start = blockIdx.z * distance, of_matrix = (u64)gridDim.y * width, at = blockIdx.z * of_matrix;
    Span<const product_t> matrix = {x.data + start, x.len - start};
    Span<float> sums = {partial.data + at, partial.len - at};
    add_columns(matrix, sums, width, n_rows);
}

KERNEL column_sums_plain(Span<const float> x, Span<float> partial, u32 width, u32 n_rows) {
    add_columns(x, partial, width, n_rows);
}

// Sentences whose rows are loaded before the first is used.
const u32 SENTENCES_AT_ONCE = 8;

// The gradient of the position vectors. Block p adds up the rows at position p, sentence by sentence.
KERNEL position_gradient(Span<const float> d, Span<const u32> starts, u32 n_sentences, u32 first_position,
                         Span<float> gradient) {
    for (u32 c = threadIdx.x; c < HIDDEN; c += blockDim.x) {
        float sum = 0.0f;
        for (u32 first = 0; first < n_sentences; first += SENTENCES_AT_ONCE) {
            u32 rows[SENTENCES_AT_ONCE + 1];
            float x[SENTENCES_AT_ONCE];
#pragma unroll
            for (u32 i = 0; i <= SENTENCES_AT_ONCE; i++) rows[i] = starts[min(n_sentences, first + i)];
#pragma unroll
            for (u32 i = 0; i < SENTENCES_AT_ONCE; i++) {
                u32 row = rows[i] + blockIdx.x;
                x[i] = row < rows[i + 1] ? d[(u64)row * HIDDEN + c] : 0.0f;
            }
#pragma unroll
            for (u32 i = 0; i < SENTENCES_AT_ONCE; i++) sum += x[i];
        }
        gradient[(u64)(first_position + blockIdx.x) * HIDDEN + c] += sum;
    }
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

// A block of finish_sums: the quads of columns, and the groups of threads that share the partial sums.
const u32 FINISH_QUADS = 32;
const u32 FINISH_GROUPS = 8;
// Partial sums that a thread loads before it uses the first.
const u32 FINISH_AT_ONCE = 8;

template <bool VECTOR>
DEVICE Quad add_partials(Sum sum, Span<const float> partial, u32 column, u32 n) {
    Quad total = {};
    for (u32 first = threadIdx.x / FINISH_QUADS; first < sum.n_partials; first += FINISH_AT_ONCE * FINISH_GROUPS) {
        Quad quads[FINISH_AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < FINISH_AT_ONCE; i++) {
            u32 p = first + i * FINISH_GROUPS;
            if (p < sum.n_partials)
                quads[i] = load_quad<VECTOR>(partial, sum.partial + (u64)p * sum.stride + column, n);
        }
#pragma unroll
        for (u32 i = 0; i < FINISH_AT_ONCE; i++) {
            if (first + i * FINISH_GROUPS >= sum.n_partials) break;
#pragma unroll
            for (u32 j = 0; j < 4; j++) total.x[j] += quads[i].x[j];
        }
    }
    return total;
}

// Adds up all partial sums of a backward pass, in a fixed order.
KERNEL finish_sums(Span<const Sum> sums, Span<const float> partial, Span<float> gradient) {
    __shared__ float totals[FINISH_GROUPS][4 * FINISH_QUADS];
    Sum sum = sums[blockIdx.y];
    u32 first = blockIdx.x * 4 * FINISH_QUADS, own = threadIdx.x % FINISH_QUADS * 4;
    if (first >= sum.width) return;
    Quad total = {};
    if (first + own < sum.width) {
        u32 n = min(4, sum.width - first - own);
        if (has_vectors(partial, sum.partial | sum.stride | sum.width)) {
            total = add_partials<true>(sum, partial, first + own, n);
        } else {
            total = add_partials<false>(sum, partial, first + own, n);
        }
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) totals[threadIdx.x / FINISH_QUADS][own + i] = total.x[i];
    __syncthreads();
    u32 c = first + threadIdx.x;
    if (threadIdx.x >= 4 * FINISH_QUADS || c >= sum.width) return;
    float all = 0.0f;
#pragma unroll
    for (u32 g = 0; g < FINISH_GROUPS; g++) all += totals[g][threadIdx.x];
    if (sum.accumulates) all += gradient[sum.out + c];
    gradient[sum.out + c] = all;
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
