#include "app/config/command_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::app {
namespace {

using ::testing::ElementsAre;

AppConfig on_kafka(core::ValueMap settings) {
  AppConfig out;
  settings.emplace_back("bootstrap.servers", "b-1:9092,b-2:9092");
  out.transport.kafka = std::move(settings);
  out.files = {"/etc/tocsin/tocsin.yaml", "/etc/tocsin/rules.yaml"};
  return out;
}

TEST(CommandPlace, IsTheJournalAsAnAbsolutePath) {
  AppConfig config;
  config.transport.journal = "/data/./runs/../tocsin-data";
  EXPECT_THAT(command_place(config), ElementsAre("--from", "/data/tocsin-data"));
}

TEST(CommandPlace, IsTheBrokersWhereTheirAddressIsEnough) {
  EXPECT_THAT(command_place(on_kafka({{"producer.linger.ms", 5}})),
              ElementsAre("--from", "kafka://b-1:9092,b-2:9092"));
}

TEST(CommandPlace, IsTheConfigurationWhereAnAddressIsNotEnoughAndNeverACredential) {
  for (const char* key :
       {"security.protocol", "sasl.username", "sasl.password", "ssl.ca.location"}) {
    EXPECT_THAT(command_place(on_kafka({{key, "canary"}})),
                ElementsAre("-c", "/etc/tocsin/tocsin.yaml"));
  }
  AppConfig named = on_kafka({});
  named.topics.prefix = "team-a";
  EXPECT_THAT(command_place(named), ElementsAre("-c", "/etc/tocsin/tocsin.yaml"));
}

}  // namespace
}  // namespace tocsin::app
