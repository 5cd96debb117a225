#include "actions/contract/label_is.h"

#include <algorithm>

namespace tocsin::actions {

std::optional<LabelIs> parse_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  std::string_view value = text.substr(equals + 1);
  if (value.starts_with('~') || text[equals - 1] == '!') return std::nullopt;  // other matchers
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return LabelIs{std::string(text.substr(0, equals)), std::string(value)};
}

bool meets(const core::Issue& issue, std::string_view text) {
  const auto wanted = parse_label(text);
  if (!wanted) return false;
  const std::string& found = wanted->name == "job" && !issue.labels.has("job")
                                 ? issue.run.job
                                 : issue.labels.get(wanted->name);
  return found == wanted->value;
}

std::vector<std::string> label_list(const std::string& text) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin < end) {
      const std::size_t last = text.find_last_not_of(' ', end - 1);
      out.push_back(text.substr(begin, last + 1 - begin));
    }
    at = end + 1;
  }
  return out;
}

}  // namespace tocsin::actions
