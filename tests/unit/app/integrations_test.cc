// What routing gets to know of the configured actions.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "app/config/app_config.h"

namespace tocsin::app {
namespace {

TEST(RoutingIntegrations, SayWhoseFarSideKeepsIncidentsOpen) {
  actions::ReceiversConfig receivers;
  receivers.names = {"team"};
  for (const actions::ActionDescriptor& descriptor : actions::builtin_actions()) {
    actions::ConfiguredIntegration one;
    one.receiver = "team";
    one.type = descriptor.name;
    one.common.id = "team/" + one.type;
    one.traits = descriptor.traits;
    receivers.integrations.push_back(std::move(one));
  }
  // Mail about an end waits until somebody may hear of it; an incident tool must not be left open.
  const std::map<std::string, bool> expected{{"alertmanager", true},   {"email", false},
                                             {"mqtt", true},           {"publish_metric", true},
                                             {"stop_training", false}, {"webhook", true}};
  std::size_t found = 0;
  for (const routing::Integration& one : routing_integrations(receivers)) {
    const auto known = expected.find(one.type);
    if (known == expected.end()) continue;  // an action says it in its own test
    EXPECT_EQ(one.stateful, known->second) << one.type;
    ++found;
  }
  EXPECT_EQ(found, expected.size());
}

std::map<std::string, routing::Integration> integrations_of(const std::string& text) {
  config::Diagnostics diagnostics;
  const config::Environment nothing = [](const std::string&) { return std::nullopt; };
  const auto document = config::Document::parse(text, "t.yaml", nothing, diagnostics);
  AppConfig config;
  document->read(diagnostics, [&](config::Reader& root) { read(root, config); });
  EXPECT_FALSE(diagnostics.has_errors());
  std::map<std::string, routing::Integration> out;
  for (auto& one : routing_integrations(config.receivers)) out.emplace(one.receiver, one);
  return out;
}

TEST(RoutingIntegrations, SayWhatHoldsEachActionBack) {
  using routing::Cause;
  const auto found = integrations_of(R"(
receivers:
  mail: {webhook: {url: 'https://hooks.example.org/t', secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}
  stop: {stop_training: {}}
  board: {publish_metric: {}}
  always: {stop_training: {id: s, respect: {time: false, inhibition: true}}}
  asleep: {publish_metric: {id: p, respect: {silences: true}}}
)");
  const auto respected = [&](const std::string& receiver) {
    const routing::Integration& one = found.at(receiver);
    return std::string(one.respects(Cause::silence) ? "s" : "-") +
           (one.respects(Cause::inhibition) ? "i" : "-") + (one.respects(Cause::time) ? "t" : "-");
  };
  EXPECT_EQ(respected("mail"), "sit");
  EXPECT_EQ(respected("stop"), "s-t");
  EXPECT_EQ(respected("board"), "---");
  EXPECT_EQ(respected("always"), "si-");
  EXPECT_EQ(respected("asleep"), "s--");
}

TEST(RoutingIntegrations, SayWhatBecomesOfAnEndUnderSuppression) {
  using routing::SuppressedEnd;
  const auto found = integrations_of(R"(
receivers:
  team: {mattermost: {url: 'https://chat.example.org/hooks/k'}}
  told: {mattermost: {id: t, url: 'https://chat.example.org/hooks/l', resolve_when_suppressed: send}}
  stop: {stop_training: {resolve_when_suppressed: drop}}
  board: {publish_metric: {resolve_when_suppressed: defer}}
  far: {publish_metric: {id: f}}
)");
  EXPECT_EQ(found.at("team").suppressed_end(), SuppressedEnd::defer);
  EXPECT_EQ(found.at("told").suppressed_end(), SuppressedEnd::send);
  EXPECT_EQ(found.at("stop").suppressed_end(), SuppressedEnd::drop);
  EXPECT_EQ(found.at("board").suppressed_end(), SuppressedEnd::defer);
  EXPECT_EQ(found.at("far").suppressed_end(), SuppressedEnd::send);
}

}  // namespace
}  // namespace tocsin::app
