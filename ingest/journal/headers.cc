#include "ingest/journal/headers.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace tocsin::ingest {
namespace {

constexpr std::size_t kLengths = 6;  // bytes of both lengths

/// Lowest byte first; all of a header's names are looked for in all of them, so this is done often.
template <std::size_t kBytes>
std::uint32_t read_number(const char* bytes) {
  std::uint32_t number = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&number, bytes, kBytes);
    return number;
  }
  for (std::size_t i = 0; i < kBytes; ++i) {
    number |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  }
  return number;
}

void put_number(std::string& out, std::size_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

/// Takes one header off the front; nullopt when no whole one is left.
std::optional<std::pair<std::string_view, std::string_view>> take(std::string_view& rest) {
  if (rest.size() < kLengths) return std::nullopt;
  const std::size_t name = read_number<2>(rest.data());
  const std::size_t value = read_number<4>(rest.data() + 2);
  if (rest.size() - kLengths < name || rest.size() - kLengths - name < value) return std::nullopt;
  const std::pair header{rest.substr(kLengths, name), rest.substr(kLengths + name, value)};
  rest.remove_prefix(kLengths + name + value);
  return header;
}

}  // namespace

std::optional<std::string> pack_headers(const RecordHeaders& headers) {
  std::string packed;
  for (const auto& [name, value] : headers) {
    if (name.size() > std::numeric_limits<std::uint16_t>::max() ||
        value.size() > std::numeric_limits<std::uint32_t>::max()) {
      return std::nullopt;
    }
    put_number(packed, name.size(), 2);
    put_number(packed, value.size(), 4);
    packed += name;
    packed += value;
  }
  return packed;
}

std::optional<std::string_view> find_header(std::string_view packed, std::string_view name) {
  while (const auto header = take(packed)) {
    if (header->first == name) return header->second;
  }
  return std::nullopt;
}

void HeaderIndex::read(std::string_view packed) noexcept {
  rest_ = packed;
  for (count_ = 0; count_ < first_.size(); ++count_) {
    const auto header = take(rest_);
    if (!header) {  // nothing whole is left
      rest_ = {};
      return;
    }
    first_[count_] = {header->first, header->second};
  }
}

std::optional<std::string_view> HeaderIndex::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (first_[i].name == name) return first_[i].value;
  }
  return rest_.empty() ? std::nullopt : find_header(rest_, name);
}

RecordHeaders unpack_headers(std::string_view packed) {
  RecordHeaders all;
  while (const auto header = take(packed)) all.emplace_back(header->first, header->second);
  return all;
}

}  // namespace tocsin::ingest
