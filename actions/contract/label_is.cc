#include "actions/contract/label_is.h"

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

}  // namespace tocsin::actions
