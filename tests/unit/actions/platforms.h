// A platform as a configuration makes it, over recorded HTTP.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "actions/actions.h"
#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

/// `yaml`: the section `platforms`.
struct PlatformBench {
  explicit PlatformBench(const std::string& yaml) {
    config::Diagnostics diagnostics;
    const auto document = config::Document::parse(
        "platforms: " + yaml + "\n", "test.yaml", [](const std::string&) { return std::nullopt; },
        diagnostics);
    std::shared_ptr<const PlatformsConfig> config = no_platforms();
    document->read(diagnostics, [&](config::Reader& root) {
      root.section("platforms", "", [&](config::Reader& in) { config = read_platforms(in); });
    });
    for (const auto& item : diagnostics.items()) errors += to_text(item) + "\n";
    auto made = make_platforms(*config, clock, &http);
    if (!made.empty()) platform = std::move(made.front());
  }

  void answer(int status, std::string body) {
    http.answers.push_back({HttpFailure::none, "", {status, {}, std::move(body)}});
  }
  PlatformAnswer carry_out(PlatformRung rung) {
    return platform->carry_out({fence, mode}, rung, std::chrono::seconds(10));
  }
  /// "GET https://…/path" of each request that was made.
  [[nodiscard]] std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const HttpRequest& one : http.requests) out.push_back(one.method + " " + one.url);
    return out;
  }

  ManualClock clock;
  FakeHttpClient http;
  std::string errors;
  std::unique_ptr<PlatformStop> platform;
  core::Value fence;
  std::string mode = "checkpoint_then_stop";
};

}  // namespace tocsin::actions::testing_support
