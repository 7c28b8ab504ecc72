// Adam over numbers in a row, the table's gradient included, and the norm of all gradients.

const u32 NORM_THREADS = 256;

struct Rule {
    float beta1;
    float beta2;
    float eps;
    float rate;   // learning rate over the first bias correction
    float root;   // one over the root of the second
    float keep;   // what weight decay leaves
};

DEVICE void update(Rule rule, float g, float& value, float& mean, float& square) {
    mean += (g - mean) * (1.0f - rule.beta1);
    square = square * rule.beta2 + g * g * (1.0f - rule.beta2);
    value = value * rule.keep - rule.rate * mean / (sqrtf(square) * rule.root + rule.eps);
}

// Four numbers at once, all spans aligned alike; `product` is the copy that products read, where it is another.
KERNEL adam(Span<float> values, Span<float> means, Span<float> squares, Span<const float> gradient,
            Span<product_t> product, Rule rule, Span<const float> clip) {
    float factor = clip.is_empty() ? 1.0f : clip[0];
    u64 step = (u64)gridDim.x * blockDim.x * 4;
    for (u64 i = ((u64)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < values.len; i += step) {
        if (i + 4 <= values.len) {
            float4 v = *(float4*)&values[i], m = *(float4*)&means[i], s = *(float4*)&squares[i];
            float4 g = *(const float4*)&gradient[i];
            update(rule, g.x * factor, v.x, m.x, s.x);
            update(rule, g.y * factor, v.y, m.y, s.y);
            update(rule, g.z * factor, v.z, m.z, s.z);
            update(rule, g.w * factor, v.w, m.w, s.w);
            *(float4*)&values[i] = v;
            *(float4*)&means[i] = m;
            *(float4*)&squares[i] = s;
#if BF16
            ushort4 p = {to_product(v.x), to_product(v.y), to_product(v.z), to_product(v.w)};
            *(ushort4*)&product[i] = p;
#endif
        } else {
            for (u64 j = i; j < values.len; j++) {
                update(rule, gradient[j] * factor, values[j], means[j], squares[j]);
#if BF16
                product[j] = to_product(values[j]);
#endif
            }
        }
    }
}

// Rows that the input looked up: piece u has the rows from starts[u] to starts[u + 1] of `order`.
struct Lookups {
    Span<const u32> pieces;
    Span<const u32> starts;
    Span<const u32> order;
    Span<const float> rows;
};

DEVICE float lookup_sum(Lookups lookups, u32 u, u32 c) {
    float sum = 0.0f;
    for (u32 i = lookups.starts[u]; i < lookups.starts[u + 1]; i++) sum += lookups.rows[(u64)lookups.order[i] * HIDDEN + c];
    return sum;
}

// Adds the looked-up rows from piece `first` on to the gradient of the table's rows that begin at `base`.
KERNEL add_lookups(Lookups lookups, u32 first, u32 base, Span<float> gradient) {
    u32 u = first + blockIdx.x;
    u64 row = (u64)(lookups.pieces[u] - base) * HIDDEN;
    for (u32 c = threadIdx.x; c < HIDDEN; c += blockDim.x) gradient[row + c] += lookup_sum(lookups, u, c);
}

DEVICE double block_total(double x) {
    __shared__ double parts[NORM_THREADS / WARP];
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    x = 0.0;
    for (u32 w = 0; w < NORM_THREADS / WARP; w++) x += parts[w];
    return x;
}

// Each block's share of the sum of squares.
KERNEL square_sums(Span<const float> x, Span<double> out) {
    double sum = 0.0;
    for (u64 i = (u64)blockIdx.x * NORM_THREADS + threadIdx.x; i < x.len; i += (u64)gridDim.x * NORM_THREADS)
        sum += (double)x[i] * x[i];
    sum = block_total(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// |P^T Z|^2 is the sum over the elements of P P^T * Z Z^T; P P^T comes in parts.
KERNEL gram_dot(Span<const float> errors, Span<const float> states, u32 n_parts, Span<double> out) {
    double sum = 0.0;
    for (u64 i = (u64)blockIdx.x * NORM_THREADS + threadIdx.x; i < states.len; i += (u64)gridDim.x * NORM_THREADS) {
        double e = 0.0;
        for (u32 p = 0; p < n_parts; p++) e += errors[(u64)p * states.len + i];
        sum += e * states[i];
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// What the looked-up rows add: their own square, and twice their product with the head's rows. A block a piece.
KERNEL lookup_norm(Lookups lookups, Span<const product_t> errors, Span<const product_t> states, u32 n_rows, u32 stride,
                   Span<double> out) {
    u32 piece = lookups.pieces[blockIdx.x];
    double sum = 0.0;
    for (u32 c = threadIdx.x; c < HIDDEN; c += NORM_THREADS) {
        float own = lookup_sum(lookups, blockIdx.x, c), head = 0.0f;
        for (u32 r = 0; r < n_rows; r++)
            head += from_product(errors[(u64)r * stride + piece]) * from_product(states[(u64)r * HIDDEN + c]);
        sum += (double)own * own + 2.0 * own * head;
    }
    sum = block_total(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// The norm, and what clipping to `most` leaves of a gradient. One block.
KERNEL finish_norm(Span<const double> parts, float most, Span<double> norm, Span<float> clip) {
    double sum = 0.0;
    for (u64 i = threadIdx.x; i < parts.len; i += NORM_THREADS) sum += parts[i];
    sum = block_total(sum);
    if (threadIdx.x == 0) {
        double length = sqrt(sum > 0.0 ? sum : 0.0);
        double left = most / (length + 1e-6);
        norm[0] = length;
        clip[0] = left < 1.0 ? (float)left : 1.0f;
    }
}
