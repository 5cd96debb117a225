// What a chat tool's copy of the sample notification looks like on the wire.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

/// The one request of the action `type` with `settings`, where the first issue says `summary`.
inline nlohmann::json chat_post(const std::string& type, const std::string& settings,
                                const std::string& summary) {
  Workbench bench;
  auto notification = sample_notification();
  notification.issues[0].issue.summary = summary;
  deliver(*bench.make(type, settings), notification);
  return nlohmann::json::parse(bench.http.requests.at(0).body);
}

}  // namespace tocsin::actions::testing_support
