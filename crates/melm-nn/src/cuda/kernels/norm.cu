// Layer norm, fused with the operations before and after it, and the embedding layer, which ends in a norm. The forward
// kernels have one block for each row. The backward kernels have one block for ROWS rows, because each block writes
// partial sums. A thread has the same columns of all rows.

const u32 QUADS = (HIDDEN + 3) / 4;
// Threads of a row: one for each quad, but at most 256.
const u32 THREADS = QUADS > 256 ? 256 : (QUADS + WARP - 1) / WARP * WARP;
const u32 WARPS = THREADS / WARP;
// Quads of a row that a thread has.
const u32 PER_THREAD = (QUADS + THREADS - 1) / THREADS;
// True if no quad of a thread reaches beyond the row.
const bool IS_FULL = 4 * THREADS * PER_THREAD == HIDDEN;
// True if the quads of all activations are vectors, because their buffers are aligned.
const bool IS_VECTOR = HIDDEN % 4 == 0;
// A block of the backward kernels has groups of THREADS threads. A thread has as many rows as fit into its registers.
const u32 GROUPS = PER_THREAD == 1 ? 3 : 1;
const u32 ROWS_PER_GROUP = PER_THREAD == 2 ? 4 : 2;
const u32 ROWS = GROUPS * ROWS_PER_GROUP;

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

// The numbers of a row that one thread has: the quad with the number of the thread, and every THREADS-th quad after it.
struct Row {
    Quad quads[PER_THREAD];

    DEVICE float& operator[](u32 i) { return quads[i / 4].x[i % 4]; }
    DEVICE float operator[](u32 i) const { return quads[i / 4].x[i % 4]; }
};

DEVICE u32 group_of_thread() { return threadIdx.x / THREADS; }
DEVICE u32 thread_of_row() { return threadIdx.x % THREADS; }
DEVICE u32 column(u32 i) { return 4 * (thread_of_row() + i / 4 * THREADS) + i % 4; }
DEVICE u32 n_columns(u32 c) { return IS_FULL ? 4 : c < HIDDEN ? min(4, HIDDEN - c) : 0; }

// Runs over the numbers of a thread: the index in Row, and the column.
#define EACH_COLUMN(i, c) \
    _Pragma("unroll") for (u32 i = 0, c; i < 4 * PER_THREAD; i++) if (c = column(i), IS_FULL || c < HIDDEN)

// Runs over the quads of a thread: the index in Row, the first column, and the number of columns.
#define EACH_QUAD(q, c, n) \
    _Pragma("unroll") for (u32 q = 0, c, n; q < PER_THREAD; q++) if (c = column(4 * q), n = n_columns(c), n > 0)

template <bool VECTOR>
DEVICE void load_as(Row& row, Span<const float> from, u64 start) {
    EACH_QUAD(q, c, n) row.quads[q] = load_quad<VECTOR>(from, start + c, n);
}

// Loads a row of activations. Kernels issue all loads before they use the first number.
DEVICE void load(Row& row, Span<const float> from, u64 start) { load_as<IS_VECTOR>(row, from, start); }

// Loads a row of parameters, which can have any address.
DEVICE void load_parameters(Row& row, Span<const float> from, u64 start) {
    if (has_vectors(from, HIDDEN)) {
        load_as<IS_VECTOR>(row, from, start);
    } else {
        load_as<false>(row, from, start);
    }
}

DEVICE void load_affine(Row& weight, Row& bias, Affine affine) {
    load_parameters(weight, affine.weight, 0);
#if NORM_BIAS
    load_parameters(bias, affine.bias, 0);
#endif
}

template <bool VECTOR>
DEVICE void store_as(const Row& row, Span<float> to, u64 start) {
    EACH_QUAD(q, c, n) store_quad<VECTOR>(row.quads[q], to, start + c, n);
}

DEVICE void store(const Row& row, Span<float> to, u64 start) { store_as<IS_VECTOR>(row, to, start); }

DEVICE void store_product(const Row& row, Span<product_t> to, u64 start) {
    EACH_QUAD(q, c, n) store_rounded<IS_VECTOR>(row.quads[q], to, start + c, n);
}

// Selects without a branch, which the compiler would make of a condition.
DEVICE float select(u32 mask, float x, float y) {
    return __uint_as_float((__float_as_uint(x) & mask) | (__float_as_uint(y) & ~mask));
}

// Adds up each of N numbers over the lanes of a warp, where N is a power of two. Lane i returns the sum of
// number i / (WARP / N): in each step a lane gives half of its numbers away.
template <u32 N>
DEVICE float sums_of_warp(float (&x)[N]) {
    u32 step = WARP / 2;
#pragma unroll
    for (u32 n = N / 2; n > 0; n /= 2, step /= 2) {
        u32 is_high = threadIdx.x & step ? ~0u : 0u;
#pragma unroll
        for (u32 i = 0; i < n; i++) {
            float given = select(is_high, x[i], x[i + n]), own = select(is_high, x[i + n], x[i]);
            x[i] = own + __shfl_xor_sync(EVERY_LANE, given, step);
        }
    }
#pragma unroll
    for (; step > 0; step /= 2) x[0] += __shfl_xor_sync(EVERY_LANE, x[0], step);
    return x[0];
}

// Adds up each of N numbers over the threads of a row. No other call may use the same `parts`.
// Every thread of the block has to call it.
template <u32 N>
DEVICE void sums_of_row(float (&x)[N], float (&parts)[WARPS][N]) {
    float sum = sums_of_warp(x);
    u32 lane = threadIdx.x % WARP;
    if (lane % (WARP / N) == 0) parts[thread_of_row() / WARP][lane / (WARP / N)] = sum;
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < N; i++) {
        x[i] = 0.0f;
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) x[i] += parts[w][i];
    }
}

// Writes the norm of row `at`. `weight` and `bias` are those of the norm.
DEVICE void normalise(Row& row, const Row& weight, const Row& bias, u32 at, float eps, RowMask mask, Normed out) {
    __shared__ float sums[WARPS][1], squares[WARPS][1];
    float sum[1] = {0.0f}, square[1] = {0.0f};
    EACH_COLUMN(i, c) sum[0] += row[i];
    sums_of_row(sum, sums);
    float mean = sum[0] * (1.0f / HIDDEN);
    EACH_COLUMN(i, c) square[0] += (row[i] - mean) * (row[i] - mean);
    sums_of_row(square, squares);
    float scale = 1.0f / sqrtf(square[0] * (1.0f / HIDDEN) + eps);
    Row y;
    EACH_COLUMN(i, c) {
        row[i] = (row[i] - mean) * scale;
#if NORM_BIAS
        y[i] = (row[i] * weight[i] + bias[i]) * mask.factor(c);
#else
        y[i] = row[i] * weight[i] * mask.factor(c);
#endif
    }
    u64 start = (u64)at * HIDDEN;
    store(row, out.rows, start);
    if (!out.y.is_empty()) store(y, out.y, start);
    store_product(y, out.y_product, start);
    if (threadIdx.x == 0) out.scale[at] = scale;
}

// Without dropout `places` is not read: the rows of a head are not those of the batch.
DEVICE RowMask mask_at(Drop drop, Span<const Place> places, u32 at) {
    RowMask all = {0, 0, 0, 1.0f};
    return drop.threshold == 0 ? all : row_mask(drop, places[at].sentence, places[at].position);
}

// y = norm(residual + dropout(x + bias)); bias and residual may be empty.
KERNEL norm_forward(Span<const float> x, Span<const float> bias, Span<const float> residual, Affine affine, Drop drop,
                    Span<const Place> places, Normed out) {
    u32 at = blockIdx.x;
    u64 start = (u64)at * HIDDEN;
    Row row, shift, other, weight, norm_bias;
    load(row, x, start);
    if (!residual.is_empty()) load(other, residual, start);
    if (!bias.is_empty()) load_parameters(shift, bias, 0);
    load_affine(weight, norm_bias, affine);
    RowMask mask = mask_at(drop, places, at);
    EACH_COLUMN(i, c) {
        if (!bias.is_empty()) row[i] += shift[i];
        row[i] *= mask.factor(c);
        if (!residual.is_empty()) row[i] += other[i];
    }
    RowMask all = {0, 0, 0, 1.0f};
    normalise(row, weight, norm_bias, at, affine.eps, all, out);
}

// sum += dropout(x); y = norm(sum). For models whose residual is the running sum of all parts, which is not normalised.
KERNEL sum_norm_forward(Span<const float> x, Span<float> sum, Affine affine, Drop drop, Span<const Place> places,
                        Normed out) {
    u32 at = blockIdx.x;
    u64 start = (u64)at * HIDDEN;
    Row row, before, weight, bias;
    load(row, x, start);
    load(before, sum, start);
    load_affine(weight, bias, affine);
    RowMask mask = mask_at(drop, places, at);
    EACH_COLUMN(i, c) row[i] = before[i] + row[i] * mask.factor(c);
    store(row, sum, start);
    RowMask all = {0, 0, 0, 1.0f};
    normalise(row, weight, bias, at, affine.eps, all, out);
}

// y = dropout(norm(piece + position + type)). `kind` is empty if the model has no token types. A model with rotary
// positions adds no position vectors.
KERNEL embed_forward(Span<const float> table, Span<const float> positions, Span<const float> kind, Affine affine,
                     Drop drop, Span<const u32> pieces, Span<const Place> places, u32 first_position, Normed out) {
    u32 at = blockIdx.x;
    Row row, type, weight, bias;
    load_parameters(row, table, (u64)pieces[at] * HIDDEN);
#if !ROTARY
    Row position;
    load_parameters(position, positions, (u64)(first_position + places[at].position) * HIDDEN);
#endif
    if (!kind.is_empty()) load_parameters(type, kind, 0);
    load_affine(weight, bias, affine);
    EACH_COLUMN(i, c) {
        if (!kind.is_empty()) row[i] += type[i];
#if !ROTARY
        row[i] += position[i];
#endif
    }
    normalise(row, weight, bias, at, affine.eps, row_mask(drop, places[at].sentence, places[at].position), out);
}

// The rows of a thread of a backward kernel. Rows after the last one of the batch are 0.
struct Rows {
    Row rows[ROWS_PER_GROUP];

    DEVICE Row& operator[](u32 r) { return rows[r]; }
    DEVICE const Row& operator[](u32 r) const { return rows[r]; }
};

DEVICE u32 first_row() { return blockIdx.x * ROWS + group_of_thread() * ROWS_PER_GROUP; }

// Runs over the rows of a thread: the index in Rows, and the index of the first number of the row.
#define EACH_ROW(r, start, n_rows)                             \
    _Pragma("unroll") for (u32 r = 0; r < ROWS_PER_GROUP; r++) \
        if (u64 start = (u64)(first_row() + r) * HIDDEN; first_row() + r < n_rows)

DEVICE void load(Rows& rows, Span<const float> from, u32 n_rows) {
#pragma unroll
    for (u32 r = 0; r < ROWS_PER_GROUP; r++) EACH_COLUMN(i, c) rows[r][i] = 0.0f;
    EACH_ROW(r, start, n_rows) load(rows[r], from, start);
}

DEVICE void load_scales(float (&scales)[ROWS_PER_GROUP], Span<const float> scale, u32 n_rows) {
#pragma unroll
    for (u32 r = 0; r < ROWS_PER_GROUP; r++) scales[r] = first_row() + r < n_rows ? scale[first_row() + r] : 0.0f;
}

// Finds the dropout of the rows of a block. Only after the next barrier can other threads read it.
DEVICE void find_masks(RowMask (&masks)[ROWS], Drop drop, Span<const Place> places, u32 n_rows) {
    u32 at = blockIdx.x * ROWS + threadIdx.x;
    if (threadIdx.x < ROWS && at < n_rows) masks[threadIdx.x] = mask_at(drop, places, at);
}

// Returns the sum of the rows.
DEVICE Row sum_of_rows(const Rows& rows) {
    Row sum = rows[0];
#pragma unroll
    for (u32 r = 1; r < ROWS_PER_GROUP; r++) EACH_COLUMN(i, c) sum[i] += rows[r][i];
    return sum;
}

// Computes the gradient of a norm's input from that of its output, in place. Returns the sum of the rows' contributions to
// the gradient of the weight. Contains a barrier.
DEVICE Row norm_input_gradient(Rows& d, const Rows& normed, const Row& weight, const float (&scales)[ROWS_PER_GROUP]) {
    __shared__ float parts[GROUPS][WARPS][2 * ROWS_PER_GROUP];
    float sums[2 * ROWS_PER_GROUP];
    Row weighed;
    EACH_COLUMN(i, c) weighed[i] = 0.0f;
#pragma unroll
    for (u32 r = 0; r < ROWS_PER_GROUP; r++) {
        float sum = 0.0f, slope = 0.0f;
        EACH_COLUMN(i, c) {
            weighed[i] += d[r][i] * normed[r][i];
            d[r][i] *= weight[i];
            sum += d[r][i];
            slope += d[r][i] * normed[r][i];
        }
        sums[2 * r] = sum;
        sums[2 * r + 1] = slope;
    }
    sums_of_row(sums, parts[group_of_thread()]);
#pragma unroll
    for (u32 r = 0; r < ROWS_PER_GROUP; r++) {
        float mean = sums[2 * r] * (1.0f / HIDDEN), slope = sums[2 * r + 1] * (1.0f / HIDDEN);
        EACH_COLUMN(i, c) d[r][i] = scales[r] * (d[r][i] - mean - normed[r][i] * slope);
    }
    return weighed;
}

// Stores one row of partial sums. Sums of any width can come before it.
DEVICE void store_partial(const Row& sum, Span<float> partial, u64 start) {
    if (has_vectors(partial, HIDDEN)) {
        store_as<IS_VECTOR>(sum, partial, start);
    } else {
        store_as<false>(sum, partial, start);
    }
}

// Adds up the sums of the groups, into partial[block, :, :]. Every thread of the block has to call it.
template <u32 N_PARTS>
DEVICE void store_partials(const Row (&sums)[N_PARTS], Span<float> partial) {
    u64 start = (u64)blockIdx.x * N_PARTS * HIDDEN;
    if constexpr (GROUPS == 1) {
#pragma unroll
        for (u32 part = 0; part < N_PARTS; part++) store_partial(sums[part], partial, start + part * HIDDEN);
    } else {
        static_assert(N_PARTS <= GROUPS, "each group adds up one part");
        __shared__ Row all[N_PARTS][GROUPS][THREADS];
        u32 group = group_of_thread(), thread = thread_of_row();
#pragma unroll
        for (u32 part = 0; part < N_PARTS; part++) all[part][group][thread] = sums[part];
        __syncthreads();
        if (group >= N_PARTS) return;
        Row sum = all[group][0][thread];
#pragma unroll
        for (u32 g = 1; g < GROUPS; g++) EACH_COLUMN(i, c) sum[i] += all[group][g][thread][i];
        store_partial(sum, partial, start + group * HIDDEN);
    }
}

// The backward pass of norm_forward. `d` becomes the gradient of the residual, `dx` that of x. The partial sums are
// those of the norm's weight, the norm's bias, and the bias of x.
KERNEL __launch_bounds__(GROUPS * THREADS)
norm_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
              Span<const Place> places, Span<float> d, Span<product_t> dx, Span<float> partial, u32 n_rows) {
    __shared__ RowMask masks[ROWS];
    Rows rows, x;
    Row factors;
    float scales[ROWS_PER_GROUP];
    load(rows, d, n_rows);
    load(x, normed, n_rows);
    load_parameters(factors, weight, 0);
    load_scales(scales, scale, n_rows);
    find_masks(masks, drop, places, n_rows);
    Row sums[3];
    sums[1] = sum_of_rows(rows);
    sums[0] = norm_input_gradient(rows, x, factors, scales);
    EACH_ROW(r, start, n_rows) {
        store(rows[r], d, start);
        RowMask mask = masks[group_of_thread() * ROWS_PER_GROUP + r];
        EACH_COLUMN(i, c) rows[r][i] *= mask.factor(c);
        if (!dx.is_empty()) store_product(rows[r], dx, start);
    }
    sums[2] = sum_of_rows(rows);
    store_partials(sums, partial);
}

// The backward pass of sum_norm_forward. `d` is the gradient of y, `d_sum` that of the sum, to which the gradient of
// the norm's input is added. `dx` becomes the gradient of x. The partial sums are those of the norm's weight.
KERNEL __launch_bounds__(GROUPS * THREADS)
sum_norm_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
                  Span<const Place> places, Span<const float> d, Span<float> d_sum, Span<product_t> dx,
                  Span<float> partial, u32 n_rows) {
    __shared__ RowMask masks[ROWS];
    Rows rows, x, before;
    Row factors;
    float scales[ROWS_PER_GROUP];
    load(rows, d, n_rows);
    load(x, normed, n_rows);
    load(before, d_sum, n_rows);
    load_parameters(factors, weight, 0);
    load_scales(scales, scale, n_rows);
    find_masks(masks, drop, places, n_rows);
    Row sums[1] = {norm_input_gradient(rows, x, factors, scales)};
    store_partials(sums, partial);
    EACH_ROW(r, start, n_rows) {
        EACH_COLUMN(i, c) rows[r][i] += before[r][i];
        store(rows[r], d_sum, start);
        RowMask mask = masks[group_of_thread() * ROWS_PER_GROUP + r];
        EACH_COLUMN(i, c) rows[r][i] *= mask.factor(c);
        store_product(rows[r], dx, start);
    }
}

// The backward pass of embed_forward. `out` is the gradient of each row's three vectors. The partial sums are those of
// the norm's weight, the norm's bias, and the type vector.
KERNEL __launch_bounds__(GROUPS * THREADS)
embed_backward(Span<const float> weight, Span<const float> normed, Span<const float> scale, Drop drop,
               Span<const Place> places, Span<const float> d, Span<float> out, Span<float> partial, u32 n_rows) {
    __shared__ RowMask masks[ROWS];
    Rows rows, x;
    Row factors;
    float scales[ROWS_PER_GROUP];
    load(rows, d, n_rows);
    load(x, normed, n_rows);
    load_parameters(factors, weight, 0);
    load_scales(scales, scale, n_rows);
    find_masks(masks, drop, places, n_rows);
    __syncthreads();
    EACH_ROW(r, start, n_rows) {
        RowMask mask = masks[group_of_thread() * ROWS_PER_GROUP + r];
        EACH_COLUMN(i, c) rows[r][i] *= mask.factor(c);
    }
    Row sums[3];
    sums[1] = sum_of_rows(rows);
    sums[0] = norm_input_gradient(rows, x, factors, scales);
    EACH_ROW(r, start, n_rows) store(rows[r], out, start);
    sums[2] = sum_of_rows(rows);
    store_partials(sums, partial);
}
