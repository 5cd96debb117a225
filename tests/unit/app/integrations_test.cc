// What routing gets to know of the configured actions.
#include <gtest/gtest.h>

#include "app/app_config.h"

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
  for (const routing::Integration& one : routing_integrations(receivers)) {
    const bool people = one.type == "email";
    // Mail about an end waits until somebody may hear of it; an incident tool must not be left
    // open.
    EXPECT_EQ(one.stateful, !people && one.type != "stop_training") << one.type;
  }
}

}  // namespace
}  // namespace tocsin::app
