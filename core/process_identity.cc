#include "core/process_identity.h"

#include <charconv>
#include <string_view>

namespace tocsin::core {
namespace {

constexpr std::string_view kStatBlanks = " \n";

// The words of one line, from the left.
class StatWords {
 public:
  explicit StatWords(std::string_view left) : left_(left) {}

  std::string_view next() {
    const std::size_t begin = left_.find_first_not_of(kStatBlanks);
    if (begin == std::string_view::npos) return left_ = {};
    left_.remove_prefix(begin);
    const std::string_view word = left_.substr(0, left_.find_first_of(kStatBlanks));
    left_.remove_prefix(word.size());
    return word;
  }
  void skip(int words) {
    for (int i = 0; i < words; ++i) next();
  }
  // False unless the next word is a number and nothing else.
  template <class Number>
  bool read(Number& out) {
    const std::string_view word = next();
    const char* end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, out);
    return error == std::errc{} && at == end;
  }

 private:
  std::string_view left_;
};

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) noexcept {
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(')');
  if (name_begin == std::string_view::npos || name_end == std::string_view::npos ||
      name_end < name_begin) {
    return std::nullopt;
  }
  ProcessStat out;
  StatWords before_name(text.substr(0, name_begin));
  if (!before_name.read(out.pid)) return std::nullopt;
  StatWords words(text.substr(name_end + 1));  // from field 3 of proc(5) on
  const std::string_view state = words.next();
  if (state.size() != 1) return std::nullopt;
  out.state = state.front();
  if (!words.read(out.parent_pid)) return std::nullopt;
  words.skip(9);  // fields 5 to 13
  if (!words.read(out.user_ticks) || !words.read(out.system_ticks)) return std::nullopt;
  words.skip(4);  // fields 16 to 19
  if (!words.read(out.threads)) return std::nullopt;
  words.skip(1);  // field 21
  if (!words.read(out.start_ticks) || !words.read(out.virtual_bytes) ||
      !words.read(out.resident_pages)) {
    return std::nullopt;
  }
  words.skip(27);  // fields 25 to 51
  if (int status = 0; words.read(status)) out.wait_status = status;
  return out;
}

}  // namespace tocsin::core
