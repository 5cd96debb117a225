#include "actions/message/tone.h"

#include <algorithm>
#include <array>

namespace tocsin::actions {

const Tone& tone_named(std::string_view name) {
  static constexpr std::array kTones{
      Tone{"info", "#1f6feb", "🔵"}, Tone{"warning", "#9a6700", "🟡"},
      Tone{"error", "#cf222e", "🔴"}, Tone{"critical", "#82071e", "🚨"},
      Tone{"resolved", "#1a7f37", "🟢"}};
  const auto* const found =
      std::find_if(kTones.begin(), kTones.end(), [&](const Tone& one) { return one.name == name; });
  return found == kTones.end() ? kTones[1] : *found;
}

}  // namespace tocsin::actions
