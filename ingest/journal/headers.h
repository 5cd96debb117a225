// A record's headers as the bytes of one column: {u16 name length, u32 value length, name, value}…,
// little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::ingest {

using RecordHeaders = std::vector<std::pair<std::string, std::string>>;

/// nullopt when a name is longer than 65 535 bytes or a value than 4 GiB.
std::optional<std::string> pack_headers(const RecordHeaders& headers);
/// The value of the first header of this name. Total on any bytes: what is cut off is not there.
std::optional<std::string_view> find_header(std::string_view packed, std::string_view name);
/// The same of one record after the other, each of which is asked for several. Borrows its bytes.
class HeaderIndex {
 public:
  void read(std::string_view packed) noexcept;
  /// As find_header() of what was read.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;

 private:
  struct Header {
    std::string_view name, value;
  };
  std::array<Header, 16> first_;  // an event of ours has twelve
  std::size_t count_ = 0;
  std::string_view rest_;
};

/// All that are whole.
RecordHeaders unpack_headers(std::string_view packed);

}  // namespace tocsin::ingest
