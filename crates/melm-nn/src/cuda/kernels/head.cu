// The masked-LM head: from scores to errors and losses, and the best pieces.
//
// A row of scores belongs to one masked position and is `stride` wide. The columns after the vocabulary are padding, so
// that products are aligned. Each row is split into SEGMENTS segments, one for each block.

const u32 SEGMENTS = 8;
const u32 THREADS = 256;
// Means "no piece": the original of a padding row, and the candidate after the last one.
const u32 NO_PIECE = 0xffffffffu;

struct Segment {
    u32 row;
    u32 begin;
    u32 end;
};

// Segments start at multiples of four; the last segment ends at `end`.
DEVICE Segment segment(u32 end) {
    u32 size = ((end + SEGMENTS - 1) / SEGMENTS + 3) / 4 * 4;
    Segment s = {blockIdx.y, min(end, blockIdx.x * size), min(end, (blockIdx.x + 1) * size)};
    return s;
}

DEVICE float block_max(float x) {
    __shared__ float parts[THREADS / WARP];
    x = warp_max(x);
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    for (u32 w = 0; w < THREADS / WARP; w++) x = fmaxf(x, parts[w]);
    return x;
}

// The largest score and the sum of exponentials of each segment: totals[row, segment, 2]. One sweep is enough: a new
// largest score rescales the sum so far.
KERNEL score_totals(Span<const float> scores, Span<float> totals, u32 vocab, u32 stride) {
    Segment s = segment(vocab);
    u64 start = (u64)s.row * stride;
    float most = -INFINITY, sum = 0.0f;
    for (u32 first = s.begin + threadIdx.x * 4; first < s.end; first += THREADS * 4) {
        // Four scores can always be read, because the row is padded.
        float4 quad = *(const float4*)&scores[start + first];
        float x[4] = {quad.x, quad.y, quad.z, quad.w};
        float largest = most;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (first + i >= s.end) x[i] = -INFINITY;
            largest = fmaxf(largest, x[i]);
        }
        if (largest > most) {
            sum *= expf(most - largest);
            most = largest;
        }
#pragma unroll
        for (u32 i = 0; i < 4; i++) sum += expf(x[i] - most);
    }
    float largest = block_max(most);
    sum = sum_of_block<THREADS>(most == -INFINITY ? 0.0f : sum * expf(most - largest));
    if (threadIdx.x == 0) {
        u64 at = ((u64)s.row * SEGMENTS + blockIdx.x) * 2;
        totals[at] = largest;
        totals[at + 1] = sum;
    }
}

// The logarithm of a row's sum of exponentials: the softmax denominator.
DEVICE float log_total(Span<const float> totals, u32 row) {
    u64 at = (u64)row * SEGMENTS * 2;
    float most = -INFINITY;
    for (u32 s = 0; s < SEGMENTS; s++) most = fmaxf(most, totals[at + 2 * s]);
    double sum = 0.0;
    for (u32 s = 0; s < SEGMENTS; s++) sum += (double)totals[at + 2 * s + 1] * expf(totals[at + 2 * s] - most);
    return most + (float)log(sum);
}

// errors = weight * (probability - 1 at the original piece, probability elsewhere); 0 in the padding columns. Also
// computes the loss of each row. Both are 0 in rows without an original.
KERNEL score_errors(Span<const float> scores, Span<const float> totals, Span<const u32> originals, float weight,
                    Span<product_t> errors, Span<float> losses, u32 vocab, u32 stride) {
    Segment s = segment(stride);
    u64 start = (u64)s.row * stride;
    float total = log_total(totals, s.row);
    u32 original = originals[s.row];
    bool is_row = original != NO_PIECE;
    for (u32 first = s.begin + threadIdx.x * 4; first < s.end; first += THREADS * 4) {
        float4 quad = *(const float4*)&scores[start + first];
        float x[4] = {quad.x, quad.y, quad.z, quad.w};
        product_t out[4];
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 v = first + i;
            float error = weight * (expf(x[i] - total) - (v == original ? 1.0f : 0.0f));
            out[i] = to_product(is_row && v < vocab ? error : 0.0f);
        }
#if BF16
        *(ushort4*)&errors[start + first] = {out[0], out[1], out[2], out[3]};
#else
        *(float4*)&errors[start + first] = {out[0], out[1], out[2], out[3]};
#endif
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) losses[s.row] = is_row ? total - scores[start + original] : 0.0f;
}

// The gradient of the output bias: the sum of each column of the errors, in the order of the rows.
KERNEL bias_gradient(Span<const product_t> errors, Span<float> gradient, u32 n_rows, u32 stride, u32 accumulates) {
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= gradient.len) return;
    float sum = accumulates ? gradient[v] : 0.0f;
    for (u32 r = 0; r < n_rows; r++) sum += from_product(errors[(u64)r * stride + v]);
    gradient[v] = sum;
}

struct Candidate {
    float score;
    u32 piece;
};

// The higher score is better; of equal scores the lower piece.
DEVICE bool is_better(Candidate a, Candidate b) { return a.score > b.score || (a.score == b.score && a.piece < b.piece); }

DEVICE Candidate best_of_block(Candidate own) {
    __shared__ Candidate parts[THREADS / WARP];
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        Candidate other = {__shfl_xor_sync(EVERY_LANE, own.score, step), __shfl_xor_sync(EVERY_LANE, own.piece, step)};
        if (is_better(other, own)) own = other;
    }
    __syncthreads();
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = own;
    __syncthreads();
    for (u32 w = 0; w < THREADS / WARP; w++)
        if (is_better(parts[w], own)) own = parts[w];
    return own;
}

// The k best allowed pieces of each segment, best first. Each piece takes one sweep over the segment.
KERNEL best_of_segments(Span<const float> scores, Span<const u64> sets, Span<const u32> set_of, u32 words, u32 k,
                        Span<Candidate> best, u32 vocab, u32 stride) {
    Segment s = segment(vocab);
    u64 start = (u64)s.row * stride;
    Candidate last = {INFINITY, 0};
    for (u32 rank = 0; rank < k; rank++) {
        Candidate own = {-INFINITY, NO_PIECE};
        for (u32 v = s.begin + threadIdx.x; v < s.end; v += THREADS) {
            Candidate candidate = {scores[start + v], v};
            bool is_next = rank == 0 || is_better(last, candidate);
            if (!is_next || !is_better(candidate, own)) continue;
            if (!set_of.is_empty() && !(sets[(u64)set_of[s.row] * words + v / 64] >> (v % 64) & 1)) continue;
            own = candidate;
        }
        last = best_of_block(own);
        if (threadIdx.x == 0) best[((u64)s.row * SEGMENTS + blockIdx.x) * k + rank] = last;
        if (last.piece == NO_PIECE) {
            for (u32 r = rank + 1 + threadIdx.x; r < k; r += THREADS)
                best[((u64)s.row * SEGMENTS + blockIdx.x) * k + r] = last;
            return;
        }
    }
}

// The k best pieces of all segments with their log-probabilities, and each row's log_total. One thread for each row.
KERNEL best_of_rows(Span<const Candidate> best, Span<const float> totals, u32 k, Span<Candidate> out,
                    Span<float> log_totals, u32 n_rows) {
    u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_rows) return;
    float total = log_total(totals, row);
    log_totals[row] = total;
    u32 taken[SEGMENTS];
    for (u32 s = 0; s < SEGMENTS; s++) taken[s] = 0;
    for (u32 rank = 0; rank < k; rank++) {
        Candidate found = {-INFINITY, NO_PIECE};
        u32 from = 0;
        for (u32 s = 0; s < SEGMENTS; s++) {
            if (taken[s] == k) continue;
            Candidate candidate = best[((u64)row * SEGMENTS + s) * k + taken[s]];
            if (candidate.piece != NO_PIECE && is_better(candidate, found)) {
                found = candidate;
                from = s;
            }
        }
        if (found.piece != NO_PIECE) taken[from]++;
        found.score -= total;
        out[(u64)row * k + rank] = found;
    }
}

// The losses alone, without errors; 0 in rows without an original.
KERNEL score_losses(Span<const float> scores, Span<const float> totals, Span<const u32> originals, Span<float> losses,
                    u32 stride, u32 n_rows) {
    u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n_rows) return;
    u32 original = originals[row];
    losses[row] = original == NO_PIECE ? 0.0f : log_total(totals, row) - scores[(u64)row * stride + original];
}
