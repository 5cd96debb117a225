// `tocsin check --live`: what the broker and the far sides of receivers answer now. Nothing is sent.
#pragma once

#include <string>
#include <vector>

#include "app/config/app_config.h"
#include "core/value.h"

namespace tocsin::app {

/// One thing that was asked.
struct LiveAnswer {
  std::string who;      // "kafka host:9092", "people/webhook"
  std::string place;    // "https://hooks.example.com"; empty: `who` says it
  std::string problem;  // empty: it answers
  std::string answer;
  bool skipped = false;  // it cannot be asked, and `answer` says why
  bool broker = false;
};

/// Blocks a few seconds per place. `config` has no errors.
std::vector<LiveAnswer> ask_live(const AppConfig& config);
std::string live_text(const std::vector<LiveAnswer>& answers);
core::Value live_value(const std::vector<LiveAnswer>& answers);
/// 0, 4: the broker does not answer, 1: something else does not.
int live_code(const std::vector<LiveAnswer>& answers);

}  // namespace tocsin::app
