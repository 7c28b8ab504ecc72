// The masked-LM head: from scores to errors and losses, and the best pieces.
//
// A row of scores belongs to one masked position and is `stride` wide. The columns after the vocabulary are padding, so
// that products are aligned. Each row is split into SEGMENTS segments, one for each block.

const u32 SEGMENTS = 16;
const u32 THREADS = 256;
// Quads of scores that a thread loads before it uses the first.
const u32 AT_ONCE = 4;
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

// Takes fewer instructions than expf. The relative error of exp(x) is about |x| * 1e-7.
DEVICE float exponential(float x) { return exp2f(x * 1.4426950408889634f); }

// The largest score and the sum of exponentials of each segment: totals[row, segment, 2]. One sweep is enough: a new
// largest score rescales the sum so far.
KERNEL score_totals(Span<const float> scores, Span<float> totals, u32 vocab, u32 stride) {
    Segment s = segment(vocab);
    u64 start = (u64)s.row * stride;
    float most = -INFINITY, sum = 0.0f;
    for (u32 first = s.begin + threadIdx.x * 4; first < s.end; first += AT_ONCE * THREADS * 4) {
        Quad quads[AT_ONCE];
#pragma unroll
        for (u32 q = 0; q < AT_ONCE; q++) {
            u32 v = first + q * THREADS * 4;
            // Four scores can always be read, because the row is padded.
            if (v < s.end) quads[q] = load_quad<true>(scores, start + v, 4);
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                if (v + i >= s.end) quads[q].x[i] = -INFINITY;
        }
        float largest = most;
#pragma unroll
        for (u32 q = 0; q < AT_ONCE; q++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) largest = fmaxf(largest, quads[q].x[i]);
        if (largest > most) {
            sum *= expf(most - largest);
            most = largest;
        }
#pragma unroll
        for (u32 q = 0; q < AT_ONCE; q++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) sum += exponential(quads[q].x[i] - most);
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

// The most rows of a call of score_errors.
const u32 MOST_ROWS = 256;
// A block of score_errors: the quads of columns, and the threads that share the rows of a quad.
const u32 ERROR_QUADS = 128;
const u32 ERROR_GROUPS = 4;
const u32 ERROR_THREADS = ERROR_QUADS * ERROR_GROUPS;

// errors = weight * (probability - 1 at the original piece, probability elsewhere); 0 in the padding columns. Also
// computes the loss of each row, and the gradient of the output bias, which is the sum of each column of the errors.
// Errors and losses are 0 in rows without an original.
//
// The rows are read from the last to the first: score_totals has read the last ones just before, so that they are still
// in the cache.
KERNEL score_errors(Span<const float> scores, Span<const float> totals, Span<const u32> originals, float weight,
                    Span<product_t> errors, Span<float> losses, Span<float> gradient, u32 n_rows, u32 stride,
                    u32 accumulates) {
    __shared__ float row_totals[MOST_ROWS];
    __shared__ u32 row_originals[MOST_ROWS];
    __shared__ float sums[ERROR_GROUPS][4 * ERROR_QUADS];
    u32 vocab = gradient.len;
    for (u32 row = threadIdx.x; row < n_rows; row += ERROR_THREADS) {
        float total = log_total(totals, row);
        u32 original = originals[row];
        row_totals[row] = total;
        row_originals[row] = original;
        if (blockIdx.x == 0)
            losses[row] = original == NO_PIECE ? 0.0f : total - scores[(u64)row * stride + original];
    }
    __syncthreads();
    u32 group = threadIdx.x / ERROR_QUADS, column = threadIdx.x % ERROR_QUADS * 4;
    u32 v = blockIdx.x * 4 * ERROR_QUADS + column;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 first = group; first < n_rows && v < stride; first += AT_ONCE * ERROR_GROUPS) {
        Quad quads[AT_ONCE];
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            u32 after = first + r * ERROR_GROUPS;
            if (after < n_rows) quads[r] = load_quad<true>(scores, (u64)(n_rows - 1 - after) * stride + v, 4);
        }
#pragma unroll
        for (u32 r = 0; r < AT_ONCE; r++) {
            u32 after = first + r * ERROR_GROUPS;
            if (after >= n_rows) break;
            u32 row = n_rows - 1 - after, original = row_originals[row];
            float total = row_totals[row];
            Quad error;
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                float x = weight * (exponential(quads[r].x[i] - total) - (v + i == original ? 1.0f : 0.0f));
                error.x[i] = original != NO_PIECE && v + i < vocab ? x : 0.0f;
                sum[i] += error.x[i];
            }
            store_rounded<true>(error, errors, (u64)row * stride + v, 4);
        }
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) sums[group][column + i] = sum[i];
    __syncthreads();
    u32 piece = blockIdx.x * 4 * ERROR_QUADS + threadIdx.x;
    if (piece >= vocab) return;
    float all = accumulates ? gradient[piece] : 0.0f;
    for (u32 g = 0; g < ERROR_GROUPS; g++) all += sums[g][threadIdx.x];
    gradient[piece] = all;
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
