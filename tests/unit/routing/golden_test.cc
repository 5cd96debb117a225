// Records of the router's state as an earlier day wrote them are still read: tests/golden/state_*.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <rapidcheck.h>

#include "core/identity.h"
#include "routing/tables/dedup.h"
#include "routing/tables/state_codec.h"
#include "tests/support/golden.h"
#include "tests/unit/ingest/any_event.h"
#include "tests/unit/ingest/event_equality.h"
#include "tests/unit/ingest/event_fixture.h"

namespace tocsin::routing {
namespace {

using namespace ingest::fixture;

IssueState issue_state() {
  IssueState state;
  state.issue = KeptIssue(full_issue());
  state.episode = 3;
  state.expires_at = at(7);
  state.expiry_explicit = true;
  state.last_transition = at(9);
  state.sequences = {{"/c1/rules/exploding_tensor", 42}, {"/größe", 1}};
  core::Issue before = full_issue();
  before.event_id = "iss_before";
  state.past = {{1, before}, {2, full_issue()}};
  return state;
}

Group group() {
  Group out;
  out.key = "{}:{job=\"digits\"}";
  out.route_id = "root/0";
  out.grouping = "job";
  out.labels = {{"job", "digits"}, {"team", "größe"}};
  out.overflow = true;
  out.generation = 2;
  out.created_at = at();
  out.next_tick = at(1);
  out.urgent_at = at(2);
  out.last_urgent = at(3);
  out.last_tick = at(4);
  out.flush_seq = 7;
  out.running = true;
  out.changed = false;
  out.held = true;
  out.absent_since = at(5);
  return out;
}

TellLog log() {
  TellLog out;
  out.told = {{"zupj", {2, 5, core::Severity::error}}, {"abcd", {1, 0, core::Severity::info}}};
  out.owed = {{"efgh", {4, at(1)}}};
  out.last_tick = at(2);
  out.seq = 9;
  out.placed = true;
  out.pending = {{8, "ntf_a", core::NotificationKind::open, at(3), {}},
                 {9,
                  "ntf_b",
                  core::NotificationKind::close,
                  at(4),
                  {{"zupj", {2, 8, core::Severity::critical}}}}};
  return out;
}

RunState run() {
  RunState out;
  out.attempt = 2;
  out.job = "digits";
  out.labels = {{"team", "nlp"}};
  out.last_seen = at(1);
  out.ended_at = at(2);
  out.lost = true;
  out.heard = true;
  out.launch = {{"node-a", "0011aabb/7"}};
  out.outcome = "lost";
  out.step = 412;
  out.step_seconds = 0.125;
  out.step_time = at(3);
  return out;
}

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

std::string hex_of(const std::string& bytes) {
  return core::hex(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
}

/// What nobody writes any more.
std::string as_it_once_was(const std::string& name) {
  std::ifstream file(golden::path(name));
  std::string out{std::istreambuf_iterator<char>(file), {}};
  if (!out.empty()) out.pop_back();
  return out;
}

TEST(GoldenState, AnIssueWithItsPast) {
  const IssueState state = issue_state();
  const std::string hex = golden::text("state_issue_record.txt", hex_of(encode(state)));
  EXPECT_EQ(hex_of(encode(state)), hex) << "another form needs another number (issue_record.cc)";
  for (const std::string& stored : {as_it_once_was("state_issue.txt"), bytes_of(hex)}) {
    const auto back = decode_issue_state(stored);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(comparable(back->issue.whole()) == comparable(state.issue.whole()));
    EXPECT_EQ(back->episode, state.episode);
    EXPECT_EQ(back->firing, state.firing);
    EXPECT_EQ(back->expires_at, state.expires_at);
    EXPECT_EQ(back->expiry_explicit, state.expiry_explicit);
    EXPECT_EQ(back->last_transition, state.last_transition);
    EXPECT_EQ(back->sequences, state.sequences);
    ASSERT_EQ(back->past.size(), 2u);
    for (const auto& [episode, issue] : state.past) {
      EXPECT_TRUE(comparable(back->past.at(episode)) == comparable(issue));
    }
  }
}

TEST(State, AnyIssueComesBackWhole) {
  EXPECT_TRUE(rc::check([] {
    IssueState state;
    state.issue = KeptIssue(ingest::any::issue());
    state.firing = state.issue.status == core::IssueStatus::firing;
    if (!state.firing) state.issue.ends_at = at();
    state.past = {{7, ingest::any::issue()}};
    const auto back = decode_issue_state(encode(state));
    if (!back) RC_FAIL(back.error().message);
    RC_ASSERT(back->issue.whole() == state.issue.whole());
    RC_ASSERT(back->past.at(7) == state.past.at(7));
  }));
}

void read_if_it_can_be(const std::string& bytes) {
  const auto state = decode_issue_state(bytes);
  if (state) (void)state->issue.whole();
}

TEST(State, BytesThatWereDamagedAreNotAnIssue) {
  const std::string good = encode(issue_state());
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(decode_issue_state(good.substr(0, i))) << i;
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 4);
    EXPECT_FALSE(decode_issue_state(other)) << i;
  }
}

// Whoever may write to the topic can write any sum.
TEST(State, BytesWithARightSumAreReadWithinTheirBounds) {
  const std::string good = encode(issue_state());
  const auto with_sum = [](std::string bytes) {
    const std::uint64_t sum = core::name_hash(bytes);
    for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(sum >> (8 * i));
    return bytes;
  };
  const std::string bytes = good.substr(0, good.size() - 8);
  ASSERT_TRUE(decode_issue_state(with_sum(bytes)));
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    read_if_it_can_be(with_sum(bytes.substr(0, i)));
    for (const char byte : {'\x00', '\x7f', '\xff'}) {
      std::string other = bytes;
      other[i] = byte;
      read_if_it_can_be(with_sum(other));
    }
  }
}

TEST(GoldenState, AGroup) {
  const Group state = group();
  const std::string text = golden::text("state_group.json", encode(state));
  for (const std::string& stored : {text, encode(state)}) {
    const auto back = decode_group(stored);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->key, state.key);
    EXPECT_EQ(back->route_id, state.route_id);
    EXPECT_EQ(back->grouping, state.grouping);
    EXPECT_EQ(back->labels, state.labels);
    EXPECT_EQ(back->overflow, state.overflow);
    EXPECT_EQ(back->generation, state.generation);
    EXPECT_EQ(back->created_at, state.created_at);
    EXPECT_EQ(back->next_tick, state.next_tick);
    EXPECT_EQ(back->urgent_at, state.urgent_at);
    EXPECT_EQ(back->last_urgent, state.last_urgent);
    EXPECT_EQ(back->last_tick, state.last_tick);
    EXPECT_EQ(back->flush_seq, state.flush_seq);
    EXPECT_EQ(back->running, state.running);
    EXPECT_EQ(back->changed, state.changed);
    EXPECT_EQ(back->held, state.held);
    EXPECT_EQ(back->absent_since, state.absent_since);
  }
}

TEST(GoldenState, ALogOfWhatWasTold) {
  const TellLog state = log();
  const std::string text = golden::text("state_log.json", encode(state));
  for (const std::string& stored : {text, encode(state)}) {
    const auto back = decode_log(stored);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, state);
  }
}

TEST(GoldenState, ARun) {
  const RunState state = run();
  const std::string text = golden::text("state_run.json", encode(state));
  for (const std::string& stored : {text, encode(state)}) {
    const auto back = decode_run(stored);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->attempt, state.attempt);
    EXPECT_EQ(back->job, state.job);
    EXPECT_EQ(back->labels, state.labels);
    EXPECT_EQ(back->last_seen, state.last_seen);
    EXPECT_EQ(back->ended_at, state.ended_at);
    EXPECT_EQ(back->lost, state.lost);
    EXPECT_EQ(back->heard, state.heard);
    EXPECT_EQ(back->launch, state.launch);
    EXPECT_EQ(back->outcome, state.outcome);
    EXPECT_EQ(back->step, state.step);
    EXPECT_EQ(back->step_seconds, state.step_seconds);
    EXPECT_EQ(back->step_time, state.step_time);
    EXPECT_EQ(back->saved_at, state.last_seen);
  }
}

TEST(GoldenState, AnIssueNamesItsGroups) {
  Group one;
  one.hash = "b";
  Group other;
  other.hash = "a";
  IssueState state = issue_state();
  state.groups = {&one, &other};
  const auto back = decode_issue_state(encode(state));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->joined, (std::vector<std::string>{"a", "b"}));
}

// One record per event, as they once were.
TEST(GoldenState, AnEventThatWasSeen) {
  const std::string text = golden::text("state_time.txt", std::to_string(core::nanoseconds(at())));
  core::Issue issue;
  issue.source = "/c1";
  issue.event_id = "iss_1";
  const auto sum = core::sha256(issue.source + '\x1f' + issue.event_id);
  Dedup dedup(std::chrono::hours(24), 10);
  ASSERT_TRUE(dedup.restore(core::base32(std::span(sum).first<16>()), text));
  dedup.restored();
  EXPECT_TRUE(dedup.seen(issue.source, issue.event_id, at()));
  issue.event_id = "iss_2";
  EXPECT_FALSE(dedup.seen(issue.source, issue.event_id, at()));
}

}  // namespace
}  // namespace tocsin::routing
