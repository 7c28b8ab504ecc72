// A simple matrix product for shapes that cuBLASLt does not support: odd sizes of small models.

// One operand: element (i, j) is at i * row + j * column.
template <class T> struct Factor {
    Span<const T> data;
    u64 row;
    u64 column;
    u64 batch;
};

DEVICE float number(float x) { return x; }
#if BF16
DEVICE float number(product_t x) { return from_product(x); }
#endif

// c[i, j] (+)= sum over k of a[i, k] b[k, j] + bias[j]. One thread for each element; blocks in z are batches.
template <class T>
DEVICE void product(Factor<T> a, Factor<T> b, Span<float> c, u64 c_row, u64 c_batch, Span<const float> bias, u32 m, u32 n,
                    u32 k, u32 accumulates) {
    u32 j = blockIdx.x * 16 + threadIdx.x % 16, i = blockIdx.y * 16 + threadIdx.x / 16;
    if (i >= m || j >= n) return;
    float sum = 0.0f;
    for (u32 l = 0; l < k; l++)
        sum += number(a.data[blockIdx.z * a.batch + i * a.row + l * a.column]) *
               number(b.data[blockIdx.z * b.batch + l * b.row + j * b.column]);
    if (!bias.is_empty()) sum += bias[j];
    u64 at = blockIdx.z * c_batch + i * c_row + j;
    c[at] = accumulates ? c[at] + sum : sum;
}

KERNEL rounded_product(Factor<product_t> a, Factor<product_t> b, Span<float> c, u64 c_row, u64 c_batch,
                       Span<const float> bias, u32 m, u32 n, u32 k, u32 accumulates) {
    product(a, b, c, c_row, c_batch, bias, m, n, k, accumulates);
}

KERNEL plain_product(Factor<float> a, Factor<float> b, Span<float> c, u64 c_row, u64 c_batch, Span<const float> bias, u32 m,
                     u32 n, u32 k, u32 accumulates) {
    product(a, b, c, c_row, c_batch, bias, m, n, k, accumulates);
}
