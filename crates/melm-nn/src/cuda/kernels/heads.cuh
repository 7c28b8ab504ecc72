// Shared by the kernels of attention: the rows of a block, and the heads of a layer.

// The rows of a block: from row `first` on of the sentence that starts at row `start` and has `length` rows.
struct Task {
    u32 start;
    u32 length;
    u32 first;
    u32 unused;
    u64 sentence;
};

const u32 N_HEADS = HIDDEN / HEAD_SIZE;

// The start of the head of this block in a row of HIDDEN columns.
DEVICE u64 head_at(u64 row) { return row * HIDDEN + blockIdx.y * HEAD_SIZE; }

// The place of the head of this block in rows with one value for each head.
DEVICE u64 value_at(u64 row) { return row * N_HEADS + blockIdx.y; }

struct Heads {
    Span<const float> qkv;  // [rows, 3, heads, head]
    float scale;
    u32 window;  // the largest distance between a query and a key that it sees; read only with WINDOWED
    Drop drop;
    Span<const float> frequencies;  // of the rotation, [head / 2]; read only with ROTARY
    // [rows, heads, n_words]; a bit is 1 where dropout keeps a weight; empty without dropout.
    Span<const u32> dropout_bits;
    u32 n_words;
    u32 unused;

    // The start of a row's query (which = 0), key (1) or value (2).
    DEVICE u64 at(u64 row, u32 which) const { return head_at(row * 3 + which); }
    DEVICE RowMask mask(Task task, u32 position) const { return row_mask(drop, task.sentence, value_at(position)); }
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

// Columns d to d + 3 of the row that begins at `start`. Columns from HEAD_SIZE on are zeros.
DEVICE float4 load_quad(Span<const float> x, u64 start, u32 d) {
    float4 quad = {0.0f, 0.0f, 0.0f, 0.0f};
    if (HEAD_SIZE % 4 == 0) {
        if (d < HEAD_SIZE) quad = *(const float4*)&x[start + d];
    } else {
        if (d < HEAD_SIZE) quad.x = x[start + d];
        if (d + 1 < HEAD_SIZE) quad.y = x[start + d + 1];
        if (d + 2 < HEAD_SIZE) quad.z = x[start + d + 2];
        if (d + 3 < HEAD_SIZE) quad.w = x[start + d + 3];
    }
    return quad;
}

// Some rows of one head, 4 columns at a time, on their way to shared memory: N rows of COLUMNS columns, distributed over
// the THREADS threads of a block. Rows from `count` on, and columns from HEAD_SIZE on, are zeros.
template <u32 COLUMNS, u32 THREADS, u32 N>
struct Quads {
    static const u32 PER_ROW = COLUMNS / 4, PER_THREAD = (N * PER_ROW + THREADS - 1) / THREADS;
    float4 x[PER_THREAD];

    // Reads the rows; row r begins at start(r). All loads are issued before the first is used.
    template <class Start>
    DEVICE void load(u32 count, Span<const float> from, Start start) {
#pragma unroll
        for (u32 i = 0; i < PER_THREAD; i++) {
            u32 at = threadIdx.x + i * THREADS, r = at / PER_ROW, d = at % PER_ROW * 4;
            x[i] = {0.0f, 0.0f, 0.0f, 0.0f};
            if (r >= count) continue;
            x[i] = load_quad(from, start(r), d);
        }
    }

    // Calls with(r, d, quad) for columns d to d + 3 of row r.
    template <class With>
    DEVICE void for_each(With with) const {
#pragma unroll
        for (u32 i = 0; i < PER_THREAD; i++) {
            u32 at = threadIdx.x + i * THREADS, r = at / PER_ROW, d = at % PER_ROW * 4;
            if (r < N) with(r, d, x[i]);
        }
    }
};
