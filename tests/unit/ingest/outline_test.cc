// Two events of one outline say the same, but for what is free: over every field, and over texts that
// were changed anywhere.
#include "ingest/events/outline.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/events/plain_text.h"
#include "tests/support/record_fixture.h"
#include "tests/unit/ingest/any_event.h"
#include "tests/unit/ingest/event_equality.h"
#include "tests/unit/ingest/event_fixture.h"

namespace tocsin::ingest {
namespace {

using core::Issue;
using fixture::view_of;

using OutlineEdit = std::function<void(Issue& issue, const Issue& other)>;
using OutlineField = std::pair<const char*, OutlineEdit>;

#define TOCSIN_FIELD(member)                                                        \
  OutlineField {                                                                    \
#member, [](Issue & issue, const Issue& other) { issue.member = other.member; } \
  }

/// What a repeat may say anew.
std::vector<OutlineField> free_outline_fields() {
  return {TOCSIN_FIELD(event_id),
          TOCSIN_FIELD(sequence),
          TOCSIN_FIELD(time),
          TOCSIN_FIELD(traceparent),
          TOCSIN_FIELD(tracestate),
          TOCSIN_FIELD(summary),
          TOCSIN_FIELD(description),
          TOCSIN_FIELD(starts_at),
          TOCSIN_FIELD(step),
          TOCSIN_FIELD(global_step),
          TOCSIN_FIELD(epoch),
          TOCSIN_FIELD(evidence.occurrences),
          TOCSIN_FIELD(measured_at),
          TOCSIN_FIELD(published_at),
          TOCSIN_FIELD(evaluated_at),
          TOCSIN_FIELD(evidence.window.last),
          TOCSIN_FIELD(evidence.window.last_time),
          TOCSIN_FIELD(evidence.window.points),
          TOCSIN_FIELD(evidence.observed.value),
          TOCSIN_FIELD(evidence.first_seen),
          TOCSIN_FIELD(evidence.affected.hit)};
}

/// What it may not.
std::vector<OutlineField> fixed_outline_fields() {
  return {TOCSIN_FIELD(source),
          TOCSIN_FIELD(status),
          TOCSIN_FIELD(rule),
          TOCSIN_FIELD(rule_type),
          TOCSIN_FIELD(rule_version),
          TOCSIN_FIELD(params_hash),
          TOCSIN_FIELD(kind),
          TOCSIN_FIELD(shadow),
          TOCSIN_FIELD(severity),
          TOCSIN_FIELD(labels),
          TOCSIN_FIELD(generator_url),
          TOCSIN_FIELD(explicit_expiry),
          TOCSIN_FIELD(resolution),
          TOCSIN_FIELD(ending),
          TOCSIN_FIELD(run.uid),
          TOCSIN_FIELD(run.attempt),
          TOCSIN_FIELD(run.job),
          TOCSIN_FIELD(run.platform),
          TOCSIN_FIELD(run.ref),
          TOCSIN_FIELD(mode),
          TOCSIN_FIELD(caused_by),
          TOCSIN_FIELD(evidence.op),
          TOCSIN_FIELD(evidence.tensor),
          TOCSIN_FIELD(evidence.threshold),
          TOCSIN_FIELD(evidence.window.clock),
          TOCSIN_FIELD(evidence.window.partial),
          TOCSIN_FIELD(evidence.window.missing_ranks),
          TOCSIN_FIELD(evidence.observed.name)};
}

#undef TOCSIN_FIELD

/// Without what is free.
Issue without_free(Issue issue) {
  const Issue nothing;
  for (const auto& [name, edit] : free_outline_fields()) edit(issue, nothing);
  issue.recommendation.clear();
  issue.runbook_url.clear();
  for (auto& [name, text] : issue.annotations) text.clear();
  core::Evidence& seen = issue.evidence;
  seen.window.first = 0;
  seen.window.first_time = {};
  seen.affected.evaluated = 0;
  for (auto& [unit, value] : seen.affected.worst) value = 0;
  if (seen.threshold) seen.threshold->value = 0;
  for (core::DataRef& ref : seen.data_refs) ref.first = ref.last = 0;
  for (core::Parameter& parameter : seen.parameters) parameter.value = {};
  seen.values.clear();
  return issue;
}

/// A report as the engine sends it.
Issue said_first() {
  Issue issue = fixture::comparable(fixture::full_issue());
  issue.status = core::IssueStatus::firing;
  issue.resolution = core::Resolution::none;
  issue.ends_at.reset();
  issue.evidence.observed.value = 17;
  // A text with a backslash in its JSON is no free one.
  issue.summary = "17 values are not finite";
  issue.description = "of 288";
  return issue;
}

Issue said_else() {
  Issue issue;
  issue.event_id = "iss_other";
  issue.source = "/c2/rules/other";
  issue.sequence = 43;
  issue.time = issue.starts_at = issue.measured_at = issue.published_at = issue.evaluated_at =
      fixture::at(5'000'000'000);
  issue.status = core::IssueStatus::resolved;
  issue.rule = issue.rule_type = issue.params_hash = issue.kind = "other";
  issue.severity = core::Severity::info;
  issue.labels = {{"rule", "other"}};
  issue.summary = issue.description = "another text";
  issue.generator_url = "https://example.com/other";
  issue.traceparent = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  issue.explicit_expiry = false;
  issue.resolution = core::Resolution::manual;
  issue.ending = core::Ending{"it is over", {}, {}, {}};
  issue.run.uid = core::run_uid_for("digits", "other");
  issue.run.attempt = 3;
  issue.step = issue.global_step = issue.epoch = 99;
  issue.mode = core::Mode::train;
  issue.caused_by = {{"iss_x", "key", "rule", "unit", {}, {}, {}}};
  issue.evidence.observed = {"max", 18.5};
  issue.evidence.window = {"time", 1, 2, fixture::at(), fixture::at(), 14, false, {2}};
  issue.evidence.first_seen = fixture::at();
  issue.evidence.occurrences = 5;
  issue.evidence.affected.hit = 4;
  return issue;
}

std::optional<std::array<std::uint64_t, 2>> rest_of(const core::OutRecord& record) {
  const auto outline = outline_of(view_of(record));
  return outline ? std::optional(outline->rest) : std::nullopt;
}

TEST(Outline, WhatIsSaidAgainHasTheSame) {
  const auto before = rest_of(encode_issue(said_first()));
  ASSERT_TRUE(before);
  for (const auto& [name, edit] : free_outline_fields()) {
    Issue again = said_first();
    edit(again, said_else());
    EXPECT_EQ(rest_of(encode_issue(again)), before) << name;
  }
}

TEST(Outline, WhatSaysSomethingElseHasAnotherOne) {
  const auto before = rest_of(encode_issue(said_first()));
  ASSERT_TRUE(before);
  for (const auto& [name, edit] : fixed_outline_fields()) {
    Issue news = said_first();
    edit(news, said_else());
    EXPECT_NE(rest_of(encode_issue(news)), before) << name;
  }
}

TEST(Outline, GivesWhatIsNotInTheRest) {
  const Issue issue = said_first();
  const auto record = encode_issue(issue);
  const auto outline = outline_of(view_of(record));
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->source, issue.source);
  EXPECT_EQ(outline->id, issue.event_id);
  EXPECT_EQ(outline->sequence, issue.sequence);
  EXPECT_EQ(outline->time, issue.time);
  EXPECT_EQ(outline->starts_at, issue.starts_at);
}

TEST(Outline, IsLeftToTheDecoderWhereThereIsAnEnd) {
  Issue issue = said_first();
  issue.ends_at = issue.starts_at;
  EXPECT_FALSE(rest_of(encode_issue(issue)));
  core::OutRecord record = encode_issue(said_first());
  record.headers[0].second = "application/cloudevents+json";
  EXPECT_FALSE(rest_of(record));
  EXPECT_FALSE(rest_of(encode_job(fixture::full_job(), "c1")));
}

/// Any two events, the second one like the first in most of its fields.
TEST(Outline, EqualOnesAreOfEventsThatSayTheSame) {
  int equal = 0;
  EXPECT_TRUE(rc::check([&] {
    Issue first = any::coin() ? any::issue() : said_first();
    first.ends_at.reset();
    const Issue second = any::issue();
    Issue again = first;
    for (const auto& fields : {free_outline_fields(), fixed_outline_fields()}) {
      for (const auto& [name, edit] : fields) {
        if (any::below(60) == 0) edit(again, second);
      }
    }
    const auto a = encode_issue(first);
    const auto b = encode_issue(again);
    const auto rest = rest_of(a);
    if (!rest || rest != rest_of(b)) return;
    ++equal;
    const auto one = decode_event(view_of(a));
    const auto two = decode_event(view_of(b));
    RC_ASSERT(bool(one) == bool(two));
    RC_ASSERT(
        (without_free(std::get<Issue>(one->event)) == without_free(std::get<Issue>(two->event))));
  }));
  EXPECT_GT(equal, 10) << "else the test compares nothing";
}

/// Bytes are changed, put in and taken out, most of them where JSON is sensitive.
TEST(Outline, NoChangedTextPassesForOneThatTheDecoderTakes) {
  static constexpr std::string_view kBytes =
      "0123456789{}[]\",:.-+eE\\ TZtfn\x01\x02\x03\x04\n\x7f\xc3\xa9";
  int equal = 0;
  EXPECT_TRUE(rc::check([&] {
    core::OutRecord record = encode_issue(said_first());
    const auto rest = rest_of(record);
    const auto before = decode_event(view_of(record));
    for (int i = 0; i < 400; ++i) {
      core::OutRecord changed = record;
      std::string& text = *changed.value;
      for (std::uint64_t edits = 1 + any::below(3); edits > 0; --edits) {
        const std::size_t at = any::below(text.size());
        const char byte = kBytes[any::below(kBytes.size())];
        if (any::below(3) == 0)
          text.erase(at, 1 + any::below(3));
        else if (any::coin())
          text.insert(at, 1, byte);
        else
          text[at] = byte;
      }
      if (rest_of(changed) != rest) continue;
      equal += *changed.value == *record.value ? 0 : 1;
      const auto after = decode_event(view_of(changed));
      if (!after) RC_FAIL(after.error().message + "\n" + text);
      RC_ASSERT((without_free(std::get<Issue>(before->event)) ==
                 without_free(std::get<Issue>(after->event))));
    }
  }));
  EXPECT_GT(equal, 100) << "else the test compares nothing";
}

/// Every byte, put where every other one is: most of them in the texts, numbers and times that are
/// free, where the decoder must take what the outline takes.
TEST(Outline, NoOtherByteAnywherePassesForOneThatTheDecoderTakes) {
  static constexpr std::string_view kBytes = "0139{}[]\",:.-+eE\\ TZtn/;\x01\x1f\x7f\x80\xff";
  core::OutRecord record = encode_issue(said_first());
  const auto rest = rest_of(record);
  const auto before = decode_event(view_of(record));
  ASSERT_TRUE(rest && before);
  const Issue said = without_free(std::get<Issue>(before->event));
  std::string& text = *record.value;
  int equal = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    for (const char other : kBytes) {
      text[at] = other;
      if (other == byte || rest_of(record) != rest) continue;
      ++equal;
      const auto after = decode_event(view_of(record));
      ASSERT_TRUE(after) << after.error().message << "\n" << text;
      ASSERT_TRUE(without_free(std::get<Issue>(after->event)) == said) << text;
    }
    text[at] = byte;
  }
  EXPECT_GT(equal, 1000) << "else the test compares nothing";
}

/// Those that are written as we write them are not read. What is none must not pass for one.
TEST(Outline, ATimeIsFreeOnlyWhereItIsOne) {
  core::OutRecord record = encode_issue(said_first());
  const auto rest = rest_of(record);
  constexpr std::string_view kName = "\"measured_at\":\"";
  std::string& text = *record.value;
  const std::size_t begin = text.find(kName) + kName.size();
  const std::string good = "2026-11-28T18:07:56.267492925Z";
  text.replace(begin, text.find('"', begin) - begin, good);
  ASSERT_EQ(rest_of(record), rest);
  const auto passes = [&](const std::string& time) {
    const std::string kept = text;
    text.replace(begin, good.size(), time);
    const bool same = rest_of(record) == rest;
    text = kept;
    return same;
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0x20; byte < 0x7f; ++byte) {
      std::string time = good;
      time[at] = static_cast<char>(byte);
      if (byte == '"' || byte == '\\') continue;
      EXPECT_EQ(passes(time), core::parse_rfc3339(time).has_value()) << time;
    }
  }
  for (const char* time :
       {"2026-00-28T18:07:56.267492925Z", "2026-13-28T18:07:56.267492925Z",
        "2026-02-29T18:07:56.267492925Z", "2028-02-29T18:07:56.267492925Z",
        "2026-11-31T18:07:56.267492925Z", "2026-11-30T23:59:59.999999999Z",
        "2026-11-00T18:07:56.267492925Z", "2026-11-28T24:07:56.267492925Z",
        "2026-11-28T18:60:56.267492925Z", "2026-11-28T18:07:60.267492925Z",
        "2026-11-28T18:07:61.267492925Z", "1700-11-28T18:07:56.267492925Z", "2026-11-28T18:07:56Z",
        "2026-11-28T18:07:56.267Z", "2026-11-28T18:07:56.267492+01:00", "2026-11-28", ""}) {
    EXPECT_EQ(passes(time), core::parse_rfc3339(time).has_value()) << time;
  }
}

/// Beside a look at one byte after the other: each byte at each place of texts of many lengths, which
/// begin anywhere.
TEST(PlainText, EndsAtTheFirstByteThatIsNotPlain) {
  for (std::size_t size = 0; size < 40; ++size) {
    for (std::size_t skipped = 0; skipped < 3 && skipped <= size; ++skipped) {
      std::string text(size, 'x');
      const char* const end = text.data() + size;
      ASSERT_EQ(past_plain(text.data() + skipped, end), end);
      for (std::size_t at = skipped; at < size; ++at) {
        for (int byte = 0; byte < 256; ++byte) {
          text[at] = static_cast<char>(byte);
          const bool ends = byte < 0x20 || byte >= 0x7f || byte == '"' || byte == '\\';
          ASSERT_EQ(past_plain(text.data() + skipped, end), ends ? text.data() + at : end)
              << size << " " << at << " " << byte;
        }
        text[at] = 'x';
      }
    }
  }
}

}  // namespace
}  // namespace tocsin::ingest
