// Which settings count as giving up a protection, and which do not.
#include "app/config/insecure_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/serve/metrics.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AppConfig insecure_config(const std::string& yaml) {
  std::string name = (fs::temp_directory_path() / "tocsin-insecure-XXXXXX").string();
  const fs::path folder = mkdtemp(name.data());
  const std::string path = (folder / "t.yaml").string();
  std::ofstream(path) << yaml;
  config::Diagnostics diagnostics;
  AppConfig out = load_config(
      path, [](const std::string&) { return std::nullopt; }, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors()) << config::to_text(diagnostics.items().front());
  fs::remove_all(folder);
  return out;
}

std::vector<std::string> insecure_places(const std::string& yaml) {
  std::vector<std::string> out;
  for (const auto& one : insecure_settings(insecure_config(yaml))) {
    out.push_back(one.kind + " " + one.place);
  }
  return out;
}

TEST(InsecureSettings, DefaultsAndThisMachineGiveNothingUp) {
  EXPECT_THAT(
      insecure_places("receivers:\n"
                      "  a: {webhook: {url: 'https://hooks.example.com/'}}\n"
                      "  b: {webhook: {url: 'http://127.0.0.1:9/', allow_private: [127.0.0.0/8]}}\n"
                      "  c: {webhook: {url: 'http://localhost/x'}}\n"
                      "  d: {webhook: {url: 'http://[::1]:9/', allow_private: ['::1/128']}}\n"
                      "http: {listen: '127.0.0.1:0'}\n"),
      IsEmpty());
}

TEST(InsecureSettings, MailsAndMessagesThatTravelInClear) {
  EXPECT_THAT(
      insecure_places("receivers:\n"
                      "  a: {email: {host: mail.example.com, from: a@b.example, to: [c@b.example], "
                      "tls: none}}\n"
                      "  b: [{webhook: {url: 'HTTP://hooks.example.com:8080/'}}]\n"
                      "  c: {webhook: {url: 'http://127.0.0.1.example.com/'}}\n"),
      ElementsAre("mail_in_clear receivers.a.email.tls",
                  "receiver_in_clear receivers.b[0].webhook.url",
                  "receiver_in_clear receivers.c.webhook.url"));
}

TEST(InsecureSettings, ABrokerThatIsNotCheckedAndAPasswordInClear) {
  EXPECT_THAT(insecure_places("transport:\n"
                              "  kafka:\n"
                              "    bootstrap.servers: broker.example:9093\n"
                              "    security.protocol: SASL_PLAINTEXT\n"
                              "    enable.ssl.certificate.verification: false\n"
                              "    ssl.endpoint.identification.algorithm: none\n"),
              ElementsAre("kafka_password_in_clear transport.kafka.security.protocol",
                          "kafka_certificate_unchecked "
                          "transport.kafka.enable.ssl.certificate.verification",
                          "kafka_certificate_unchecked "
                          "transport.kafka.ssl.endpoint.identification.algorithm"));
}

TEST(InsecureSettings, EachKindHasASeriesAlsoWhereThereIsNone) {
  PrometheusTelemetry telemetry;
  count_insecure_settings(insecure_config("http: {listen: '0.0.0.0:9760'}\n"), telemetry);
  const std::string text = telemetry.render();
  EXPECT_THAT(text, HasSubstr("tocsin_insecure_settings{setting=\"http_in_clear\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tocsin_insecure_settings{setting=\"mail_in_clear\"} 0\n"));
}

}  // namespace
}  // namespace tocsin::app
