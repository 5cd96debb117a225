// Two issues of one job, for tests of the flush.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/unit/routing/harness.h"

namespace tocsin::routing {

inline const core::Labels kTensorA{
    {"rule", "nan"}, {"job", "j"}, {"tensor", "a"}, {"severity", "error"}};
inline const core::Labels kTensorB{
    {"rule", "nan"}, {"job", "j"}, {"tensor", "b"}, {"severity", "error"}};

inline core::Labels with(core::Labels labels, std::string_view name, std::string_view value) {
  labels.set(name, value);
  return labels;
}

inline std::vector<RepeatStep> every(core::Duration interval) { return {{std::nullopt, interval}}; }

class FlushTest : public ::testing::Test {
 protected:
  Harness h;
};

}  // namespace tocsin::routing
