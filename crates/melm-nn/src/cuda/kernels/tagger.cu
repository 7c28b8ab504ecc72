// The tagger's linear layer over the first piece of each token, and its losses. All in f32, because they are small.

const u32 MOST_TAGS = 512;

// emissions = x W^T + bias. One warp for each token.
KERNEL classify(Span<const float> x, Span<const float> weight, Span<const float> bias, Span<float> emissions, u32 n_tags,
                u32 n_tokens) {
    u32 token = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (token >= n_tokens) return;
    for (u32 tag = 0; tag < n_tags; tag++) {
        float sum = 0.0f;
        for (u32 c = lane; c < HIDDEN; c += WARP) sum += x[(u64)token * HIDDEN + c] * weight[(u64)tag * HIDDEN + c];
        sum = warp_sum(sum);
        if (lane == 0) emissions[(u64)token * n_tags + tag] = sum + bias[tag];
    }
}

// dx = d W. One block for each token.
KERNEL classify_backward(Span<const float> d, Span<const float> weight, Span<float> dx, u32 n_tags) {
    for (u32 c = threadIdx.x; c < HIDDEN; c += blockDim.x) {
        float sum = 0.0f;
        for (u32 tag = 0; tag < n_tags; tag++)
            sum += d[(u64)blockIdx.x * n_tags + tag] * weight[(u64)tag * HIDDEN + c];
        dx[(u64)blockIdx.x * HIDDEN + c] = sum;
    }
}

// dW (+)= d^T x. One thread for each element.
KERNEL classify_weights(Span<const float> d, Span<const float> x, Span<float> gradient, u32 n_tags, u32 n_tokens,
                        u32 accumulates) {
    u32 c = blockIdx.x * blockDim.x + threadIdx.x, tag = blockIdx.y;
    if (c >= HIDDEN) return;
    u64 at = (u64)tag * HIDDEN + c;
    float sum = accumulates ? gradient[at] : 0.0f;
    for (u32 t = 0; t < n_tokens; t++) sum += d[(u64)t * n_tags + tag] * x[(u64)t * HIDDEN + c];
    gradient[at] = sum;
}

// The softmax loss of each token and its gradient. One thread for each token.
KERNEL softmax_loss(Span<const float> emissions, Span<const u32> tags, float weight, Span<float> d, Span<double> losses,
                    u32 n_tags, u32 n_tokens) {
    u32 token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= n_tokens) return;
    u64 start = (u64)token * n_tags;
    float most = -INFINITY;
    for (u32 tag = 0; tag < n_tags; tag++) most = fmaxf(most, emissions[start + tag]);
    double total = 0.0;
    for (u32 tag = 0; tag < n_tags; tag++) total += exp((double)emissions[start + tag] - most);
    for (u32 tag = 0; tag < n_tags; tag++) {
        double p = exp((double)emissions[start + tag] - most) / total;
        d[start + tag] = (float)(weight * (p - (tag == tags[token] ? 1.0 : 0.0)));
    }
    losses[token] = log(total) + most - emissions[start + tags[token]];
}

// The scores of a CRF. `allowed` is [tags + 1, tags + 1]; its last row is the start and its last column the end. It is
// empty if every transition is allowed.
struct Chain {
    Span<const float> start;
    Span<const float> transitions;  // [from, to]
    Span<const float> end;
    Span<const u8> allowed;
    u32 n_tags;
    u32 unused;

    DEVICE double score(u32 from, u32 to, float score) const {
        if (!allowed.is_empty() && !allowed[(u64)from * (n_tags + 1) + to]) return -INFINITY;
        return score;
    }
    DEVICE double starts(u32 tag) const { return score(n_tags, tag, start[tag]); }
    DEVICE double ends(u32 tag) const { return score(tag, n_tags, end[tag]); }
    DEVICE double follows(u32 from, u32 to) const {
        return score(from, to, transitions[(u64)from * n_tags + to]);
    }
};

// The loss of each sentence under the CRF, the gradient of its emissions, and in partial[sentence, :] the gradients of
// start, transition and end scores. One block for each sentence.
//
// Sums are in f64, as on the CPU. `before[tag]` is the logarithm of the sum over all tag sequences up to a token that end
// in `tag`. origins[token, to, from] is the probability of `from` at the previous token, given `to` at this one.
KERNEL chain_loss(Chain chain, Span<const float> emissions, Span<const u32> tags, Span<const u32> ends, float weight,
                  Span<double> origins, Span<double> marginals, Span<float> d, Span<float> partial,
                  Span<double> losses) {
    __shared__ double before[MOST_TAGS], own[MOST_TAGS];
    u32 n = chain.n_tags;
    u32 first = blockIdx.x == 0 ? 0 : ends[blockIdx.x - 1], n_tokens = ends[blockIdx.x] - first;
    u64 out = (u64)blockIdx.x * (n * n + 2 * n);
    if (n_tokens == 0) {
        for (u32 i = threadIdx.x; i < n * n + 2 * n; i += blockDim.x) partial[out + i] = 0.0f;
        if (threadIdx.x == 0) losses[blockIdx.x] = 0.0;
        return;
    }
    for (u32 tag = threadIdx.x; tag < n; tag += blockDim.x)
        before[tag] = chain.starts(tag) + emissions[(u64)first * n + tag];
    __syncthreads();
    for (u32 t = 1; t < n_tokens; t++) {
        u64 row = (u64)(first + t) * n;
        for (u32 to = threadIdx.x; to < n; to += blockDim.x) {
            double most = -INFINITY, total = 0.0;
            for (u32 from = 0; from < n; from++) most = fmax(most, before[from] + chain.follows(from, to));
            for (u32 from = 0; from < n; from++) {
                double share = most == -INFINITY ? 0.0 : exp(before[from] + chain.follows(from, to) - most);
                origins[(row + to) * n + from] = share;
                total += share;
            }
            for (u32 from = 0; from < n && total > 0.0; from++) origins[(row + to) * n + from] /= total;
            own[to] = most == -INFINITY ? most : most + log(total) + emissions[row + to];
        }
        __syncthreads();
        for (u32 tag = threadIdx.x; tag < n; tag += blockDim.x) before[tag] = own[tag];
        __syncthreads();
    }
    // Every thread computes the sums over the last token itself.
    double most = -INFINITY, total = 0.0;
    for (u32 tag = 0; tag < n; tag++) most = fmax(most, before[tag] + chain.ends(tag));
    for (u32 tag = 0; tag < n; tag++) total += exp(before[tag] + chain.ends(tag) - most);
    u64 last = (u64)(first + n_tokens - 1) * n;
    for (u32 tag = threadIdx.x; tag < n; tag += blockDim.x)
        own[tag] = marginals[last + tag] = exp(before[tag] + chain.ends(tag) - most) / total;
    __syncthreads();
    for (u32 t = n_tokens - 1; t > 0; t--) {
        u64 row = (u64)(first + t) * n;
        for (u32 from = threadIdx.x; from < n; from += blockDim.x) {
            double sum = 0.0;
            for (u32 to = 0; to < n; to++) sum += own[to] * origins[(row + to) * n + from];
            before[from] = marginals[row - n + from] = sum;
        }
        __syncthreads();
        for (u32 tag = threadIdx.x; tag < n; tag += blockDim.x) own[tag] = before[tag];
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < n * n; i += blockDim.x) {
        u32 from = i / n, to = i % n;
        double sum = 0.0;
        for (u32 t = 1; t < n_tokens; t++) {
            u64 row = (u64)(first + t) * n;
            sum += marginals[row + to] * origins[(row + to) * n + from];
            if (tags[first + t - 1] == from && tags[first + t] == to) sum -= 1.0;
        }
        partial[out + n + i] = (float)(weight * sum);
    }
    for (u32 i = threadIdx.x; i < n_tokens * n; i += blockDim.x) {
        u32 token = first + i / n, tag = i % n;
        double error = marginals[(u64)token * n + tag] - (tags[token] == tag ? 1.0 : 0.0);
        float value = (float)(weight * error);
        d[(u64)token * n + tag] = value;
        if (i / n == 0) partial[out + tag] = value;
        if (i / n == n_tokens - 1) partial[out + n + (u64)n * n + tag] = value;
    }
    if (threadIdx.x == 0) {
        double score = chain.starts(tags[first]) + chain.ends(tags[first + n_tokens - 1]);
        for (u32 t = 0; t < n_tokens; t++) {
            score += emissions[(u64)(first + t) * n + tags[first + t]];
            if (t > 0) score += chain.follows(tags[first + t - 1], tags[first + t]);
        }
        losses[blockIdx.x] = most + log(total) - score;
    }
}
