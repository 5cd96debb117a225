#include "app/report/tar.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace tocsin::app::report {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostOfAPath = 100;
constexpr std::size_t kMostOfARoot = 155;
constexpr std::uint64_t kMostOfAFile = 1ULL << 33U;

using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Octal digits, and one byte behind them.
void put_number(Header& header, std::size_t at, std::size_t digits, std::uint64_t number) {
  for (std::size_t i = digits; i > 0; --i, number >>= 3U)
    header[at + i - 1] = static_cast<char>('0' + (number & 7U));
}

Header header_of(const std::string& root, const BundleFile& file, std::uint64_t seconds) {
  Header out{};
  put(out, 0, file.path);
  put_number(out, 100, 7, 0644);
  put_number(out, 108, 7, 0);  // user and group: nobody in particular
  put_number(out, 116, 7, 0);
  put_number(out, 124, 11, file.text.size());
  put_number(out, 136, 11, seconds);
  put(out, 148, "        ");  // the sum is made with blanks in its place
  out[156] = '0';             // a file
  put(out, 257, std::string_view("ustar\00000", 8));
  put(out, 345, root);
  const auto sum = std::accumulate(
      out.begin(), out.end(), std::uint64_t{0},
      [](std::uint64_t total, char one) { return total + static_cast<unsigned char>(one); });
  put_number(out, 148, 6, sum);
  out[154] = '\0';
  return out;
}

}  // namespace

core::Result<std::string> tar_of(const std::string& root, const std::vector<BundleFile>& files,
                                 core::WallTime made) {
  const std::int64_t nanoseconds = core::nanoseconds(made);
  const auto seconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, nanoseconds)) / 1'000'000'000U;
  if (root.size() > kMostOfARoot)
    return core::invalid_argument("a tar archive holds no folder of such a name: " + root);
  std::string out;
  for (const BundleFile& file : files) {
    if (file.path.size() > kMostOfAPath || file.text.size() >= kMostOfAFile)
      return core::invalid_argument("a tar archive does not hold " + file.path);
    const Header header = header_of(root, file, seconds);
    out.append(header.data(), header.size());
    out += file.text;
    out.append((kBlock - file.text.size() % kBlock) % kBlock, '\0');
  }
  out.append(2 * kBlock, '\0');
  return out;
}

}  // namespace tocsin::app::report
