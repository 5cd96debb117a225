#include "app/report/report_time.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "core/system_clock.h"

namespace tocsin::app::report {

core::WallTime report_time() {
  if (const char* text = std::getenv("SOURCE_DATE_EPOCH"); text != nullptr) {
    const std::string_view wanted(text);
    std::int64_t seconds = 0;
    const auto [end, failure] =
        std::from_chars(wanted.data(), wanted.data() + wanted.size(), seconds);
    if (failure == std::errc{} && end == wanted.data() + wanted.size()) {
      return core::WallTime(std::chrono::seconds(seconds));
    }
  }
  return core::SystemClock().now();
}

}  // namespace tocsin::app::report
