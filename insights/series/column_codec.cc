#include "insights/series/column_codec.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "insights/series/deflated_bytes.h"

namespace tocsin::insights {
namespace {

constexpr std::size_t kWord = 8;
constexpr std::size_t kMostRows = 1U << 16U;
constexpr std::size_t kMostColumns = 4096;
constexpr std::size_t kMaskBits = 64;

// How the words of one column are written.
enum class Packing : std::uint8_t {
  plain = 0,     // as they are
  shuffled = 1,  // all first bytes, all second ones, …, deflated
  constant = 2,  // one word
};

enum class Numbers : std::uint8_t { any = 0, whole = 1 };

template <typename T>
void put_number(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// What is left to be read; a read beyond its end is told by `good`.
struct RestOfBytes {
  std::string_view bytes;
  bool good = true;

  std::string_view take(std::size_t size) {
    if (size > bytes.size()) {
      good = false;
      return {};
    }
    const std::string_view out = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return out;
  }
  template <typename T>
  T number() {
    T out{};
    if (const auto from = take(sizeof out); good) std::memcpy(&out, from.data(), sizeof out);
    return out;
  }
};

// All first bytes of the items, then all second ones, …
std::string shuffled(const char* from, std::size_t count, std::size_t width) {
  std::string out(count * width, '\0');
  for (std::size_t byte = 0; byte < width; ++byte) {
    for (std::size_t at = 0; at < count; ++at) out[byte * count + at] = from[at * width + byte];
  }
  return out;
}
void unshuffle(const std::string& from, std::size_t count, std::size_t width, char* to) {
  for (std::size_t byte = 0; byte < width; ++byte) {
    for (std::size_t at = 0; at < count; ++at) to[at * width + byte] = from[byte * count + at];
  }
}

std::optional<std::string> inflated(std::string_view bytes, std::size_t size) {
  std::string out(size, '\0');
  if (!inflate_to(bytes, out.data(), size)) return std::nullopt;
  return out;
}

// `words`: so many of 8 bytes each.
void put_words(std::string& out, const void* words, std::size_t count, bool pack) {
  const auto* bytes = static_cast<const char*>(words);
  const bool constant = std::memcmp(bytes, bytes + kWord, (count - 1) * kWord) == 0;
  put_number(out, constant ? Packing::constant : pack ? Packing::shuffled : Packing::plain);
  const std::size_t before = out.size();
  put_number(out, std::uint32_t{0});  // its size, when it is known
  if (constant) {
    out.append(bytes, kWord);
  } else if (pack) {
    append_deflated(shuffled(bytes, count, kWord), out);
  } else {
    out.append(bytes, count * kWord);
  }
  const auto size = static_cast<std::uint32_t>(out.size() - before - sizeof(std::uint32_t));
  std::memcpy(out.data() + before, &size, sizeof size);
}

std::optional<std::vector<std::uint64_t>> take_words(RestOfBytes& rest, std::size_t count) {
  const auto how = rest.number<Packing>();
  const auto body = rest.take(rest.number<std::uint32_t>());
  if (!rest.good) return std::nullopt;
  std::vector<std::uint64_t> out(count);
  if (how == Packing::constant) {
    if (body.size() != kWord) return std::nullopt;
    std::memcpy(&out[0], body.data(), kWord);
    for (auto& word : out) word = out[0];
    return out;
  }
  if (how == Packing::plain) {
    if (body.size() != count * kWord) return std::nullopt;
    std::memcpy(out.data(), body.data(), body.size());
    return out;
  }
  if (how != Packing::shuffled) return std::nullopt;
  const auto bytes = inflated(body, count * kWord);
  if (!bytes) return std::nullopt;
  unshuffle(*bytes, count, kWord, reinterpret_cast<char*>(out.data()));
  return out;
}

// Steps are mostly as far apart as the ones before: differences of differences are mostly 0.
std::vector<std::uint64_t> bends_of(const std::vector<std::int64_t>& x) {
  std::vector<std::uint64_t> out;
  out.reserve(x.size());
  std::uint64_t before = 0;
  std::uint64_t stride = 0;
  for (const std::int64_t one : x) {
    const std::uint64_t now = static_cast<std::uint64_t>(one) - before;
    const auto bend = static_cast<std::int64_t>(now - stride);
    out.push_back((static_cast<std::uint64_t>(bend) << 1U) ^
                  static_cast<std::uint64_t>(bend >> 63));
    stride = now;
    before = static_cast<std::uint64_t>(one);
  }
  return out;
}
// Times and counts are whole numbers: they bend as steps do.
bool all_whole(const std::vector<double>& column) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  for (const double one : column) {
    if (!(std::fabs(one) < kExact) || std::trunc(one) != one || (one == 0 && std::signbit(one)))
      return false;
  }
  return true;
}

std::vector<std::int64_t> unbent(const std::vector<std::uint64_t>& bends) {
  std::vector<std::int64_t> out;
  out.reserve(bends.size());
  std::uint64_t at = 0;
  std::uint64_t stride = 0;
  for (const std::uint64_t one : bends) {
    stride += (one >> 1U) ^ (~(one & 1U) + 1U);
    at += stride;
    out.push_back(static_cast<std::int64_t>(at));
  }
  return out;
}

}  // namespace

void SeriesRows::append(const SeriesRows& more, std::size_t from, std::size_t count) {
  const auto range = [&](const auto& of) { return of.begin() + static_cast<std::ptrdiff_t>(from); };
  const auto many = static_cast<std::ptrdiff_t>(count);
  x.insert(x.end(), range(more.x), range(more.x) + many);
  for (std::size_t k = 0; k < columns.size(); ++k)
    columns[k].insert(columns[k].end(), range(more.columns[k]), range(more.columns[k]) + many);
}

void encode_rows(const SeriesRows& rows, bool pack, std::string& out) {
  out.clear();
  put_number(out, static_cast<std::uint32_t>(rows.size()));
  put_number(out, static_cast<std::uint32_t>(rows.columns.size()));
  if (rows.size() == 0) return;
  put_words(out, bends_of(rows.x).data(), rows.size(), pack);
  for (const auto& column : rows.columns) {
    const bool whole = pack && all_whole(column);
    put_number(out, whole ? Numbers::whole : Numbers::any);
    if (whole) {
      const std::vector<std::int64_t> numbers(column.begin(), column.end());
      put_words(out, bends_of(numbers).data(), numbers.size(), pack);
    } else {
      put_words(out, column.data(), column.size(), pack);
    }
  }
}

namespace {

void pass_words(RestOfBytes& rest) {
  rest.take(sizeof(Packing));
  rest.take(rest.number<std::uint32_t>());
}

bool take_column(RestOfBytes& rest, std::size_t count, std::vector<double>& out) {
  const auto numbers = rest.number<Numbers>();
  const auto words = take_words(rest, count);
  if (!words) return false;
  if (numbers == Numbers::whole) {
    for (const std::int64_t one : unbent(*words)) out.push_back(static_cast<double>(one));
    return true;
  }
  out.resize(count);
  std::memcpy(out.data(), words->data(), count * kWord);
  return true;
}

}  // namespace

std::optional<SeriesRows> decode_columns(std::string_view bytes, std::uint64_t wanted) {
  RestOfBytes rest{bytes};
  const auto count = rest.number<std::uint32_t>();
  const auto columns = rest.number<std::uint32_t>();
  if (!rest.good || count > kMostRows || columns > kMostColumns) return std::nullopt;
  SeriesRows out(columns);
  if (count == 0) return out;
  const auto bends = take_words(rest, count);
  if (!bends) return std::nullopt;
  out.x = unbent(*bends);
  for (std::size_t at = 0; at < columns; ++at) {
    if (at < kMaskBits && (wanted >> at & 1U) == 0) {
      rest.take(sizeof(Numbers));
      pass_words(rest);
    } else if (!take_column(rest, count, out.columns[at])) {
      return std::nullopt;
    }
  }
  return rest.good ? std::optional<SeriesRows>(std::move(out)) : std::nullopt;
}

std::optional<SeriesRows> decode_rows(std::string_view bytes) {
  return decode_columns(bytes, kAllColumns);
}

void encode_block(const Buckets& buckets, std::int64_t first, bool pack, std::string& out) {
  std::uint64_t there = 0;
  std::vector<Bucket> kept;
  for (auto at = buckets.lower_bound(first); at != buckets.end(); ++at) {
    if (at->first >= first + kBlockBuckets) break;
    there |= std::uint64_t{1} << static_cast<std::uint64_t>(at->first - first);
    kept.push_back(at->second);
  }
  const auto* bytes = reinterpret_cast<const char*>(kept.data());
  out.clear();
  put_number(out, pack ? Packing::shuffled : Packing::plain);
  put_number(out, there);
  if (pack) {
    append_deflated(shuffled(bytes, kept.size(), sizeof(Bucket)), out);
  } else {
    out.append(bytes, kept.size() * sizeof(Bucket));
  }
}

bool decode_block(std::string_view bytes, std::int64_t first, Buckets& out) {
  RestOfBytes rest{bytes};
  const auto how = rest.number<Packing>();
  const auto there = rest.number<std::uint64_t>();
  if (!rest.good) return false;
  std::vector<Bucket> kept(static_cast<std::size_t>(std::popcount(there)));
  const std::size_t size = kept.size() * sizeof(Bucket);
  if (how == Packing::shuffled) {
    const auto plain = inflated(rest.bytes, size);
    if (!plain) return false;
    unshuffle(*plain, kept.size(), sizeof(Bucket), reinterpret_cast<char*>(kept.data()));
  } else {
    if (how != Packing::plain || rest.bytes.size() != size) return false;
    if (size > 0) std::memcpy(kept.data(), rest.bytes.data(), size);
  }
  std::size_t next = 0;
  for (std::int64_t at = 0; at < kBlockBuckets; ++at) {
    if ((there >> static_cast<std::uint64_t>(at) & 1U) != 0) out[first + at] = kept[next++];
  }
  return true;
}

}  // namespace tocsin::insights
