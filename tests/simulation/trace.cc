#include "tests/simulation/trace.h"

#include <cstdio>

#include "core/text.h"

namespace tocsin::simulation {

void Trace::say(std::string_view who, const std::string& what) {
  if (!print_) return;
  const double seconds = std::chrono::duration<double>(elapsed()).count();
  std::printf("%+10.3f  %-14.*s %s\n", seconds, static_cast<int>(who.size()), who.data(),
              what.c_str());
}

void Trace::fault(const std::string& kind, std::string_view who, const std::string& what) {
  ++faults_[kind];
  say(who, "*** " + kind + (what.empty() ? "" : ": " + what));
}

void TraceLog::write(core::Level level, std::string_view event,
                     std::initializer_list<core::Field> fields) {
  if (!trace_.prints()) return;
  std::string line(level == core::Level::error  ? "ERROR "
                   : level == core::Level::warn ? "warn "
                                                : "");
  line += event;
  for (const auto& [name, value] : fields) {
    line += " " + std::string(name) + "=" + core::to_json(value);
  }
  trace_.say(who_, line);
}

}  // namespace tocsin::simulation
