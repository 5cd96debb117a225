// How a message looks at a glance: a colour and a sign for the worst that it says. Internal to actions.
#pragma once

#include <string_view>

namespace tocsin::actions {

/// MessageParts::tone as a person sees it.
struct Tone {
  std::string_view name;    // info, warning, error, critical, resolved
  std::string_view colour;  // "#cf222e"
  std::string_view sign;    // one emoji
};

/// Any other name looks like a warning.
const Tone& tone_named(std::string_view name);

}  // namespace tocsin::actions
