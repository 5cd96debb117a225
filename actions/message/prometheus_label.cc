#include "actions/message/prometheus_label.h"

namespace tocsin::actions {

std::string prometheus_label(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    out += letter || (digit && !out.empty()) ? c : '_';
  }
  return out;
}

std::map<std::string, std::string> prometheus_labels(const core::Labels& labels) {
  std::map<std::string, std::string> out;
  // Those that are valid keep their names, whatever becomes of the others.
  for (const bool valid : {true, false}) {
    for (const auto& [name, value] : labels.entries()) {
      std::string fit = prometheus_label(name);
      if ((fit == name) != valid) continue;
      while (out.contains(fit)) fit += '_';
      out.emplace(std::move(fit), value);
    }
  }
  return out;
}

core::Value text_map(const std::map<std::string, std::string>& texts) {
  core::ValueMap out;
  for (const auto& [name, value] : texts) {
    if (!value.empty()) out.emplace_back(name, value);
  }
  return out;
}

}  // namespace tocsin::actions
