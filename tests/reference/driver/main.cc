// reference_driver: what the real engine makes of recorded streams. One case per line of the input,
// one answer per line of the output (tests/reference/README.md), so that one process judges
// thousands.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "config/config.h"
#include "core/json.h"
#include "tests/reference/driver/records.h"

namespace tocsin::reference {
namespace {

constexpr std::size_t kMaxLine = 64U << 20;

/// The configuration's errors; empty: none.
std::string read(const std::string& text, rules::RulesConfig& configured,
                 rules::EngineConfig& engine) {
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(text, "case.yaml", nothing, diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      rules::read_rules(root, configured);
      rules::read_engine(root, engine);
    });
  }
  std::string errors;
  for (const config::Diagnostic& one : diagnostics.items()) {
    if (one.grade == config::Grade::error) errors += config::to_text(one) + "\n";
  }
  return errors;
}

core::ValueMap judge(const core::Value& input) {
  rules::RulesConfig configured;
  rules::EngineOptions options;
  if (std::string errors = read(core::text_at(input, "config"), configured, options.config);
      !errors.empty()) {
    return {{"refused", std::move(errors)}};
  }
  const core::Value* live = core::find(input, "live");
  options.record_time = live == nullptr || live->storage() != core::Value(true).storage();
  Host host(std::move(configured), std::move(options));
  Feeder feeder(host);
  if (const auto* records = core::as<core::ValueList>(core::find(input, "records"))) {
    for (const core::Value& record : *records) {
      feeder.feed(record);
      host.gather();
      host.settle(feeder.now());
    }
  }
  host.settle(feeder.now() + std::chrono::hours(1));
  host.engine().end_of_input();
  host.gather();
  return {{"issues", std::move(host.issues)}, {"statuses", std::move(host.statuses)}};
}

core::ValueMap answer(const std::string& line) {
  try {
    const auto input = core::parse_json(line, kMaxLine);
    if (!input) return {{"error", input.error().message}};
    return judge(*input);
  } catch (const std::exception& problem) {
    return {{"error", std::string(problem.what())}};
  }
}

int run() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << core::to_json(answer(line)) << '\n' << std::flush;
  }
  return 0;
}

}  // namespace
}  // namespace tocsin::reference

int main() { return tocsin::reference::run(); }
