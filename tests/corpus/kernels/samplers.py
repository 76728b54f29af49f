"""Sampling: penalties, temperature with gumbel noise, top-k and top-p by sorting, drafts accepted or resampled."""

import torch
import triton
import triton.language as tl


@triton.jit
def penalties_kernel(logits_ptr, counts_ptr, prompt_ptr, presence_ptr, frequency_ptr, repetition_ptr, vocab, stride: "tl.int64", BLOCK: tl.constexpr):
    request = tl.program_id(0)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = token < vocab
    logits = tl.load(logits_ptr + request * stride + token, mask=mask).to(tl.float32)
    counts = tl.load(counts_ptr + request * vocab + token, mask=mask, other=0)
    in_prompt = tl.load(prompt_ptr + request * vocab + token, mask=mask, other=0).to(tl.int1)
    repetition = tl.load(repetition_ptr + request)
    scale = tl.where((counts > 0) | in_prompt, repetition, 1.0)
    logits *= tl.where(logits > 0, 1.0 / scale, scale)
    logits -= tl.load(frequency_ptr + request) * counts
    logits -= tl.load(presence_ptr + request) * (counts > 0)
    tl.store(logits_ptr + request * stride + token, logits, mask=mask)


@triton.jit
def gumbel_sample_kernel(logits_ptr, ids_ptr, temperature_ptr, seeds_ptr, positions_ptr, vocab, BLOCK: tl.constexpr):
    request = tl.program_id(0)
    temperature = tl.load(temperature_ptr + request).to(tl.float32)
    seed = tl.load(seeds_ptr + request)
    offset = tl.load(positions_ptr + request) * vocab
    best = -float("inf")
    best_id = 0
    for start in range(0, vocab, BLOCK):
        token = start + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + request * vocab + token, mask=token < vocab, other=-float("inf")).to(tl.float32)
        if temperature != 0.0:
            u = tl.rand(seed, offset + token).to(tl.float64)
            noise = -tl.log(-tl.log(u + 1e-20) + 1e-20).to(tl.float32)
            logits = logits / temperature + tl.where(token < vocab, noise, 0.0)
        value, at = tl.max(logits, axis=0, return_indices=True)
        if value > best:
            best = value
            best_id = start + at
    tl.store(ids_ptr + request, best_id)


@triton.jit
def top_k_top_p_kernel(probs_ptr, out_ptr, k_ptr, p_ptr, min_p, vocab, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    probs = tl.load(probs_ptr + row * vocab + at, mask=at < vocab, other=0.0)
    ordered = tl.sort(probs, descending=True)
    cumulated = tl.cumsum(ordered, 0)
    keep = ((cumulated - ordered) < tl.load(p_ptr + row)) & (at < tl.load(k_ptr + row))
    threshold = tl.min(tl.where(keep, ordered, float("inf")))
    threshold = tl.maximum(threshold, min_p * tl.max(probs))
    kept = tl.where(probs >= threshold, probs, 0.0)
    tl.store(out_ptr + row * vocab + at, kept / tl.sum(kept), mask=at < vocab)


@triton.jit
def top_k_threshold_kernel(logits_ptr, out_ptr, vocab, K: tl.constexpr, BLOCK: tl.constexpr):
    """Keep the best K of every block; a second launch over what is left finishes."""
    row, block = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * vocab + at, mask=at < vocab, other=-float("inf"))
    best = tl.topk(x, K)
    tl.store(out_ptr + (row * tl.num_programs(1) + block) * K + tl.arange(0, K), best)


@triton.jit(do_not_specialize=["max_spec_len"])
def rejection_random_sample_kernel(
    output_ptr, cu_draft_ptr, draft_ids_ptr, draft_probs_ptr, target_probs_ptr, bonus_ptr, recovered_ptr, uniform_ptr,
    is_greedy_ptr, max_spec_len, vocab, NO_DRAFT_PROBS: tl.constexpr,
):
    request = tl.program_id(0)
    if tl.load(is_greedy_ptr + request):
        return
    start = 0 if request == 0 else tl.load(cu_draft_ptr + request - 1)
    count = tl.load(cu_draft_ptr + request) - start
    rejected = False
    for i in range(count):
        if not rejected:
            draft = tl.load(draft_ids_ptr + start + i)
            draft_prob = 1.0 if NO_DRAFT_PROBS else tl.load(draft_probs_ptr + (start + i) * vocab + draft)
            target_prob = tl.load(target_probs_ptr + (start + i) * vocab + draft)
            if draft_prob > 0 and target_prob / draft_prob >= tl.load(uniform_ptr + start + i):
                token = draft
            else:
                rejected = True
                token = tl.load(recovered_ptr + start + i)
            tl.store(output_ptr + request * (max_spec_len + 1) + i, token)
    if not rejected:
        tl.store(output_ptr + request * (max_spec_len + 1) + count, tl.load(bonus_ptr + request))


@triton.jit
def expand_kernel(output_ptr, input_ptr, cu_ptr, replace_from, replace_to, MAX_NUM_TOKENS: tl.constexpr):
    request = tl.program_id(0)
    start = 0
    if request != 0:
        start = tl.load(cu_ptr + request - 1)
    count = tl.load(cu_ptr + request) - start
    value = tl.load(input_ptr + request)
    value = tl.where(value == replace_from, replace_to, value)
    offset = tl.arange(0, MAX_NUM_TOKENS)
    tl.store(output_ptr + start + offset, value, mask=offset < count)


@triton.jit
def apply_bitmask_kernel(logits_ptr, bitmask_ptr, indices_ptr, vocab, words, BLOCK: tl.constexpr):
    work = tl.program_id(0)
    row = tl.load(indices_ptr + work) if indices_ptr is not None else work
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(bitmask_ptr + row * words + at // 32, mask=at // 32 < words, other=0)
    allowed = ((word >> (at % 32)) & 1) == 0
    tl.store(logits_ptr + row * vocab + at, -float("inf"), mask=allowed & (at < vocab))


if __name__ == "__main__":
    dev = "cuda"
    requests, vocab = 4, 1000
    logits = torch.randn(requests, vocab, device=dev)
    counts = torch.zeros(requests, vocab, device=dev, dtype=torch.int32)
    ones = torch.ones(requests, device=dev)
    penalties_kernel[(requests, 2)](logits, counts, counts.bool(), ones, ones, ones, vocab, logits.stride(0), BLOCK=512)
    ids = torch.empty(requests, device=dev, dtype=torch.int64)
    gumbel_sample_kernel[(requests,)](logits, ids, ones, ids, ids.int(), vocab, BLOCK=512)
    probs = torch.softmax(logits[:, :256], dim=-1)
    top_k_top_p_kernel[(requests,)](probs, torch.empty_like(probs), torch.full((requests,), 50, device=dev), ones * 0.9, 0.02, 256, BLOCK=256)
    top_k_threshold_kernel[(requests, 4)](logits, torch.empty(requests, 4, 16, device=dev), vocab, K=16, BLOCK=256)
    cu = torch.tensor([1, 3, 3, 6], device=dev, dtype=torch.int32)
    draft = torch.randint(0, vocab, (6,), device=dev, dtype=torch.int32)
    out = torch.full((requests, 4), -1, device=dev, dtype=torch.int32)
    target = torch.rand(6, vocab, device=dev)
    for no_probs in (True, False):
        rejection_random_sample_kernel[(requests,)](
            out, cu, draft, None if no_probs else target, target, draft, draft, torch.rand(6, device=dev, dtype=torch.float64),
            torch.zeros(requests, device=dev, dtype=torch.bool), 3, vocab, NO_DRAFT_PROBS=no_probs,
        )
    expand_kernel[(requests,)](torch.empty(6, device=dev), ones, cu, 0.0, 1.0, MAX_NUM_TOKENS=32)
    mask = torch.full((requests, 32), -1, device=dev, dtype=torch.int32)
    apply_bitmask_kernel[(requests, 2)](logits, mask, None, vocab, 32, BLOCK=512)
    apply_bitmask_kernel[(2, 2)](logits.half(), mask, torch.tensor([0, 2], device=dev, dtype=torch.int32), vocab, 32, BLOCK=512)
