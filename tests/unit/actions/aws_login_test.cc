#include "actions/integration/aws_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct AwsLoginReading {
  AwsLogin login;
  std::string problems;  // one per line
};

AwsLoginReading read_login(const std::string& yaml) {
  AwsLoginReading out;
  config::Diagnostics diagnostics;
  const auto document = config::Document::parse(
      yaml, "aws.yaml",
      [](const std::string& name) -> std::optional<std::string> {
        return name == "KEY" ? std::optional<std::string>("AKIDEXAMPLE") : std::nullopt;
      },
      diagnostics);
  if (document) document->read(diagnostics, [&](config::Reader& in) { out.login.declare(in); });
  for (const auto& one : diagnostics.items()) out.problems += to_text(one) + "\n";
  return out;
}

TEST(AwsLogin, OpensTheKeysForOneAttemptAndMasksThem) {
  const AwsLoginReading read = read_login(
      "aws: {region: eu-central-1, access_key_id: '${KEY}', secret_access_key: wJalrXUtnFEMI, "
      "session_token: FwoGZXIvYXdzEJr}");
  ASSERT_THAT(read.problems, IsEmpty());
  Opened opened;
  const auto aws = read.login.open(opened, "sns");
  ASSERT_TRUE(aws);
  EXPECT_EQ(aws->region, "eu-central-1");
  EXPECT_EQ(aws->service, "sns");
  EXPECT_EQ(aws->access_key_id, "AKIDEXAMPLE");
  EXPECT_EQ(aws->secret_access_key, "wJalrXUtnFEMI");
  EXPECT_EQ(aws->session_token, "FwoGZXIvYXdzEJr");
  const std::string shown =
      opened.masked("AKIDEXAMPLE of wJalrXUtnFEMI with FwoGZXIvYXdzEJr was refused");
  EXPECT_EQ(shown.find("wJalrXUtnFEMI"), std::string::npos);
  EXPECT_EQ(shown.find("FwoGZXIvYXdzEJr"), std::string::npos);
}

TEST(AwsLogin, AFileThatIsMissingIsNamedByItsKey) {
  const AwsLoginReading read = read_login(
      "aws: {region: us-east-1, access_key_id: A, secret_access_key_file: /nonexistent/secret}");
  Opened opened;
  const auto aws = read.login.open(opened, "sns");
  ASSERT_FALSE(aws);
  EXPECT_THAT(aws.error().message, HasSubstr("aws.secret_access_key"));
}

TEST(AwsLogin, ARegionThatIsNoneIsRefusedAtItsPlace) {
  EXPECT_THAT(
      read_login("aws: {region: 'eu central', access_key_id: A, secret_access_key: B}").problems,
      HasSubstr("expected a region such as eu-central-1"));
  EXPECT_THAT(read_login("aws: {access_key_id: A, secret_access_key: B}").problems,
              HasSubstr("region"));
}

}  // namespace
}  // namespace tocsin::actions
