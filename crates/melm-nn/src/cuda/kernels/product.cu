// A plain product for shapes that cuBLASLt has no kernel for: odd sizes of small models.

// One factor: element (i, j) is at i * row + j * column.
struct Factor {
    Span<const product_t> data;
    u64 row;
    u64 column;
    u64 batch;
};

// c[i, j] (+)= sum over k of a[i, k] b[k, j] + bias[j]. A thread an element, a z-block a batch.
KERNEL plain_product(Factor a, Factor b, Span<float> c, u64 c_row, u64 c_batch, Span<const float> bias, u32 m, u32 n, u32 k,
                     u32 accumulates) {
    u32 j = blockIdx.x * 16 + threadIdx.x % 16, i = blockIdx.y * 16 + threadIdx.x / 16;
    if (i >= m || j >= n) return;
    float sum = 0.0f;
    for (u32 l = 0; l < k; l++)
        sum += from_product(a.data[blockIdx.z * a.batch + i * a.row + l * a.column]) *
               from_product(b.data[blockIdx.z * b.batch + l * b.row + j * b.column]);
    if (!bias.is_empty()) sum += bias[j];
    u64 at = blockIdx.z * c_batch + i * c_row + j;
    c[at] = accumulates ? c[at] + sum : sum;
}
