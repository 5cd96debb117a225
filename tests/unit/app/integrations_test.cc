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

}  // namespace
}  // namespace tocsin::app
