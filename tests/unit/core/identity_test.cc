// Ids, hashes and partitions: the published vectors (docs/wire.md) and their edges.
#include "core/identity.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <set>
#include <string>

#include "core/codes.h"
#include "core/labels.h"

namespace tocsin::core {
namespace {

constexpr char kRun[] = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";

TEST(RunIdentity, NamespaceIsTheUuidV5OfOurDomain) {
  // RFC 4122 §4.3: SHA-1 over the name space DNS and the name.
  const std::string input =
      std::string("\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8", 16) +
      "tocsin.dev";
  std::array<std::uint8_t, 20> sum{};
  ASSERT_EQ(EVP_Digest(input.data(), input.size(), sum.data(), nullptr, EVP_sha1(), nullptr), 1);
  RunUid ns;
  std::copy_n(sum.begin(), 16, ns.bytes.begin());
  ns.bytes[6] = static_cast<std::uint8_t>((ns.bytes[6] & 0x0f) | 0x50);
  ns.bytes[8] = static_cast<std::uint8_t>((ns.bytes[8] & 0x3f) | 0x80);
  EXPECT_EQ(to_text(ns), "990bb541-e5e4-5832-ae0e-b9043f395a79");
}

TEST(RunIdentity, ANamedRunHasAUidOfJobAndName) {
  EXPECT_EQ(to_text(run_uid_for("digits", "exploding")), kRun);
  EXPECT_NE(run_uid_for("digits", "exploding"), run_uid_for("", "exploding"));
}

TEST(RunIdentity, AUidIsTakenAsItIs) {
  EXPECT_EQ(to_text(run_uid_for("digits", "4E3046D4-8C1F-5278-82E3-EA3595BC5999")), kRun);
}

TEST(RunIdentity, WhatIsNoUuidIsNotReadAsOne) {
  for (const char* text :
       {"", "4e3046d4", "4e3046d4-8c1f-5278-82e3-ea3595bc599",
        "4e3046d4-8c1f-5278-82e3-ea3595bc59999", "4e3046d48-c1f-5278-82e3-ea3595bc5999",
        "4e3046d4-8c1f-5278-82e3-ea3595bc599g"}) {
    EXPECT_FALSE(parse_run_uid(text)) << text;
  }
  EXPECT_TRUE(RunUid{}.nil());
  EXPECT_FALSE(parse_run_uid(kRun)->nil());
}

TEST(RunIdentity, RandomUidsDifferAndSayTheirVersion) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string text = to_text(run_uid_v4());
    EXPECT_EQ(text[14], '4');
    EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos);
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(NameHash, IsXxh64OfTheName) {
  EXPECT_EQ(name_hash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(name_hash("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(name_hash("loss"), 0xc1fad9de00d338c8u);
  EXPECT_EQ(name_hash("worker_0"), 0x162a5aad73bbaba7u);
  EXPECT_EQ(name_hash("gradient/conv1.weight"), 0x3c1ad644d40dd75au);
  EXPECT_EQ(name_hash("conv1.weight"), 0x27b838dfebfa7917u);
  EXPECT_EQ(name_hash("system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}"),
            0xb9484f8897e70112u);
}

TEST(Partition, IsWhatJavasDefaultPartitionerChooses) {
  EXPECT_EQ(murmur2("foobar"), 0xd0e47bbeu);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("foobar")), -790332482);
  EXPECT_EQ(murmur2(kRun), 0x6f8f78dcu);
  EXPECT_EQ(partition_for(kRun, 6), 0);
  EXPECT_EQ(partition_for(kRun, 24), 12);
  EXPECT_EQ(murmur2(std::string(kRun) + "/1"), 0xc10da458u);
  EXPECT_EQ(murmur2(std::string(kRun) + "/7"), 0x72e0148cu);
  EXPECT_EQ(partition_for(std::string(kRun) + "/1", 24), 0);
  EXPECT_EQ(partition_for(std::string(kRun) + "/7", 24), 12);
}

// Vectors of Kafka's own UtilsTest.testMurmur2.
TEST(Partition, MurmurAgreesWithKafkasVectors) {
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("21")), -973932308);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("a-little-bit-long-string")), -985981536);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("a-little-bit-longer-string")), -1486304829);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8")),
            -58897971);
  EXPECT_EQ(static_cast<std::int32_t>(murmur2("abc")), 479470107);
}

TEST(RouteKey, HasASuffixForShardsAboveZeroOnly) {
  const RunUid uid = *parse_run_uid(kRun);
  EXPECT_EQ(route_key(uid), kRun);
  EXPECT_EQ(route_key(uid, 7), std::string(kRun) + "/7");
  EXPECT_EQ(node_route_key("n1"), "node:n1");
}

TEST(Ids, AreThePublishedOnes) {
  const std::string hash = params_hash(R"({"only_nan":false})");
  EXPECT_EQ(hash, "9e6014ae63e4a968");
  EXPECT_EQ(make_id("iss_", {"exploding_tensor", "1", hash, kRun, "1",
                             "mode=train\x1etensor=gradient/conv1.weight\x1eworker=worker_0", "",
                             "s412", "firing"}),
            "iss_6c5duorosylmw5zjzjdy55lrk5");
  EXPECT_EQ(command_id(*parse_run_uid(kRun), 1, "stop"), "cmd_76sjzs23utzfmje34sq7tnw4rf");
}

TEST(Ids, FieldsDoNotRunIntoEachOther) {
  EXPECT_NE(make_id("x_", {"ab", "c"}), make_id("x_", {"a", "bc"}));
  EXPECT_NE(make_id("x_", {"a"}), make_id("x_", {"a", ""}));
  EXPECT_EQ(make_id("x_", {"a"}).size(), 2u + 26u);
}

TEST(Base32, FollowsRfc4648InLowerCaseWithoutPadding) {
  const auto encoded = [](std::string_view text) {
    return base32({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "my");
  EXPECT_EQ(encoded("fo"), "mzxq");
  EXPECT_EQ(encoded("foo"), "mzxw6");
  EXPECT_EQ(encoded("foob"), "mzxw6yq");
  EXPECT_EQ(encoded("fooba"), "mzxw6ytb");
  EXPECT_EQ(encoded("foobar"), "mzxw6ytboi");
}

Labels vector_labels() {
  return {{"job", "digits"},
          {"mode", "train"},
          {"rule", "exploding_tensor"},
          {"run_uid", kRun},
          {"tensor", "gradient/conv1.weight"},
          {"worker", "worker_0"}};
}

TEST(LabelIdentity, IssueKeyIsThePublishedOneWhateverTheSeverity) {
  Labels labels = vector_labels();
  EXPECT_EQ(issue_key(labels), "zupjkayr7ead6ilp76aiztqoiy");
  labels.set("severity", "error");
  EXPECT_EQ(issue_key(labels), "zupjkayr7ead6ilp76aiztqoiy");
  EXPECT_EQ(fingerprint(labels), "0a6939d3abd4cadf");
}

TEST(LabelIdentity, FingerprintsAreThoseOfPrometheusTools) {
  EXPECT_EQ(fingerprint({}), "cbf29ce484222325");
  EXPECT_EQ(fingerprint({{"alertname", "x"}, {"i", "0"}, {"same", "s"}}), "2f083998031100dc");
  EXPECT_EQ(fingerprint({{"alertname", "VanishingGradient"}, {"job", "bert-42"}, {"run", "7"}}),
            "ec991778710b9610");
}

TEST(LabelSet, StaysSortedAndKeepsNoEmptyValue) {
  Labels labels{{"b", "2"}, {"a", "1"}, {"c", ""}};
  EXPECT_EQ(labels.entries(), (std::vector<Labels::Entry>{{"a", "1"}, {"b", "2"}}));
  labels.set("a", "3");
  labels.set("b", "");
  labels.set("zz", "");
  EXPECT_EQ(labels.entries(), (std::vector<Labels::Entry>{{"a", "3"}}));
  EXPECT_EQ(labels.get("b"), "");
  EXPECT_TRUE(labels.has("a"));
  EXPECT_FALSE(labels.has("b"));
}

TEST(Codes, NamesAndNumbersGoBothWays) {
  for (const int code : {0, 1, 2, 3}) {
    const auto mode = static_cast<Mode>(code);
    EXPECT_EQ(mode_from(to_string(mode)), mode);
  }
  for (int code = 0; code <= 16; ++code) {
    const auto role = static_cast<Role>(code);
    EXPECT_EQ(role_from(to_string(role)), role);
  }
  EXPECT_EQ(dtype_from("bf16"), Dtype::bf16);
  EXPECT_EQ(dtype_from("bool"), Dtype::boolean);
  EXPECT_EQ(to_string(static_cast<Dtype>(99)), "unknown");
  EXPECT_FALSE(mode_from("training"));
  EXPECT_LT(Severity::warning, Severity::error);
}

TEST(Codes, MetaHoldsDtypeRoleAndFlags) {
  const std::uint64_t value = meta::make(Dtype::f32, Role::gradient, meta::kUnscaled);
  EXPECT_EQ(value, 0x40301u);
  EXPECT_EQ(meta::dtype(value), Dtype::f32);
  EXPECT_EQ(meta::role(value), Role::gradient);
}

TEST(Codes, AScalarWhoseNameEndsInLossIsALoss) {
  for (const char* name : {"loss", "train_loss", "eval/loss", "head.loss"}) {
    EXPECT_EQ(scalar_role(name), Role::loss) << name;
  }
  for (const char* name : {"", "gloss", "losses", "loss_scale", "Loss", "accuracy"}) {
    EXPECT_EQ(scalar_role(name), Role::metric) << name;
  }
}

TEST(Codes, SizesAreThoseOfOneElement) {
  EXPECT_EQ(size_of(Dtype::f8_e4m3), 1u);
  EXPECT_EQ(size_of(Dtype::bf16), 2u);
  EXPECT_EQ(size_of(Dtype::c128), 16u);
  EXPECT_EQ(size_of(Dtype::text), 0u);
  EXPECT_TRUE(is_floating(Dtype::f8_e5m2));
  EXPECT_FALSE(is_floating(Dtype::i8));
}

}  // namespace
}  // namespace tocsin::core
