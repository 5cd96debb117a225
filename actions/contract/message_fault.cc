#include "actions/contract/message_fault.h"

#include <algorithm>
#include <array>

namespace tocsin::actions {

namespace {

constexpr std::string_view kBetween = ", ";

}  // namespace

void add(HandleList& handles, std::string_view name, const std::string& value) {
  for (auto& [key, known] : handles) {
    if (key != name) continue;
    known += std::string(kBetween) + value;
    return;
  }
  handles.emplace_back(name, value);
}

std::vector<std::string> values_of(const HandleList& handles, std::string_view name) {
  std::vector<std::string> out;
  std::string_view left = value_of(handles, name);
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(kBetween), left.size());
    out.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + kBetween.size(), left.size()));
  }
  return out;
}

std::string_view value_of(const HandleList& handles, std::string_view name) {
  for (const auto& [key, value] : handles) {
    if (key == name) return value;
  }
  return {};
}

HandleList far_side_names(const HandleList& handles) {
  static constexpr std::array kOurs{kept::kOwnFailures, kept::kFault,  kept::kSupersededBy,
                                    kept::kDigest,      kept::kPutOff, kept::kRefused,
                                    kept::kOnlyTo,      kept::kNotTo,  kept::kReplay};
  HandleList out;
  for (const auto& handle : handles) {
    if (std::find(kOurs.begin(), kOurs.end(), handle.first) == kOurs.end()) out.push_back(handle);
  }
  return out;
}

}  // namespace tocsin::actions
