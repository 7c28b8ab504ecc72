// Shared by the kernels of attention: the rows of a block, the heads of a layer, the inputs of the backward pass.

// The rows of a block: from row `first` on of the sentence that starts at row `start` and has `length` rows.
struct Task {
    u32 start;
    u32 length;
    u32 first;
    u32 unused;
    u64 sentence;
};

struct Heads {
    Span<const float> qkv;  // [rows, 3, heads, head]
    u32 n_heads;
    float scale;
    Drop drop;
    Span<const float> frequencies;  // of the rotation, [head / 2]; read only with ROTARY
    u32 window;                     // the largest distance between a query and a key that it sees; read only with WINDOWED
    u32 unused;

    DEVICE u32 hidden() const { return n_heads * HEAD_SIZE; }
    // The start of a row's query (which = 0), key (1) or value (2).
    DEVICE u64 at(u32 row, u32 which) const {
        return (u64)row * 3 * hidden() + which * hidden() + blockIdx.y * HEAD_SIZE;
    }
    DEVICE RowMask mask(Task task, u32 position) const {
        return row_mask(drop, task.sentence, (u64)position * n_heads + blockIdx.y);
    }
#if WINDOWED
    DEVICE bool sees(u32 query, u32 key) const { return key <= query + window && query <= key + window; }
    // The positions of the other side that at least one of the `count` rows of the block sees.
    DEVICE u32 first_seen(Task task) const { return task.first > window ? task.first - window : 0; }
    DEVICE u32 end_seen(Task task, u32 count) const { return min(task.length, task.first + count + window); }
#else
    DEVICE bool sees(u32, u32) const { return true; }
    DEVICE u32 first_seen(Task) const { return 0; }
    DEVICE u32 end_seen(Task task, u32) const { return task.length; }
#endif
};

// Heads of models with rotary positions have an even size.
const u32 HALF_HEAD = (HEAD_SIZE + 1) / 2;

// Copies `count` rows of one head from x, where row r begins at start(r), into rows of shared memory. Unused rows, and
// columns between HEAD_SIZE and COLUMNS, become zeros. All loads are issued before the first is used. `convert` makes
// the stored value.
template <u32 COLUMNS, u32 THREADS, u32 N, u32 WIDTH, class Start, class Convert>
DEVICE void fill(float (&rows)[N][WIDTH], u32 count, Span<const float> x, Start start, Convert convert) {
    const u32 QUADS = COLUMNS / 4, PER_THREAD = (N * QUADS + THREADS - 1) / THREADS;
    float4 quads[PER_THREAD];
#pragma unroll
    for (u32 i = 0; i < PER_THREAD; i++) {
        u32 at = threadIdx.x + i * THREADS, r = at / QUADS, d = at % QUADS * 4;
        quads[i] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (r >= count) continue;
        u64 from = start(r) + d;
        if (HEAD_SIZE % 4 == 0) {
            if (d < HEAD_SIZE) quads[i] = *(const float4*)&x[from];
        } else {
            if (d < HEAD_SIZE) quads[i].x = x[from];
            if (d + 1 < HEAD_SIZE) quads[i].y = x[from + 1];
            if (d + 2 < HEAD_SIZE) quads[i].z = x[from + 2];
            if (d + 3 < HEAD_SIZE) quads[i].w = x[from + 3];
        }
    }
#pragma unroll
    for (u32 i = 0; i < PER_THREAD; i++) {
        u32 at = threadIdx.x + i * THREADS, r = at / QUADS, d = at % QUADS * 4;
        float4 quad = {convert(quads[i].x), convert(quads[i].y), convert(quads[i].z), convert(quads[i].w)};
        if (r < N) *(float4*)&rows[r][d] = quad;
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
