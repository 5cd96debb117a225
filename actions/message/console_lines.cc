#include "actions/message/console_lines.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include "core/console_value.h"
#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::actions {
namespace {

constexpr std::size_t kMostOfALine = 240;
constexpr std::size_t kMostOfAll = 2048;

}  // namespace

std::vector<std::string> console_lines(const core::Issue& issue) {
  std::vector<std::string> out;
  for (const auto& [name, value] : issue.evidence.values) {
    const auto* text =
        name == core::kConsoleValue ? std::get_if<std::string>(&value.storage()) : nullptr;
    if (text == nullptr) continue;
    std::string_view left = *text;
    while (!left.empty()) {
      const std::size_t end = std::min(left.find('\n'), left.size());
      std::string line = core::visible(left.substr(0, end), kMostOfALine);
      line.erase(line.find_last_not_of(' ') + 1);
      if (!line.empty()) out.push_back(std::move(line));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
  return newest(std::move(out), kMostOfAll);
}

std::vector<std::string> newest(std::vector<std::string> lines, std::size_t bytes) {
  std::size_t taken = 0;
  auto first = lines.end();
  while (first != lines.begin() && taken + std::prev(first)->size() + 1 <= bytes) {
    --first;
    taken += first->size() + 1;
  }
  lines.erase(lines.begin(), first);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += (out.empty() ? "" : "\n") + line;
  return out;
}

}  // namespace tocsin::actions
