"""The kernels of ``torch_triton``: all tensors of a step in two launches.

Imported only by that file, when a device is to be measured: this one needs Triton, and a compiler.

``measure`` gives each program one chunk of one tensor, reads it once and leaves the chunk's moments;
``merge`` joins the moments of each tensor's chunks. What numbers mean: docs/statistics.md.

* Up to 16-bit and binary32 elements are added in binary32 lanes, at most 33 to a lane, and folded to
  binary64. Deviations are taken around the mean of the chunk's first block, one of at most 33 blocks: what
  that is off costs at most a factor of 34 in the rounding error of ``m2``, whatever the data.
* A chunk whose sums are not finite, or whose squares are near the end of binary32's range, is read again in
  binary64 with everything counted. Wider elements are read like that at once.
* Zeros and signs are looked up in the bits: a denormal is no zero, whatever the device does with it.
"""

# Triton gives these functions a meaning of its own: no annotations but constexpr, no early return.
# mypy: ignore-errors

import triton
import triton.language as tl

# Kinds of elements; those from WIDE_FROM on are read in binary64.
F32, F16, BF16, I8, U8, I16, U16, BOOL, E4M3, E5M2 = range(10)
WIDE_FROM = 10
F64, I32, U32, I64, U64, C64, C128 = range(10, 17)

# What `measure` leaves per chunk, binary64: the number of its elements, and those that `merge` leaves per tensor
# (torch_layout.py names them).
COLUMNS = 13


@triton.jit
def _narrow(raw, KIND: tl.constexpr):
    """Elements of a narrow type as binary32, exactly."""
    if KIND == 2:  # bf16: the upper half of binary32, denormals too
        x = (raw.to(tl.int32) << 16).to(tl.float32, bitcast=True)
    elif KIND == 7:  # bool: any byte but 0 is 1
        x = (raw != 0).to(tl.float32)
    elif KIND == 8:  # f8 E4M3: half precision with another bias, and one magnitude that is NaN
        bits = raw.to(tl.int32)
        half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        x = half.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * 256.0
        x = tl.where((bits & 0x7F) == 0x7F, float("nan"), x)
    elif KIND == 9:  # f8 E5M2: the upper half of half precision
        x = (raw.to(tl.int32) << 8).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
    else:
        x = raw.to(tl.float32)
    return x


@triton.jit
def _wide(base, offsets, mask, KIND: tl.constexpr):
    """Elements of any type as binary64; of complex ones the modulus, NaN where a part is NaN."""
    if KIND >= 15:
        real = tl.load(base + 2 * offsets, mask=mask, other=0).to(tl.float64)
        imaginary = tl.load(base + 2 * offsets + 1, mask=mask, other=0).to(tl.float64)
        a = tl.abs(real)
        b = tl.abs(imaginary)
        most = tl.where(a > b, a, b)
        least = tl.where(a > b, b, a)
        ratio = least / tl.where(most > 0, most, 1.0)
        x = most * tl.sqrt(1.0 + ratio * ratio)
        infinite = (a == float("inf")) | (b == float("inf"))
        x = tl.where(infinite, float("inf"), x)
        x = tl.where((a != a) | (b != b), float("nan"), x)
    elif KIND < 10:
        x = _narrow(tl.load(base + offsets, mask=mask, other=0), KIND).to(tl.float64)
    else:
        x = tl.load(base + offsets, mask=mask, other=0).to(tl.float64)
    return x


@triton.jit
def _store(out, chunks, n, total, squares, m2, absolute, low, high, nan, posinf, neginf, zero, negative, big):
    tl.store(out, n)
    tl.store(out + chunks, total)
    tl.store(out + 2 * chunks, squares)
    tl.store(out + 3 * chunks, m2)
    tl.store(out + 4 * chunks, absolute)
    tl.store(out + 5 * chunks, low)
    tl.store(out + 6 * chunks, high)
    tl.store(out + 7 * chunks, nan)
    tl.store(out + 8 * chunks, posinf)
    tl.store(out + 9 * chunks, neginf)
    tl.store(out + 10 * chunks, zero)
    tl.store(out + 11 * chunks, negative)
    tl.store(out + 12 * chunks, big)


@triton.jit
def _wide_chunk(base, start, stop, out, chunks, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """One chunk in binary64, whatever it holds."""
    lane = tl.arange(0, BLOCK)
    offsets = start + lane
    mask = offsets < stop
    x = _wide(base, offsets, mask, KIND)
    usable = mask & (tl.abs(x) < float("inf"))
    sample = tl.minimum(stop - start, BLOCK).to(tl.float64)
    shift = tl.sum(tl.where(usable, x / sample, 0.0), axis=0)

    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    absolute = tl.zeros([BLOCK], tl.float64)
    d1 = tl.zeros([BLOCK], tl.float64)
    d2 = tl.zeros([BLOCK], tl.float64)
    low = tl.full([BLOCK], float("inf"), tl.float64)
    high = tl.full([BLOCK], -float("inf"), tl.float64)
    # Two counters to a lane: a chunk has fewer than 2^15 blocks.
    nan_posinf = tl.zeros([BLOCK], tl.int32)
    neginf_zero = tl.zeros([BLOCK], tl.int32)
    negative_big = tl.zeros([BLOCK], tl.int32)
    for block in range(0, tl.cdiv(stop - start, BLOCK)):
        offsets = start + block * BLOCK + lane
        mask = offsets < stop
        x = _wide(base, offsets, mask, KIND)
        x = tl.where(mask, x, 0.0)
        is_nan = x != x
        total += x
        squares += x * x
        absolute += tl.abs(x)
        d = tl.where(mask, x - shift, 0.0)
        d1 += d
        d2 += d * d
        low = tl.minimum(low, tl.where(mask & (x == x), x, float("inf")))
        high = tl.maximum(high, tl.where(mask & (x == x), x, -float("inf")))
        nan_posinf += is_nan.to(tl.int32) + ((x == float("inf")).to(tl.int32) << 16)
        neginf_zero += (x == -float("inf")).to(tl.int32) + ((mask & (x == 0.0)).to(tl.int32) << 16)
        negative_big += (x < 0.0).to(tl.int32) + ((tl.abs(x) >= 9007199254740992.0).to(tl.int32) << 16)
    n = (stop - start).to(tl.float64)
    s1 = tl.sum(d1, axis=0)
    m2 = tl.sum(d2, axis=0) - s1 * s1 / n
    m2 = tl.where(m2 < 0.0, 0.0, m2)
    _store(out, chunks, n, tl.sum(total, axis=0), tl.sum(squares, axis=0), m2, tl.sum(absolute, axis=0),
           tl.min(low, axis=0), tl.max(high, axis=0),
           tl.sum(nan_posinf & 0xFFFF, axis=0).to(tl.float64), tl.sum(nan_posinf >> 16, axis=0).to(tl.float64),
           tl.sum(neginf_zero & 0xFFFF, axis=0).to(tl.float64), tl.sum(neginf_zero >> 16, axis=0).to(tl.float64),
           tl.sum(negative_big & 0xFFFF, axis=0).to(tl.float64), tl.sum(negative_big >> 16, axis=0).to(tl.float64))


@triton.jit
def _counts(x):
    """Zeros in the lower half, numbers below zero in the upper one; of numbers that are no NaN."""
    bits = x.to(tl.int32, bitcast=True)
    nonzero = (bits & 0x7FFFFFFF) != 0
    return 1 - nonzero.to(tl.int32) + (((bits < 0) & nonzero).to(tl.int32) << 16)


@triton.jit
def _narrow_chunk(base, start, stop, out, chunks, KIND: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """One chunk in binary32 lanes; in binary64 if that shows that it must be."""
    lane = tl.arange(0, BLOCK)
    offsets = start + lane
    mask = offsets < stop
    x = _narrow(tl.load(base + offsets, mask=mask, other=0), KIND)
    sample = tl.minimum(stop - start, BLOCK).to(tl.float32)
    shift = tl.sum(tl.where(mask & (tl.abs(x) < float("inf")), x, 0.0), axis=0) / sample
    shift = tl.where(tl.abs(shift) < float("inf"), shift, 0.0)

    d1 = tl.zeros([BLOCK], tl.float32)
    d2 = tl.zeros([BLOCK], tl.float32)
    absolute = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    low = tl.full([BLOCK], float("inf"), tl.float32)
    high = tl.full([BLOCK], -float("inf"), tl.float32)
    counts = tl.zeros([BLOCK], tl.int32)

    # Whole spans: no mask, so that they are read 16 bytes at a time, and four blocks on their way at once.
    first = tl.cdiv(start, 4 * BLOCK)
    last = tl.maximum(stop // (4 * BLOCK), first)
    for span in range(first, last):
        # The compiler cannot know it of addresses from a table. (Said of an argument it would be lost.)
        place = tl.multiple_of(base + span * (4 * BLOCK) + lane, 16)
        raw0 = tl.load(place)
        raw1 = tl.load(place + BLOCK)
        raw2 = tl.load(place + 2 * BLOCK)
        raw3 = tl.load(place + 3 * BLOCK)
        for part in tl.static_range(4):
            if part == 0:
                x = _narrow(raw0, KIND)
            elif part == 1:
                x = _narrow(raw1, KIND)
            elif part == 2:
                x = _narrow(raw2, KIND)
            else:
                x = _narrow(raw3, KIND)
            d = x - shift
            d1 += d
            d2 += d * d
            absolute += tl.abs(x)
            squares += x * x
            low = tl.minimum(low, x)
            high = tl.maximum(high, x)
            counts += _counts(x)

    # What is before the first whole span (a tensor that begins off the grid of 16 bytes) and after the last.
    before = tl.minimum(stop, first * (4 * BLOCK))
    after = last * (4 * BLOCK)
    begin = start // BLOCK
    blocks_before = tl.where(before > start, tl.cdiv(before, BLOCK) - begin, 0)
    blocks_after = tl.where(stop > after, tl.cdiv(stop - after, BLOCK), 0)
    for block in range(0, blocks_before + blocks_after):
        is_before = block < blocks_before
        offsets = tl.where(is_before, (begin + block) * BLOCK, after + (block - blocks_before) * BLOCK) + lane
        mask = (offsets >= start) & (offsets < tl.where(is_before, before, stop))
        x = _narrow(tl.load(base + offsets, mask=mask, other=0), KIND)
        d = tl.where(mask, x - shift, 0.0)
        d1 += d
        d2 += d * d
        absolute += tl.where(mask, tl.abs(x), 0.0)
        squares += tl.where(mask, x * x, 0.0)
        low = tl.minimum(low, tl.where(mask, x, float("inf")))
        high = tl.maximum(high, tl.where(mask, x, -float("inf")))
        counts += tl.where(mask, _counts(x), 0)

    n = (stop - start).to(tl.float64)
    s1 = tl.sum(d1.to(tl.float64), axis=0)
    s2 = tl.sum(d2.to(tl.float64), axis=0)
    absolute_sum = tl.sum(absolute.to(tl.float64), axis=0)
    square_sum = tl.sum(squares.to(tl.float64), axis=0)
    least = tl.min(low, axis=0)
    most = tl.max(high, axis=0)
    top = tl.maximum(tl.abs(least), tl.abs(most))
    # 2^-30: below it squares of deviations come near binary32's denormals. NaN fails every comparison.
    plain = (absolute_sum < float("inf")) & (square_sum < float("inf")) & (s2 < float("inf")) \
        & ((top >= 9.313225746154785e-10) | (top == 0.0))
    if plain:
        m2 = s2 - s1 * s1 / n
        none = n * 0.0
        _store(out, chunks, n, n * shift.to(tl.float64) + s1, square_sum, tl.where(m2 < 0.0, 0.0, m2), absolute_sum,
               least.to(tl.float64), most.to(tl.float64), none, none, none,
               tl.sum(counts & 0xFFFF, axis=0).to(tl.float64), tl.sum(counts >> 16, axis=0).to(tl.float64), none)
    else:
        _wide_chunk(base, start, stop, out, chunks, KIND, WIDE)


@triton.jit(do_not_specialize=["tensors", "chunks"])
def measure(table, owner, partials, tensors, chunks, KINDS: tl.constexpr, CHUNK: tl.constexpr,
            BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """One program per chunk. ``table``: rows of ``tensors`` numbers: address on the grid of 16 bytes, elements
    between it and the first one, elements up to the end, kind, first chunk, chunks. ``owner``: the tensor of
    each chunk. ``partials``: COLUMNS rows of ``chunks``. KINDS: a bit per kind that occurs; the others are not
    compiled."""
    chunk = tl.program_id(0)
    column = table + tl.load(owner + chunk)
    address = tl.load(column)
    head = tl.load(column + tensors)
    end = tl.load(column + 2 * tensors)
    kind = tl.load(column + 3 * tensors)
    place = chunk - tl.load(column + 4 * tensors)
    start = tl.maximum(place * CHUNK, head)
    stop = tl.minimum((place + 1) * CHUNK, end)
    out = partials + chunk
    if KINDS & 0x00001:
        if kind == 0:
            _narrow_chunk(address.to(tl.pointer_type(tl.float32)), start, stop, out, chunks, 0, BLOCK, WIDE)
    if KINDS & 0x00002:
        if kind == 1:
            _narrow_chunk(address.to(tl.pointer_type(tl.float16)), start, stop, out, chunks, 1, BLOCK, WIDE)
    if KINDS & 0x00004:
        if kind == 2:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint16)), start, stop, out, chunks, 2, BLOCK, WIDE)
    if KINDS & 0x00008:
        if kind == 3:
            _narrow_chunk(address.to(tl.pointer_type(tl.int8)), start, stop, out, chunks, 3, BLOCK, WIDE)
    if KINDS & 0x00010:
        if kind == 4:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint8)), start, stop, out, chunks, 4, BLOCK, WIDE)
    if KINDS & 0x00020:
        if kind == 5:
            _narrow_chunk(address.to(tl.pointer_type(tl.int16)), start, stop, out, chunks, 5, BLOCK, WIDE)
    if KINDS & 0x00040:
        if kind == 6:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint16)), start, stop, out, chunks, 6, BLOCK, WIDE)
    if KINDS & 0x00080:
        if kind == 7:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint8)), start, stop, out, chunks, 7, BLOCK, WIDE)
    if KINDS & 0x00100:
        if kind == 8:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint8)), start, stop, out, chunks, 8, BLOCK, WIDE)
    if KINDS & 0x00200:
        if kind == 9:
            _narrow_chunk(address.to(tl.pointer_type(tl.uint8)), start, stop, out, chunks, 9, BLOCK, WIDE)
    if KINDS & 0x00400:
        if kind == 10:
            _wide_chunk(address.to(tl.pointer_type(tl.float64)), start, stop, out, chunks, 10, WIDE)
    if KINDS & 0x00800:
        if kind == 11:
            _wide_chunk(address.to(tl.pointer_type(tl.int32)), start, stop, out, chunks, 11, WIDE)
    if KINDS & 0x01000:
        if kind == 12:
            _wide_chunk(address.to(tl.pointer_type(tl.uint32)), start, stop, out, chunks, 12, WIDE)
    if KINDS & 0x02000:
        if kind == 13:
            _wide_chunk(address.to(tl.pointer_type(tl.int64)), start, stop, out, chunks, 13, WIDE)
    if KINDS & 0x04000:
        if kind == 14:
            _wide_chunk(address.to(tl.pointer_type(tl.uint64)), start, stop, out, chunks, 14, WIDE)
    if KINDS & 0x08000:
        if kind == 15:
            _wide_chunk(address.to(tl.pointer_type(tl.float32)), start, stop, out, chunks, 15, WIDE)
    if KINDS & 0x10000:
        if kind == 16:
            _wide_chunk(address.to(tl.pointer_type(tl.float64)), start, stop, out, chunks, 16, WIDE)


@triton.jit(do_not_specialize=["tensors", "chunks"])
def merge(table, partials, out, tensors, chunks, BLOCK: tl.constexpr):
    """One program per tensor joins its chunks (Chan, Golub and LeVeque, 1979, around the mean of all). ``out``:
    COLUMNS - 1 numbers per tensor."""
    tensor = tl.program_id(0)
    first = tl.load(table + 4 * tensors + tensor)
    many = tl.load(table + 5 * tensors + tensor)
    lane = tl.arange(0, BLOCK)
    n = tl.zeros([BLOCK], tl.float64)
    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    absolute = tl.zeros([BLOCK], tl.float64)
    low = tl.full([BLOCK], float("inf"), tl.float64)
    high = tl.full([BLOCK], -float("inf"), tl.float64)
    nan = tl.zeros([BLOCK], tl.float64)
    posinf = tl.zeros([BLOCK], tl.float64)
    neginf = tl.zeros([BLOCK], tl.float64)
    zero = tl.zeros([BLOCK], tl.float64)
    negative = tl.zeros([BLOCK], tl.float64)
    big = tl.zeros([BLOCK], tl.float64)
    for block in range(0, tl.cdiv(many, BLOCK)):
        place = block * BLOCK + lane
        mask = place < many
        at = partials + first + place
        n += tl.load(at, mask=mask, other=0.0)
        total += tl.load(at + chunks, mask=mask, other=0.0)
        squares += tl.load(at + 2 * chunks, mask=mask, other=0.0)
        absolute += tl.load(at + 4 * chunks, mask=mask, other=0.0)
        low = tl.minimum(low, tl.load(at + 5 * chunks, mask=mask, other=float("inf")))
        high = tl.maximum(high, tl.load(at + 6 * chunks, mask=mask, other=-float("inf")))
        nan += tl.load(at + 7 * chunks, mask=mask, other=0.0)
        posinf += tl.load(at + 8 * chunks, mask=mask, other=0.0)
        neginf += tl.load(at + 9 * chunks, mask=mask, other=0.0)
        zero += tl.load(at + 10 * chunks, mask=mask, other=0.0)
        negative += tl.load(at + 11 * chunks, mask=mask, other=0.0)
        big += tl.load(at + 12 * chunks, mask=mask, other=0.0)
    whole = tl.sum(total, axis=0)
    mean = whole / tl.sum(n, axis=0)
    m2s = tl.zeros([BLOCK], tl.float64)
    for block in range(0, tl.cdiv(many, BLOCK)):
        place = block * BLOCK + lane
        mask = place < many
        at = partials + first + place
        of_chunk = tl.load(at, mask=mask, other=1.0)
        apart = tl.load(at + chunks, mask=mask, other=0.0) / of_chunk - mean
        own = tl.load(at + 3 * chunks, mask=mask, other=0.0)
        m2s += tl.where(mask, own + of_chunk * apart * apart, 0.0)
    m2 = tl.sum(m2s, axis=0)
    least = tl.min(low, axis=0)
    most = tl.max(high, axis=0)
    nans = tl.sum(nan, axis=0)
    odd = nans + tl.sum(posinf, axis=0) + tl.sum(neginf, axis=0)
    m2 = tl.where(m2 != m2, float("inf"), m2)  # of finite numbers: their squares overflow
    m2 = tl.where(least == most, 0.0, m2)
    m2 = tl.where(odd > 0.0, float("nan"), m2)
    at = out + tensor * 12
    tl.store(at, whole)
    tl.store(at + 1, tl.sum(squares, axis=0))
    tl.store(at + 2, m2)
    tl.store(at + 3, tl.sum(absolute, axis=0))
    tl.store(at + 4, tl.where(nans > 0.0, float("nan"), least))
    tl.store(at + 5, tl.where(nans > 0.0, float("nan"), most))
    tl.store(at + 6, nans)
    tl.store(at + 7, tl.sum(posinf, axis=0))
    tl.store(at + 8, tl.sum(neginf, axis=0))
    tl.store(at + 9, tl.sum(zero, axis=0))
    tl.store(at + 10, tl.sum(negative, axis=0))
    tl.store(at + 11, tl.sum(big, axis=0))
