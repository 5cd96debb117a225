#include "collectors/hook/capture/phases_config.h"

#include <algorithm>

#include "core/text.h"
#include "core/value.h"

namespace tocsin::hook {
namespace {

std::string meant(const std::string* given) {
  const std::string near = given == nullptr ? std::string() : core::nearest(*given, all_phases());
  return near.empty() ? near : "; did you mean \"" + near + "\"?";
}

}  // namespace

const std::vector<std::string>& all_phases() {
  static const std::vector<std::string> kAll{"data_wait",  "forward",        "backward",
                                             "optimizer",  "communication",  "evaluation",
                                             "checkpoint", "initialization", "finalization"};
  return kAll;
}

void read_phases(config::Reader& in, std::vector<std::string>& out) {
  std::string names;
  for (const std::string& name : all_phases())
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  core::Value given;
  in.any(
      "phases", given,
      "phases of a step that are timed without being asked for: names, or false for none "
      "(default: all)",
      R"({"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"enum": [)" + names + "]}}]}");
  if (given.is_null()) return;
  if (const auto* on = core::as<bool>(given)) {
    out = *on ? all_phases() : std::vector<std::string>{};
    return;
  }
  const auto* list = core::as<core::ValueList>(given);
  if (list == nullptr) return in.error("phases", "expected a list of phases, or false");
  out.clear();
  for (const core::Value& item : *list) {
    const auto* name = core::as<std::string>(item);
    if (name == nullptr || std::ranges::find(all_phases(), *name) == all_phases().end()) {
      in.error("phases", "expected phases: " + names + meant(name));
    } else {
      out.push_back(*name);
    }
  }
}

}  // namespace tocsin::hook
