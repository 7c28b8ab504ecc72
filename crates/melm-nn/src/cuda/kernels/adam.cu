// Adam's rule over consecutive parameters, and the norm of all gradients.

const u32 NORM_THREADS = 256;

struct Rule {
    float beta1;
    float beta2;
    float eps;
    float rate;   // learning rate divided by the first bias correction
    float root;   // one over the square root of the second bias correction
    float keep;   // the factor of weight decay
    u32 step;     // the number of the step, from 1
};

DEVICE void update(Rule rule, float g, float& value, float& mean, float& square) {
    mean += (g - mean) * (1.0f - rule.beta1);
    square = square * rule.beta2 + g * g * (1.0f - rule.beta2);
    value = value * rule.keep - rule.rate * mean / (sqrtf(square) * rule.root + rule.eps);
}

// The table rows that the input looked up. The gradients of the u-th looked-up piece are the rows order[starts[u]] to
// order[starts[u + 1] - 1]. of[piece] is u + 1, or 0 if the piece was not looked up.
struct Lookups {
    Span<const u32> pieces;
    Span<const u32> starts;
    Span<const u32> order;
    Span<const float> rows;
    Span<u32> of;
};

DEVICE float lookup_sum(Lookups lookups, u32 u, u32 c) {
    float sum = 0.0f;
    for (u32 i = lookups.starts[u]; i < lookups.starts[u + 1]; i++) sum += lookups.rows[(u64)lookups.order[i] * HIDDEN + c];
    return sum;
}

// Reads four numbers, or the last n < 4.
template <class T>
DEVICE void load4(float out[4], Span<T> from, u64 i, u32 n) {
    if (n == 4 && (u64)&from[i] % 16 == 0) {
        float4 quad = *(const float4*)&from[i];
        out[0] = quad.x, out[1] = quad.y, out[2] = quad.z, out[3] = quad.w;
    } else {
#pragma unroll
        for (u32 j = 0; j < 4; j++) out[j] = j < n ? from[i + j] : 0.0f;
    }
}

DEVICE void store4(const float x[4], Span<float> to, u64 i, u32 n) {
    if (n == 4 && (u64)&to[i] % 16 == 0) {
        *(float4*)&to[i] = {x[0], x[1], x[2], x[3]};
    } else {
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            if (j < n) to[i + j] = x[j];
    }
}

// Enters the looked-up pieces into `of`, or removes them again.
KERNEL list_lookups(Lookups lookups, u32 enters) {
    u32 u = blockIdx.x * blockDim.x + threadIdx.x;
    if (u < lookups.pieces.len) lookups.of[lookups.pieces[u]] = enters ? u + 1 : 0;
}

// Each thread changes four numbers. `product` is the bf16 copy of the weights, or empty. With lookups the numbers are
// table rows from `first` on, and the gradients of looked-up rows are added to `gradient`. `failed` is the number of the
// first step with a value that is not finite, or 0. After such a step nothing changes any more.
KERNEL adam(Span<float> values, Span<float> means, Span<float> squares, Span<const float> gradient,
            Span<product_t> product, Rule rule, Span<const float> clip, Span<u32> failed, Lookups lookups, u32 first) {
    if (failed[0] != 0) return;
    u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i >= values.len) return;
    u32 n = values.len - i < 4 ? (u32)(values.len - i) : 4;
    float v[4], m[4], s[4], g[4];
    load4(v, values, i, n);
    load4(m, means, i, n);
    load4(s, squares, i, n);
    load4(g, gradient, i, n);
    float factor = clip.is_empty() ? 1.0f : clip[0];
    if (!lookups.of.is_empty()) {
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            if (j >= n) break;
            u32 row = (u32)((i + j) / HIDDEN), u = lookups.of[first + row];
            if (u != 0) g[j] += lookup_sum(lookups, u - 1, (u32)((i + j) % HIDDEN));
        }
    }
#pragma unroll
    for (u32 j = 0; j < 4; j++)
        if (j < n) {
            update(rule, g[j] * factor, v[j], m[j], s[j]);
            if (!is_finite(v[j]) || !is_finite(s[j])) failed[0] = rule.step;
        }
    store4(v, values, i, n);
    store4(m, means, i, n);
    store4(s, squares, i, n);
#if BF16
    if (n == 4 && (u64)&product[i] % 8 == 0) {
        *(ushort4*)&product[i] = {to_product(v[0]), to_product(v[1]), to_product(v[2]), to_product(v[3])};
    } else {
        for (u32 j = 0; j < n; j++) product[i + j] = to_product(v[j]);
    }
#endif
}

// Adds the gradients of looked-up rows to the gradient of the whole table: for tests.
KERNEL add_lookups(Lookups lookups, Span<float> gradient) {
    u64 row = (u64)lookups.pieces[blockIdx.x] * HIDDEN;
    for (u32 c = threadIdx.x; c < HIDDEN; c += blockDim.x) gradient[row + c] += lookup_sum(lookups, blockIdx.x, c);
}

// Vectors that a thread loads before it uses the first.
const u32 VECTORS_AT_ONCE = 8;

DEVICE float square_of(float4 v) { return v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w); }

// The sum of squares; each block writes its part.
KERNEL __launch_bounds__(NORM_THREADS, 4) square_sums(Span<const float> x, Span<double> out) {
    double sum = 0.0;
    u64 n_quads = has_vectors(x, 4) ? x.len / 4 : 0, step = (u64)gridDim.x * NORM_THREADS;
    u64 i = (u64)blockIdx.x * NORM_THREADS + threadIdx.x;
    for (; i + (VECTORS_AT_ONCE - 1) * step < n_quads; i += VECTORS_AT_ONCE * step) {
        float4 vectors[VECTORS_AT_ONCE];
#pragma unroll
        for (u32 v = 0; v < VECTORS_AT_ONCE; v++) vectors[v] = *vector_at<const float4>(x, 4 * (i + v * step));
#pragma unroll
        for (u32 v = 0; v < VECTORS_AT_ONCE; v++) sum += square_of(vectors[v]);
    }
    for (; i < n_quads; i += step) sum += square_of(*vector_at<const float4>(x, 4 * i));
    for (i = 4 * n_quads + (u64)blockIdx.x * NORM_THREADS + threadIdx.x; i < x.len; i += step) sum += (double)x[i] * x[i];
    sum = sum_of_block<NORM_THREADS>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// |P^T Z|^2 is the sum over all elements of P P^T times those of Z Z^T. P P^T is given in parts.
KERNEL gram_dot(Span<const float> errors, Span<const float> states, u32 n_parts, Span<double> out) {
    double sum = 0.0;
    for (u64 i = (u64)blockIdx.x * NORM_THREADS + threadIdx.x; i < states.len; i += (u64)gridDim.x * NORM_THREADS) {
        double e = 0.0;
        for (u32 p = 0; p < n_parts; p++) e += errors[(u64)p * states.len + i];
        sum += e * states[i];
    }
    sum = sum_of_block<NORM_THREADS>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Copies the columns of the looked-up pieces to the rows of `out`. One block for each piece. The first column of `errors`
// belongs to the piece `first`.
KERNEL pick_columns(Lookups lookups, Span<const product_t> errors, u32 n_rows, u32 stride, u32 first,
                    Span<product_t> out) {
    u32 column = lookups.pieces[blockIdx.x] - first;
    for (u32 r = threadIdx.x; r < n_rows; r += blockDim.x)
        out[(u64)blockIdx.x * n_rows + r] = errors[(u64)r * stride + column];
}

// What the looked-up rows add to the squared norm: their own square, and twice their product with the head's part of the
// gradient. `head` has that part for each looked-up piece; it is empty if there is none. One block for each piece.
KERNEL lookup_norm(Lookups lookups, Span<const float> head, Span<double> out) {
    double sum = 0.0;
    for (u32 c = threadIdx.x; c < HIDDEN; c += NORM_THREADS) {
        float own = lookup_sum(lookups, blockIdx.x, c);
        sum += (double)own * own;
        if (!head.is_empty()) sum += 2.0 * own * head[(u64)blockIdx.x * HIDDEN + c];
    }
    sum = sum_of_block<NORM_THREADS>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// The norm, and the factor that clips gradients to the norm `most`. A norm that is not finite makes the step fail. One
// block.
KERNEL finish_norm(Span<const double> parts, float most, Span<double> norm, Span<float> clip, u32 step,
                   Span<u32> failed) {
    double sum = 0.0;
    for (u64 i = threadIdx.x; i < parts.len; i += NORM_THREADS) sum += parts[i];
    sum = sum_of_block<NORM_THREADS>(sum);
    if (threadIdx.x == 0) {
        // Rounding can make the sum negative. A NaN stays a NaN.
        double length = sqrt(sum < 0.0 ? 0.0 : sum);
        double left = most / (length + 1e-6);
        norm[0] = length;
        if (!is_finite(length) && failed[0] == 0) failed[0] = step;
        clip[0] = left < 1.0 ? (float)left : 1.0f;
    }
}
